/*
 * Sizes, durations, percentages and numbers as people write them.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes: a number, a fraction allowed, and B, K, M, G, T, P with optional "iB" or "B" (all powers of
 * 1024, as df and Slurm count). Fails with -EINVAL (not a size) or -ERANGE. */
int parse_size(const char *text, uint64_t *bytes, struct error *err);

/* Seconds: a number and s, m, h, d or w (no unit: seconds). */
int parse_duration(const char *text, uint64_t *seconds, struct error *err);

/* "5%" or a size: *percent is -1 where text is a size, else 0 to 100. */
int parse_share(const char *text, uint64_t *bytes, double *percent, struct error *err);

/* A whole decimal number from min to max. */
int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value, struct error *err);

/* yes, no, true, false, on, off, 1, 0. */
int parse_bool(const char *text, bool *value, struct error *err);

/* "1.5 GiB", "12 B": for people. Returns buffer. */
char *parse_format_size(uint64_t bytes, char *buffer, unsigned long size);

/* "3.2 s", "4 min 10 s", "2 d 3 h": for people. Returns buffer. */
char *parse_format_duration(double seconds, char *buffer, unsigned long size);

#endif
