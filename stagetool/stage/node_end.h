/*
 * The end of a job on this node: its results go back, its stage goes, or is kept.
 */
#ifndef STAGE_NODE_END_H
#define STAGE_NODE_END_H

#include "stage/node.h"

/* Brings every attempt of the job that this node has a record of to its end: done and removed, or
 * kept with a reason. Tells the user in the job's output file. The verdict is NODE_JOB where
 * something is kept. Finding nothing is success. Needs root. */
void node_end(const struct node *node, struct node_verdict *verdict);

/* Whether there is anything for node_end to do: a record of the job. Cheap. */
bool node_end_is_needed(const struct state *state, const char *job_id);

/* Removes the records of jobs that were done, or failed with nothing left, a day ago. */
void node_prune(const struct node *node);

#endif
