/*
 * What the fuzz targets share. Each defines LLVMFuzzerTestOneInput and is linked with libFuzzer, or
 * with replay.c, which runs the inputs that it is given.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, as a finding, where what must always hold does not. Not assert(): it holds with
 * NDEBUG, too. */
#define fuzz_require(condition)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The input up to its first NUL as text of its own size, so that reading behind it is seen. Caller
 * frees. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	fuzz_require(text);
	return text;
}

/* The next line of *rest without its newline, NULL behind the last one. Cuts it off. */
static inline char *fuzz_line(char **rest)
{
	char *line = *rest, *end = line ? strchr(line, '\n') : NULL;

	if (!line || !*line)
		return NULL;
	*rest = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return line;
}

/* A new directory below TMPDIR; for one call. exit() removes it with all in it, the end of
 * libFuzzer does not. Returns an fd. */
int fuzz_scratch(void);

#endif
