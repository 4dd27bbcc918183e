/*
 * What a user may know of their jobs on this node.
 *
 * Root writes a copy of what is fit to be seen below status/UID/ in state_dir, and never reads it
 * back; the user, who can not read the records, reads the copies.
 */
#ifndef STAGE_STATUS_H
#define STAGE_STATUS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "stage/record.h"

/* Where a job stands within its state. */
struct status_progress {
	uint64_t files, bytes, total_bytes, total_inodes;
	double seconds; /* since it began to copy */
};

/* The job as people and programs may see it. progress may be NULL. Caller owns the reference; NULL
 * on ENOMEM. */
json_t *status_json(const struct record *record, const struct status_progress *progress);

/* In the user's copy, where results may be left to be sent: the record, as record_json. */
#define STATUS_RECORD "record"

/* Writes the user's copy anew; not durable, and best effort: err says what was wrong with it. */
int status_publish(const struct state *state, const struct record *record,
	const struct status_progress *progress, struct error *err);

/* Removes the user's copy. */
void status_withdraw(const struct state *state, const struct record *record);

/* An array of status_json: every job of the records in state_dir for root, the caller's own copies
 * for anybody else; only job_id, if that is not NULL. A record that can not be read is left out,
 * and *bad counts it. Caller owns the reference. */
int status_list(
	const char *state_dir, const char *job_id, json_t **list, unsigned *bad, struct error *err);

/* One of them in a few lines for people. Does not trust it. Caller frees; NULL on ENOMEM. */
char *status_text(const json_t *status);

#endif
