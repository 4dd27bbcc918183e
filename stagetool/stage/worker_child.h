/*
 * The child's side of a worker.
 */
#ifndef STAGE_WORKER_CHILD_H
#define STAGE_WORKER_CHILD_H

#include <signal.h>

#include "stage/worker.h"

/* After the fork: becomes the user, runs the body, and exits. before is the mask of signals that
 * the parent had. */
void worker_child(const struct worker_options *options, int fd, pid_t parent,
	const sigset_t *before) __attribute__((noreturn));

#endif
