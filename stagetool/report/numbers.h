/*
 * Counts as people read them.
 */
#ifndef REPORT_NUMBERS_H
#define REPORT_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* Room for any number of numbers_format. */
#define NUMBERS_SIZE 32

/* "12,345", whatever the locale. Returns buffer, which has NUMBERS_SIZE bytes. */
char *numbers_format(uint64_t number, char *buffer);

/* "1 file", "12,345 files": noun as of one, plural as of many. Returns buffer, cut at size. */
char *numbers_count(uint64_t number, const char *noun, const char *plural, char *buffer, size_t size);

#endif
