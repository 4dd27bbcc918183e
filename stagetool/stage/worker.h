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
#include <sys/types.h>

#include "base/error.h"
#include "base/priv.h"

#define WORKER_MESSAGE_MAX (64 * 1024)

/* How long a worker that was told to stop may take before it is killed, in seconds. */
#define WORKER_GRACE 5

struct worker {
	pid_t pid;
	int fd; /* the parent's end */
};

struct worker_options {
	const struct priv_user *user;
	const int *keep; /* fds beside 0 to 2 that stay open */
	size_t n_keep;
	unsigned limit;   /* seconds it may take; 0: any */
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
 * signal; -ETIME: it took longer than limit; -EPROTO: it sent what is not a message; -ECHILD: it
 * died, err says how. For a process with one thread. */
int worker_run(const struct worker_options *options, struct error *err);

/* Sends one message. Takes the reference, also on failure; NULL is -ENOMEM. Any thread. */
int worker_send(int fd, json_t *message, struct error *err);

/* Sends what went wrong; worker_run takes it as body's result. */
#define WORKER_ERROR "error"
int worker_send_error(int fd, const struct error *error);

/* Waits for one. -EPIPE: the other side is gone. Caller owns *message. */
int worker_receive(int fd, json_t **message, struct error *err);

#endif
