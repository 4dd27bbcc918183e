/*
 * What happened to one item, and to all: for people and as JSON.
 */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include <jansson.h>
#include <stdint.h>
#include <time.h>

#include "copy/engine.h"

/* Named failed entries, kept for JSON and the record up to a limit; the rest is counted. */
#define SUMMARY_MAX_NAMED 100

struct summary_problem {
	char *path;
	char *kind; /* "failed", "conflict", "changed", "vanished", "attribute", "dropped", "special" */
	char *text;
};

struct summary {
	const char *verb; /* "staged in", "staged out", "copied": borrowed */
	struct copy_counts counts;
	uint64_t removed; /* by delete */
	double seconds;
	struct summary_problem *problems;
	size_t n_problems, n_unnamed;
};

/* Adds a problem (copies its strings). Thread-safe against itself is the caller's affair. */
void summary_add_problem(struct summary *summary, const char *path, const char *kind,
	const char *text);
/* Adds counts, seconds and problems of one item to a total. */
void summary_merge(struct summary *total, const struct summary *item);
void summary_free(struct summary *summary);

/* The exit status that the counts mean: 0, 3 (failed entries, vanished, changed, attributes) or 5 (conflicts
 * were kept, and nothing failed). */
int summary_status(const struct summary *summary);

/* "staged in 12,345 files, 1.2 GiB in 3.1 s (400 MiB/s)" and what was not plain. Caller frees. */
char *summary_line(const struct summary *summary);

/* Caller owns the reference. Names that are not UTF-8 are written with \xNN escapes in "path" and given
 * whole as hexadecimal in "path_hex". */
json_t *summary_json(const struct summary *summary);

/* A JSON string of bytes: as they are if valid UTF-8 without control bytes, else with \xNN escapes. */
json_t *summary_json_bytes(const char *bytes);

#endif
