/*
 * What the tool says to people, one line a message, on standard error.
 *
 * The only global of the project: level, prefix and sink. Every message is one write, whole lines
 * from any thread. Control bytes (also of file names inside a message) are escaped, so one message is
 * one line whatever a file is called.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>

enum log_level { LOG_QUIET, LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Messages above level are dropped. Default: LOG_INFO. Not for use while other threads log. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Called around each line that is written to a terminal, so that a progress line can make way:
 * hook(1) before, hook(0) after. NULL removes it. */
void log_set_hook(void (*hook)(int before));

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Escapes control bytes of text ("\n", "\t", "\r", else "\xNN") into buffer, NUL-terminated and cut at
 * size. Other bytes, whatever their encoding, are kept. Returns buffer. */
char *log_escape(const char *text, char *buffer, size_t size);

#endif
