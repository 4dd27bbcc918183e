/*
 * What epilog and reap do with one attempt, under its lock.
 */
#ifndef STAGE_NODE_SETTLE_H
#define STAGE_NODE_SETTLE_H

#include "stage/node.h"

/* A stage that nobody needs goes, and the record is saved as last. What keeps the stage from being
 * removed is a warning. */
int node_clear(
	const struct node *node, struct record *record, enum record_state last, struct error *err);

/* A stage-in that did not come to its end: as node_clear, with a reason. */
int node_clear_unfinished(const struct node *node, struct record *record, struct error *err);

/* node_return, and a word to the user, but for a failure that they know already. */
int node_return_and_tell(
	const struct node *node, struct record *record, int lock, struct error *err);

/* Where a later attempt came after this one it is settled as superseded, and the user told, once,
 * when no attempt runs any more. Nothing else is to be done with it then. */
int node_settle_superseded(const struct node *node, struct record *record, struct error *err);

#endif
