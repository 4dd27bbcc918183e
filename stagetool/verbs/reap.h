/*
 * A reap, as its own verb and as root's resume.
 */
#ifndef VERBS_REAP_H
#define VERBS_REAP_H

#include "verbs/options.h"

struct reap_call {
	const char *verb;
	const char *job_id; /* NULL: all; one that is not there is a failure */
	bool boot, now, orphans;
};

/* Runs it, says what became of each job, and returns the exit status. */
int reap_call(const struct reap_call *call, const struct options *options);

#endif
