/*
 * What prolog and epilog have in common: the environment, the configuration, the verdict.
 */
#ifndef VERBS_HOOK_H
#define VERBS_HOOK_H

#include <stdbool.h>

#include "stage/node.h"

struct hook {
	const char *verb, *help;
	/* Whether there is something to do for a job that carries no specs; NULL: never. */
	bool (*wants)(const struct node *node);
	void (*run)(const struct node *node, struct node_verdict *verdict);
	/* The exit status of a job whose fault it is. */
	int job_status;
};

/* Runs it. A job that has nothing to do with staging costs nothing and is told nothing. Returns the
 * exit status. */
int hook_run(int argc, char **argv, const struct hook *hook);

#endif
