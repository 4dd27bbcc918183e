/*
 * Comparing a stage with its manifest, and, if asked for, with the content of its sources.
 */
#ifndef STAGE_CHECK_H
#define STAGE_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum check_kind {
	CHECK_MISSING, /* staged in, and not there any more */
	CHECK_CHANGED, /* not as it was staged in */
	CHECK_NEW,     /* not staged in; of a directory: nor what is in it */
	CHECK_UNKNOWN, /* could not be looked at, read or compared */
	CHECK_KINDS,
};

struct check_counts {
	uint64_t same;
	uint64_t of[CHECK_KINDS];
	uint64_t files_read, bytes_read; /* on each side */
};

struct check_options {
	bool content;     /* read every file and its source back, past the caches, and compare */
	unsigned threads; /* that read; 0: some */
	const atomic_bool *cancel; /* borrowed, may be NULL */
	/* Told of each difference, one at a time, any thread. */
	void (*difference)(void *ctx, const char *path, enum check_kind kind, const char *text);
	void *ctx;
};

/* Compares what is below stagefd. 0: see counts. -ENOENT: there is no manifest; -ECANCELED. */
int check_stage(int stagefd, const struct check_options *options, struct check_counts *counts,
	struct error *err);

#endif
