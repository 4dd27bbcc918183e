/*
 * The project of a stage: where a tier has project_ids, its filesystem holds each job to its
 * --stage-size. An id belongs to the stage of one record, until the stage is gone.
 */
#ifndef STAGE_PROJECT_H
#define STAGE_PROJECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "spec/conf.h"
#include "stage/record.h"

/* Ids that records have, ascending. Zeroed it is empty; caller frees with project_ids_free. */
struct project_ids {
	uint32_t *items;
	size_t count;
};

/* The ids of all records of this node but self's. One that can not be read has none: what is in its
 * stage shows in the quota. */
int project_ids_load(const struct state *state, const struct record *self, struct project_ids *ids,
	struct error *err);
void project_ids_free(struct project_ids *ids);

/* The lowest id of first to last that ids does not have; 0: there is none. */
uint32_t project_next(const struct project_ids *ids, uint32_t first, uint32_t last);

/* Gives the stage, which is new and open as stagefd, a project of the tier's, with bytes as its hard
 * limit. The id is in the record, on disk (as planned), before anything has it. What fails is the
 * tier's fault; what was begun is for project_release. */
int project_hold(const struct state *state, const struct conf_tier *tier, int stagefd,
	struct record *record, uint64_t bytes, struct error *err);

/* The stage is gone: its limit goes too, and the id is taken out of the record (in memory). fd lies
 * on the same filesystem. Without a project, or where quotas are off by now, nothing is to be done. */
int project_release(int fd, struct record *record, struct error *err);

#endif
