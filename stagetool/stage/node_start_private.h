/*
 * What the steps of node_start share.
 */
#ifndef STAGE_NODE_START_PRIVATE_H
#define STAGE_NODE_START_PRIVATE_H

#include <time.h>

#include "spec/spec.h"
#include "stage/node.h"
#include "stage/task.h"
#include "stage/worker.h"

struct node_start {
	const struct node *node;
	struct node_verdict *verdict;
	enum node_blame blame; /* whose fault a failure of this step is */
	struct spec_list specs;
	const struct conf_tier *tier;
	struct priv_user user;
	struct record *record;
	bool ours; /* the record is this process's to write, not one that was found */
	int lock;  /* of this attempt */
	int tierfd, stagefd;
	bool asked; /* the worker has said what it needs */
	bool left;  /* the worker can not be ended, and holds stage and lock */
	struct ledger_amount input, used;
	struct timespec began;
};

/* Clears away what earlier attempts of the job left on this node. -ESTALE: there is a later one, so
 * that this one is over. */
int node_start_supersede(struct node_start *start, struct error *err);

/* The stage-in itself: measures, reserves, copies. */
int node_start_bring(struct node_start *start, struct error *err);

/* The line about it. Caller frees; NULL on ENOMEM. */
char *node_start_notice(const struct node_start *start);

/* Seconds since the stage-in began. */
double node_start_seconds(const struct node_start *start);

#endif
