/*
 * What the files of the comparison share.
 */
#ifndef STAGE_CHECK_PRIVATE_H
#define STAGE_CHECK_PRIVATE_H

#include <pthread.h>

#include "stage/check.h"
#include "stage/manifest.h"

struct check {
	int stagefd;
	const struct check_options *options;
	struct manifest *manifest;
	pthread_mutex_t lock; /* of counts, and of the callback */
	struct check_counts *counts;
};

/* Counts and tells. Any thread. */
void check_tell(struct check *check, const char *path, enum check_kind kind, const char *text);
void check_same(struct check *check);

/* Reads files and compares, on threads of its own. */
struct check_reader;
int check_reader_start(struct check *check, struct check_reader **reader, struct error *err);
/* Hands a file on: local is below the stage, shared absolute; its source is as entry says or the
 * comparison says nothing. Waits while many are waiting. Takes both strings, also on failure. */
int check_reader_add(struct check_reader *reader, char *local, char *shared,
	const struct manifest_entry *entry, struct error *err);
/* Returns when all are compared. NULL is fine. */
void check_reader_end(struct check_reader *reader);

#endif
