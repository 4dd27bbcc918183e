/*
 * What a stage-out would send, without sending it.
 */
#ifndef STAGE_CHANGES_H
#define STAGE_CHANGES_H

#include "stage/manifest.h"
#include "stage/plan.h"

struct changes {
	uint64_t entries, bytes; /* new or changed */
	uint64_t unchanged;
};

/* Looks at the local side of an item of plan_out alone. What can not be read counts nothing.
 * -ECANCELED. */
int changes_find(const struct plan_item *item, int stagefd, unsigned threads,
	const atomic_bool *cancel, struct changes *changes, struct error *err);

/* The same by a manifest that is open already (a process opens it once); NULL: everything is new. */
int changes_count(const struct plan_item *item, int stagefd, struct manifest *manifest,
	unsigned threads, const atomic_bool *cancel, struct changes *changes, struct error *err);

#endif
