/*
 * Errors as values: what failed, and the context it failed in.
 *
 * A function that can fail returns 0 or a negative errno and takes a struct error last. The text is
 * written where the failure was first seen and prefixed on the way up:
 *   "stage-in /proj/x:data: data/a/b: write: No space left on device".
 * Names inside the text are raw bytes; log.h escapes what it prints.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>

#define ERROR_TEXT_SIZE 2048

struct error {
	int code; /* negative errno; 0: no error */
	char text[ERROR_TEXT_SIZE];
};

#define ERROR_INIT { 0, "" }

/* Fills err with code (a negative errno) and the formatted text. Text that does not fit loses its
 * middle. err may be NULL. Returns code. */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Like error_set with code (a negative errno), and ": <text of that errno>" appended.
 * Returns code. */
int error_sys(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* error_sys for the current errno. Returns -errno. */
int error_errno(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "<formatted>: " in front of err's text, if err holds an error. Returns code, so that a caller
 * can write: return error_prefix(err, rc, "%s", name). */
int error_prefix(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
