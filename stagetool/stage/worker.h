/*
 * A process that has become the user for good and does what a user's paths need; and what it tells
 * root.
 *
 * Messages are JSON objects, one a packet, of bounded size. To the parent they are a stranger's
 * words: each field is checked where it is used.
 */
#ifndef STAGE_WORKER_H
#define STAGE_WORKER_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/priv.h"

#define WORKER_MESSAGE_MAX (64 * 1024)

/* How long a worker that was told to stop may take before it is killed, in seconds. */
#define WORKER_GRACE 5

struct worker {
	pid_t pid;
	int fd;        /* the parent's end */
	int64_t moved; /* when it was last seen to get on, ms of a clock that only goes forward */
	uint64_t steps; /* worker_counted */
};

struct worker_options {
	const struct priv_user *user;
	const int *keep; /* fds beside 0 to 2 that stay open */
	size_t n_keep;
	unsigned limit;   /* seconds it may take; 0: any */
	uint64_t stall;   /* seconds it may take without getting on (worker_moved, or bytes that its
			   * system calls move); 0: any */
	bool *left;       /* set where it could not be ended, see worker_run; NULL: not asked */
	void *ctx;        /* for body and beat */
	void *parent_ctx; /* for heard and tick; NULL: ctx */
	/* In the child, as the user; stop says when SIGTERM came. 0, or a negative errno with err
	 * filled, which become the result of worker_run. */
	int (*body)(void *ctx, int fd, const atomic_bool *stop, struct error *err);
	/* In the child, about each second beside body; may be NULL. */
	void (*beat)(void *ctx, int fd);
	/* In the parent: a message; NULL where there are none. Negative: the worker is ended, and
	 * that is the result of worker_run. */
	int (*heard)(void *ctx, struct worker *worker, const json_t *message, struct error *err);
	/* In the parent, about each second; may be NULL. */
	void (*tick)(void *ctx);
};

/* Forks, drops to options->user, runs body to its end. While it runs the parent takes SIGTERM,
 * SIGINT and SIGHUP as a wish to stop. Returns what body returned, or -ECANCELED: stopped by a
 * signal; -ETIME: it took longer than limit; -ETIMEDOUT: it did not get on for as long as stall;
 * -EPROTO: it sent what is not a message; -ECHILD: it died, err says how. One that was killed and
 * does not end, since a system call holds it (a dead server), is left to the kernel where there is a
 * limit or a stall, and waited for as long as it takes where there is neither: it holds what is in
 * keep as long as it lives, and does nothing more once the kernel lets go of it. For a process with
 * one thread. */
int worker_run(const struct worker_options *options, struct error *err);

/* In the parent, from heard: what it says shows that it gets on; it has counted steps so far, which
 * shows that it gets on where it is another number than the last one. */
void worker_moved(struct worker *worker);
void worker_counted(struct worker *worker, uint64_t steps);

/* Sends one message. Takes the reference, also on failure; NULL is -ENOMEM. Any thread. */
int worker_send(int fd, json_t *message, struct error *err);

/* Sends what went wrong; worker_run takes it as body's result. */
#define WORKER_ERROR "error"
int worker_send_error(int fd, const struct error *error);

/* Waits for one. -EPIPE: the other side is gone. Caller owns *message. */
int worker_receive(int fd, json_t **message, struct error *err);

#endif
