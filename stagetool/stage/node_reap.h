/*
 * What no prolog and no epilog will come back for: results that could not be delivered, what died
 * half way, what a reboot left.
 *
 * Safe beside prolog, epilog and another reap: an attempt that somebody works on is known by its
 * lock, which ends with the process, and is left alone.
 */
#ifndef STAGE_NODE_REAP_H
#define STAGE_NODE_REAP_H

#include "stage/node.h"

enum reap_end {
	REAP_NOTHING,    /* over, nothing to do */
	REAP_RUNNING,    /* the job's own */
	REAP_BUSY,       /* another process works on it */
	REAP_CLEARED,    /* what was half staged is gone, or a stage that nobody needs */
	REAP_DELIVERED,  /* all results are back, the stage is gone */
	REAP_EXPIRED,    /* its time was over, the stage is gone */
	REAP_LOST,       /* the stage was not there any more */
	REAP_WAITING,    /* kept, not tried: it is not time yet */
	REAP_SUPERSEDED, /* kept, not tried: a later attempt came after it */
	REAP_KEPT,       /* kept, tried in vain */
	REAP_FAILED,     /* the record or the tier is broken */
};

const char *reap_end_name(enum reap_end end);

struct reap_options {
	const char *job_id; /* NULL: all */
	bool boot;          /* jobs that are ready since an earlier boot are over */
	bool now;           /* do not wait for the time of the next try */
	/* Told what became of each attempt, name as "123.0"; text (may be NULL) says more. record is
	 * NULL where it could not be read or was not looked at. */
	void (*told)(void *ctx, const char *name, const struct record *record, enum reap_end end,
		const char *text);
	void *ctx;
};

/* Goes over all records. What goes wrong with one is told and does not keep the others from their
 * turn. Ends early where node->stopped is set. Needs root. */
int node_reap(const struct node *node, const struct reap_options *options, struct error *err);

/* A directory of an attempt, or one that was moved out of its way, that no record knows. */
struct reap_orphan {
	const char *tier, *path;
	uint64_t seconds; /* since anything in it was last changed by name */
	bool removed;
	const char *problem; /* why it could not be; NULL */
};

/* Finds them on the configured tiers; with remove, takes away those that are older than
 * keep_failed. */
int node_orphans(const struct node *node, bool remove,
	void (*told)(void *ctx, const struct reap_orphan *orphan), void *ctx, struct error *err);

#endif
