/*
 * slurmstepd: what a job's tasks are given, and whether they may start.
 *
 * An error of a hook before the tasks are forked drains the node (and the job counts as COMPLETED),
 * so what is found there is kept and told by each task.
 */
#ifndef SPANK_STEP_H
#define SPANK_STEP_H

#include <slurm/spank.h>

#include "spank/plugin.h"

/* The job of this step has stage options. */
void step_asked(void);

/* Before the tasks: finds out where the stage is. */
void step_begin(spank_t sp, int count, char *arguments[]);

/* In each task, as root: gives it STAGE_DIR and STAGE_TIER. Nonzero, with the reason printed: it
 * may not start. */
int step_task(spank_t sp);

/* In each task, as the user: the batch script's output begins with the stage-in's line. */
void step_greet(void);

#endif
