/*
 * The reason of a failed stage-in, as the job's comment carries it from the node to everybody else.
 *
 * A batch script starts on one node; that another one could not be staged is known to it by the
 * comment alone. The text names the attempt, since the comment stays when a job is queued again.
 */
#ifndef SPANK_VERDICT_H
#define SPANK_VERDICT_H

#include "spank/job.h"

/* "stage-in failed on NODE: REASON", or "stage-in failed on NODE, restart N: REASON"; one line.
 * Caller frees; NULL on ENOMEM. */
char *verdict_text(const char *node, uint32_t restarts, const char *reason);

/* The failure that job's comments tell of this attempt; NULL: none. Borrowed from job. */
const char *verdict_of(const struct job *job);

/* Whether a comment may be written over: nobody has written any, or an attempt's failure is all it
 * holds. A user's own (--comment) stays; the failure is then in the AdminComment alone. */
bool verdict_may_replace(const char *comment);

#endif
