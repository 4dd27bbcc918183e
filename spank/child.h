/*
 * Runs the tool, hears its report, and can stop it.
 */
#ifndef SPANK_CHILD_H
#define SPANK_CHILD_H

#include <stdbool.h>

#include "base/error.h"

/* The descriptor on which the tool finds its report pipe. */
#define CHILD_REPORT_FD 3

struct child_hooks {
	void *ctx;
	/* A line on the report pipe; a line on standard error. Without the newline, borrowed. */
	void (*report)(void *ctx, const char *line);
	void (*said)(void *ctx, const char *line);
	/* Every now and then (at least each second). False: the child is to be stopped: it gets
	 * SIGTERM, and after grace seconds its process group SIGKILL. Not called again after that.
	 */
	bool (*go_on)(void *ctx);
	unsigned grace;
	bool follow_parent; /* SIGTERM also when this process dies */
};

/* Runs arguments[0] with arguments and environment in a process group of its own, standard input
 * and output on /dev/null, until it has ended. *status is its wait status. Negative errno if it
 * could not be started. */
int child_run(char *const arguments[], char *const environment[], const struct child_hooks *hooks,
	int *status, struct error *err);

#endif
