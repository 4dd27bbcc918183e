#include "report/numbers.h"

#include <stdio.h>
#include <string.h>

char *numbers_format(uint64_t number, char *buffer)
{
	char digits[NUMBERS_SIZE];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%ju", (uintmax_t)number);
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = '\0';
	return buffer;
}

char *numbers_count(uint64_t number, const char *noun, const char *plural, char *buffer, size_t size)
{
	char digits[NUMBERS_SIZE];

	snprintf(buffer, size, "%s %s", numbers_format(number, digits), number == 1 ? noun : plural);
	return buffer;
}
