/*
 * The tool's own directory on a node (state_dir), root's alone:
 *
 *   jobs/JOBID.RESTART.json      the record of one attempt of a job (stage/record.h), 0600 in 0700
 *   jobs/JOBID.RESTART.lock      held by the process that works on it
 *   jobs/JOBID.RESTART.progress  how much of a stage-in is there already
 *   jobs/ledger.lock             held while space is counted and reserved
 *   steps/JOBID                  what the job's steps are told (spec/handoff.h)
 *   status/UID/JOBID.RESTART.json   what a user may know of it; written only, never read back by
 *                                   root
 */
#ifndef STAGE_STATE_H
#define STAGE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct state {
	char *path;
	int fd; /* state_dir */
	int jobs;
	int status;
};

#define STATE_LEDGER_LOCK "ledger.lock"

/* Opens state_dir, making what is missing. A directory that is not the caller's own, or that others
 * may write to, is refused (-EPERM). Close with state_close. */
int state_open(const char *path, struct state *state, struct error *err);
void state_close(struct state *state);

/* Takes the lock that the file name in dirfd stands for, waiting up to seconds. Returns an fd that
 * holds it until it and all copies of it are closed; -EBUSY, or another negative errno. */
int state_lock(int dirfd, const char *name, unsigned seconds, struct error *err);

/* Lets go of a lock, and removes its file, unless somebody else has the lock by then: a process that
 * was given a copy of lock and could not be ended, or whoever waited for it. */
void state_unlock_remove(int dirfd, const char *name, int lock);

/* Writes size bytes as the file name in dirfd, mode 0600: whole or not at all, and durable where
 * asked for. Owned by owner, if that is not -1. */
int state_write(int dirfd, const char *name, const char *data, size_t size, bool durable,
	uid_t owner, struct error *err);

/* The whole of a file of at most max bytes, with a NUL behind it (not counted in size, which may be
 * NULL). Symlinks are refused. Caller frees *data. */
int state_read(
	int dirfd, const char *name, size_t max, char **data, size_t *size, struct error *err);

#endif
