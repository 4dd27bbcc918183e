/*
 * Carrying out a plan: stage in, stage out. The same by hand and in a job.
 */
#ifndef STAGE_TRANSFER_H
#define STAGE_TRANSFER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "report/summary.h"
#include "stage/plan.h"

struct transfer_context {
	int stagefd; /* borrowed */
	unsigned threads;
	const char *engine; /* as in copy_options */
	/* Nobody looks at the stage before it is done (a job's): no temporary names, and what is
	 * staged in is not synced. */
	bool private_stage;
	uint64_t max_bytes; /* stage-in: an archive is not unpacked beyond this; 0: to where space ends */
	const char *conflict_suffix; /* "conflict-123-n1" */
	const char *job_id, *node;   /* for the receipt; NULL by hand */
	const atomic_bool *cancel;   /* borrowed, may be NULL */
	/* Told of each problem as it is found, any thread, one at a time; NULL: not. */
	void (*problem)(void *ctx, const char *path, const char *kind, const char *text);
	void *ctx;
	struct transfer_live *live; /* for a progress line; may be NULL */
};

/* Counts of the whole transfer so far, from any thread while it runs. steps grows with whatever is done;
 * it counts looked too, for what is only looked at. */
struct transfer_live;
struct transfer_live *transfer_live_new(void);
void transfer_live_now(struct transfer_live *live, uint64_t *files, uint64_t *bytes);
uint64_t transfer_live_steps(struct transfer_live *live);
atomic_uint_fast64_t *transfer_live_looked(struct transfer_live *live);
void transfer_live_free(struct transfer_live *live);

/* Brings every item into the stage and records it in the manifest, which is durable on return.
 * results has one zeroed summary per item and is filled also on failure. A local file that is
 * neither unchanged since it was staged nor equal (size, mtime) to its source is never replaced: a
 * conflict. 0: see the results; negative: it could not go on. After -ENOSPC and -EDQUOT what this
 * call brought is gone again. */
int transfer_in(const struct transfer_context *context, const struct plan *plan,
	struct summary *results, struct error *err);

/* Sends what is new or changed of every item to its shared side, durable on return, and records
 * what was sent. item->missing with a problem is a failed item, the others go on. Where no manifest
 * exists everything is new. */
int transfer_out(const struct transfer_context *context, const struct plan *plan,
	struct summary *results, struct error *err);

#endif
