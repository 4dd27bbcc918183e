/*
 * The start of a job on this node: a stage, what it asked for in it, and a word to its steps.
 */
#ifndef STAGE_NODE_START_H
#define STAGE_NODE_START_H

#include "stage/node.h"

/* Takes the job from nothing to ready, or to failed with nothing left behind, and says which in
 * verdict. What an earlier process of this attempt has decided is not done again: a second call is
 * harmless. What earlier attempts left on this node is cleared away, but not results. Needs
 * root. */
void node_start(const struct node *node, struct node_verdict *verdict);

#endif
