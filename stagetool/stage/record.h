/*
 * The life of one attempt of a job on this node, on disk before each next step.
 *
 * The file jobs/JOBID.RESTART.json below state_dir is root's. What a state means when the process
 * that wrote it is gone (its lock is free):
 *
 *   planned    nothing was copied; the stage may have been made. To be removed.
 *   staging    space is reserved, a part may have been copied; the job never saw it. To be removed.
 *   ready      the stage belongs to the job, which may be running, be over (its epilog is still to
 *              come, or never came), or have died with the node. While the job runs nothing is
 *              done; after it: as returning.
 *   returning  the job is over, its results may not be back. The stage-out is to be done (again):
 *              what was sent is known by the manifest, so that a second run sends the rest.
 *   kept       a stage-out was tried and not all results are safe (reason says why). To be tried
 *              again, from `next_try` on; the stage stays until `until` at least. One that is superseded
 *              is not tried again: a later attempt's results must not be replaced by it.
 *   failed     nothing was staged, reason says why. A stage that is still there (present) is to be
 *              removed.
 *   done       all that was asked for is back. A stage that is still there (present) is to be
 *              removed.
 *
 * present is set before the stage is made and taken back after it is gone.
 */
#ifndef STAGE_RECORD_H
#define STAGE_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "stage/outcome.h"
#include "stage/state.h"

#define RECORD_VERSION 1

/* A record is never longer: as many specs as a job can have fit, and only so many problems are named. */
#define RECORD_MAX_BYTES (16 << 20)

enum record_state {
	RECORD_PLANNED,
	RECORD_STAGING,
	RECORD_READY,
	RECORD_RETURNING,
	RECORD_KEPT,
	RECORD_FAILED,
	RECORD_DONE,
};

/* Strings are the record's own; NULL where unknown. */
struct record {
	char *job_id;
	uint64_t restart;
	uint64_t uid, gid;
	char *user; /* its name */
	char *node;
	char *boot_id; /* of the node when the record was made: after a reboot no job runs */
	enum record_state state;

	char *tier, *tier_path;
	bool present;
	uint64_t stage_dev, stage_ino;            /* the directory that was made; 0: not known */
	uint64_t tier_ino;                        /* of the directory that it lies in */
	uint64_t reserved_bytes, reserved_inodes; /* what the job may use of the tier */
	uint64_t staged_bytes, staged_inodes;     /* what the stage-in used of it */
	uint64_t project_id;                      /* of the stage's quota; 0: it has none */

	char *specs; /* spec_list_encode() of what the job asked for */
	char *job_name, *array_job_id, *array_task_id;
	char *node_index; /* NULL: not known */
	uint64_t node_count;
	char *output;    /* the job's output file, absolute */
	char *job_state; /* how the job ended */

	struct outcome *outcomes;
	size_t n_outcomes;
	char *notice;              /* the stage-in in one line */
	char *reason;              /* failed, kept: why */
	uint64_t created, changed; /* seconds since the epoch */
	uint64_t until;            /* kept: not removed before */
	uint64_t tries;            /* of the stage-out */
	uint64_t next_try;         /* kept: not tried again before */
	uint64_t superseded;       /* restart of the attempt that came after it; 0: none */
	uint64_t told;             /* 1: the user was told that it is superseded */
};

const char *record_state_name(enum record_state state);

/* "JOBID.RESTART", with suffix behind it: the names of everything that belongs to an attempt.
 * Caller frees; NULL on ENOMEM. */
char *record_name(const struct record *record, const char *suffix);

/* Whether text can be a job id: digits, not many. */
bool record_is_job_id(const char *text);

/* Puts a copy of text (may be NULL) into *field, whose old content is freed. -ENOMEM. */
int record_set(char **field, const char *text, struct error *err);

/* Writes the record with state and the time of now, durable on return. On failure the old one
 * stands. */
int record_save(const struct state *state, struct record *record, enum record_state next,
	struct error *err);

/* Reads name ("123.0"); every field is checked. -ENOENT; -EBADMSG where it is not a record of this
 * version. Caller frees with record_free. */
int record_load(
	const struct state *state, const char *name, struct record **record, struct error *err);

/* Removes the files of an attempt, but for its lock, which the caller holds. */
int record_remove(const struct state *state, const char *name, struct error *err);

/* Calls back with the name ("123.0") of each attempt of job_id (NULL: all) of which there is a file
 * with suffix (".json", ".lock"), in any order, until it returns nonzero, which is returned. */
int record_each(const struct state *state, const char *job_id, const char *suffix,
	int (*each)(void *ctx, const char *name, struct error *err), void *ctx, struct error *err);

/* As JSON; caller owns the reference, NULL on ENOMEM. And back, without trust. */
json_t *record_json(const struct record *record);
int record_from_json(const json_t *object, struct record **record, struct error *err);

void record_free(struct record *record);

#endif
