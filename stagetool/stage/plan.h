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
	char *shared;            /* absolute, as it was asked for */
	char *resolved;          /* the same without symlinks; of out: as far as it exists */
	char *local;             /* relative to the stage */
	bool missing;            /* FROM is not there, or is nothing that can be copied */
	char *problem;           /* out: why it is missing; NULL: it is optional, nothing to do */
	bool is_dir;
	/* After plan_measure; hard links counted once, sparse files by their blocks. Of what is to be unpacked:
	 * the archive; there may be much more in it. */
	uint64_t bytes, inodes;
};

/* Whether what a stage-in makes of it is a directory. */
static inline bool plan_brings_dir(const struct plan_item *item)
{
	return item->is_dir || item->spec->as == SPEC_AS_UNPACK;
}

struct plan {
	struct plan_item *items;
	size_t count;
	uint64_t bytes, inodes;
	atomic_uint_fast64_t *looked; /* counts what plan_measure meets; borrowed, NULL: nothing */
};

struct plan_context {
	int stagefd; /* FROM of out is expanded in it; in: not used */
	const struct symbols *symbols;
	const struct conf *conf;         /* for sources; NULL: any */
	unsigned node_index, node_count; /* 0 and 1 where there is no Slurm */
};

/* Expands symbols and globs of the stage-in specs, as the calling process may read. FROM itself is
 * followed if it is a symlink, and what it resolves to must lie below a source. A missing FROM that
 * is not optional, a glob without a match, two items with one target (both named): negative errno,
 * err says which spec. An optional FROM that is not there gives no item. dist=first gives nothing
 * on the other nodes. Caller frees with plan_free; specs stay borrowed. */
int plan_in(const struct spec_list *list, const struct plan_context *context, struct plan **plan,
	struct error *err);

/* The same for stage-outs (sync ones of stage-ins come last). With gather=subdir on several nodes
 * (or written out) TO becomes TO/<node>, unless FROM or TO names the node. A FROM that is missing
 * becomes an item with missing set, and problem too unless it is optional: *plan is made, and the
 * others can go on. */
int plan_out(const struct spec_list *list, const struct plan_context *context, struct plan **plan,
	struct error *err);

/* Walks the sources of stage-ins and fills in bytes and inodes. What can not be read counts
 * nothing: the copy will say so. -ECANCELED. */
int plan_measure(struct plan *plan, unsigned threads, const atomic_bool *cancel, struct error *err);

/* How much of the targets of stage-ins is in the stage already. */
int plan_measure_present(const struct plan *plan, int stagefd, unsigned threads,
	const atomic_bool *cancel, uint64_t *bytes, uint64_t *inodes, struct error *err);

void plan_free(struct plan *plan);

#endif
