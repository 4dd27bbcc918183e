#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Joins two strings into err's text. A path can be longer than any buffer: the head says where and
 * the tail says why, so what has to go is taken out of the middle. */
static void error_join(struct error *err, const char *head, const char *tail)
{
	static const char gap[] = " ... ";
	size_t room = sizeof(err->text) - 1;
	size_t head_size = strlen(head), tail_size = strlen(tail);
	char text[ERROR_TEXT_SIZE];
	size_t used = 0;

	if (head_size + tail_size > room) {
		size_t keep_tail = tail_size < room / 2 ? tail_size : room / 2;
		size_t keep_head = room - keep_tail - (sizeof(gap) - 1);

		if (keep_head > head_size)
			keep_head = head_size;
		memcpy(text, head, keep_head);
		used = keep_head;
		memcpy(text + used, gap, sizeof(gap) - 1);
		used += sizeof(gap) - 1;
		memcpy(text + used, tail + tail_size - keep_tail, keep_tail);
		used += keep_tail;
	} else {
		memcpy(text, head, head_size);
		memcpy(text + head_size, tail, tail_size);
		used = head_size + tail_size;
	}
	memcpy(err->text, text, used);
	err->text[used] = '\0';
}

static void __attribute__((format(printf, 3, 0)))
error_vformat(char *buffer, size_t size, const char *format, va_list args)
{
	int length = vsnprintf(buffer, size, format, args);

	if (length < 0)
		buffer[0] = '\0';
	else if ((size_t)length >= size)
		memcpy(buffer + size - 4, "...", 4);
}

int error_set(struct error *err, int code, const char *format, ...)
{
	char text[2 * ERROR_TEXT_SIZE];
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	error_vformat(text, sizeof(text), format, args);
	va_end(args);
	err->code = code;
	error_join(err, text, "");
	return code;
}

static void __attribute__((format(printf, 3, 0)))
error_describe(struct error *err, int code, const char *format, va_list args)
{
	char text[2 * ERROR_TEXT_SIZE], reason[160], tail[200];

	error_vformat(text, sizeof(text), format, args);
	snprintf(tail, sizeof(tail), ": %s", strerror_r(-code, reason, sizeof(reason)));
	err->code = code;
	error_join(err, text, tail);
}

int error_sys(struct error *err, int code, const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	error_describe(err, code, format, args);
	va_end(args);
	return code;
}

int error_errno(struct error *err, const char *format, ...)
{
	int code = -errno;
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	error_describe(err, code, format, args);
	va_end(args);
	return code;
}

int error_prefix(struct error *err, int code, const char *format, ...)
{
	char text[2 * ERROR_TEXT_SIZE];
	va_list args;
	size_t length;

	if (!err || !err->code)
		return code;
	va_start(args, format);
	error_vformat(text, sizeof(text) - 2, format, args);
	va_end(args);
	length = strlen(text);
	memcpy(text + length, ": ", 3);
	error_join(err, text, err->text);
	return code;
}
