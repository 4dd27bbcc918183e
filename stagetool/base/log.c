#include "base/log.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level current_level = LOG_INFO;
static void (*_Atomic current_hook)(int before);

void log_set_level(enum log_level level)
{
	current_level = level;
}

enum log_level log_level(void)
{
	return current_level;
}

void log_set_hook(void (*hook)(int before))
{
	current_hook = hook;
}

static size_t log_escape_byte(unsigned char byte, char out[5])
{
	static const char digits[] = "0123456789abcdef";
	const char *named = byte ? strchr("n\nt\tr\r", byte) : NULL;

	if (named) {
		out[0] = '\\';
		out[1] = named[-1];
		return 2;
	}
	memcpy(out, "\\x", 2);
	out[2] = digits[byte >> 4];
	out[3] = digits[byte & 15];
	return 4;
}

char *log_escape(const char *text, char *buffer, size_t size)
{
	size_t used = 0;

	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		char escaped[5] = { (char)byte };
		size_t length = 1;

		if (byte < 0x20 || byte == 0x7f)
			length = log_escape_byte(byte, escaped);
		if (used + length >= size)
			break;
		memcpy(buffer + used, escaped, length);
		used += length;
	}
	if (size)
		buffer[used] = '\0';
	return buffer;
}

static void log_write(const char *line, size_t length)
{
	while (length) {
		ssize_t written = write(STDERR_FILENO, line, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return; /* nobody is left to be told */
		line += written;
		length -= (size_t)written;
	}
}

static void __attribute__((format(printf, 3, 0)))
log_vprint(enum log_level level, const char *label, const char *format, va_list args)
{
	char raw[2 * ERROR_TEXT_SIZE], line[4 * ERROR_TEXT_SIZE];
	void (*hook)(int before) = current_hook;
	size_t length;

	if (level > current_level)
		return;
	vsnprintf(raw, sizeof(raw), format, args);
	length = (size_t)snprintf(line, sizeof(line), "stagetool: %s", label);
	log_escape(raw, line + length, sizeof(line) - length - 1);
	length = strlen(line);
	line[length++] = '\n';
	if (hook)
		hook(1);
	log_write(line, length);
	if (hook)
		hook(0);
}

#define LOG_FUNCTION(name, level, label)                                                           \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, format);                                                            \
		log_vprint(level, label, format, args);                                            \
		va_end(args);                                                                      \
	}

LOG_FUNCTION(log_error, LOG_ERROR, "error: ")
LOG_FUNCTION(log_warning, LOG_WARNING, "warning: ")
LOG_FUNCTION(log_info, LOG_INFO, "")
LOG_FUNCTION(log_debug, LOG_DEBUG, "debug: ")
