/*
 * The stage-out of a job that is over, once more, by its own user.
 */
#ifndef STAGE_NODE_RESUME_H
#define STAGE_NODE_RESUME_H

#include <jansson.h>

#include "stage/node.h"

/* Sends what is left of the job that a copy of its status (stage/status.h) is about. Only what the
 * caller may do: the stage must be their own, and the record in the copy is no more than their own
 * word. The stage and root's record stay; the next reap finds that all is back. *record (caller
 * frees) is what became of it, also on failure where it could be read, in state done or kept.
 * Negative: not all is back; -ENOENT: it is no job of the caller's; -EBUSY: it is not over. */
int node_resume(const struct node *node, const json_t *status, struct record **record,
	struct error *err);

#endif
