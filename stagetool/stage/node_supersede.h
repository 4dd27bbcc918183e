/*
 * Attempts of a job that another one came after: what they left must not replace its results.
 */
#ifndef STAGE_NODE_SUPERSEDE_H
#define STAGE_NODE_SUPERSEDE_H

#include "stage/node.h"

/* The highest restart count of which this node has a record, where it is higher than record's; else
 * 0. live: an attempt of the job, this or another one, may be at work on this node. */
int node_later(const struct state *state, const struct record *record, uint64_t *restart,
	bool *live, struct error *err);

/* Settles record, whose lock the caller holds, as one that the attempt `later` came after: what may
 * be results is kept and never sent, anything else removed. A second call does nothing. */
int node_supersede(
	const struct node *node, struct record *record, uint64_t later, struct error *err);

#endif
