/*
 * What the specs of a job mean on this node: which path goes where, and how much it is.
 */
#ifndef STAGE_PLAN_H
#define STAGE_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "spec/conf.h"
#include "spec/spec.h"
#include "spec/symbols.h"

/* One transfer: a spec, or one match of its glob. */
struct plan_item {
	const struct spec *spec; /* borrowed */
	char *shared; /* absolute */
	char *local; /* relative to the stage */
	bool missing; /* optional, and not there: nothing to do */
	bool is_dir;
	uint64_t bytes, inodes; /* after plan_measure; hard links counted once, sparse files by their blocks */
};

struct plan {
	struct plan_item *items;
	size_t count;
	uint64_t bytes, inodes;
};

struct plan_context {
	int stagefd; /* FROM of out is expanded in it */
	const struct symbols *symbols;
	const struct conf *conf; /* for sources; NULL: any */
	unsigned node_index, node_count; /* 0 and 1 where there is no Slurm */
};

/* Expands symbols and globs of the stage-in specs, as the calling process may read. FROM itself is
 * followed if it is a symlink, and what it resolves to must lie below a source. A missing FROM that is not
 * optional, a glob without a match, two items with one target (both named): negative errno, err says which
 * spec. dist=first gives nothing on the other nodes. Caller frees with plan_free; specs stay
 * borrowed. */
int plan_in(const struct spec_list *list, const struct plan_context *context, struct plan **plan,
	struct error *err);

/* The same for stage-outs (sync ones of stage-ins come last). with gather=subdir on several nodes the
 * node's name is added to TO, unless FROM or TO names the node. A FROM that is missing becomes an item with
 * missing set if optional, else an error of that item alone: *plan is made, and the item has missing set. */
int plan_out(const struct spec_list *list, const struct plan_context *context, struct plan **plan,
	struct error *err);

/* Walks the sources and fills in bytes and inodes. */
int plan_measure(struct plan *plan, unsigned threads, const atomic_bool *cancel, struct error *err);

void plan_free(struct plan *plan);

#endif
