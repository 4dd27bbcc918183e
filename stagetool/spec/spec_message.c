#include "spec/spec_private.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How much of a long text a message shows. */
#define QUOTE_BYTES 100

const char *spec_side_name(enum spec_side side)
{
	return side == SPEC_IN ? "--stage-in" : "--stage-out";
}

char *spec_quote(const char *text, size_t focus, char buffer[SPEC_QUOTE_SIZE])
{
	size_t length = strlen(text), start = 0;
	char piece[QUOTE_BYTES + 1], escaped[4 * QUOTE_BYTES + 1];

	if (length > QUOTE_BYTES && focus > QUOTE_BYTES / 2) {
		start = focus - QUOTE_BYTES / 2;
		if (start > length - QUOTE_BYTES)
			start = length - QUOTE_BYTES;
	}
	snprintf(piece, sizeof(piece), "%s", text + start);
	log_escape(piece, escaped, sizeof(escaped));
	snprintf(buffer, SPEC_QUOTE_SIZE, "%s\"%s\"%s", start ? "..." : "", escaped,
		start + QUOTE_BYTES < length ? "..." : "");
	return buffer;
}

int spec_fail(
	const struct spec_source *source, size_t offset, struct error *err, const char *format, ...)
{
	char reason[ERROR_TEXT_SIZE / 2], quoted[SPEC_QUOTE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	error_set(err, -EINVAL, "column %zu of %s: %s", offset + 1,
		spec_quote(source->text, offset, quoted), reason);
	if (source->file)
		error_prefix(err, -EINVAL, "%s:%u", source->file, source->line);
	return error_prefix(err, -EINVAL, "%s", spec_side_name(source->side));
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters must be changed, added, dropped or swapped with the next one. */
static unsigned edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	enum { LONGEST = 16 };
	unsigned rows[3][LONGEST + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	if (a_length > LONGEST || b_length > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= b_length; j++)
		before[j] = last[j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned *reused = before;

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
			row[j] = least(row[j], least(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = reused;
	}
	return last[b_length];
}

bool spec_similar(const char *name, const char *candidate)
{
	size_t length = strlen(name);

	return edit_distance(name, length, candidate, strlen(candidate)) <= (length > 4 ? 2 : 1);
}
