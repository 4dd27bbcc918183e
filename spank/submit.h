/*
 * sbatch, salloc and srun: what the user asks for is collected, checked, and handed on with the
 * job.
 */
#ifndef SPANK_SUBMIT_H
#define SPANK_SUBMIT_H

#include <slurm/spank.h>

#include "spank/plugin.h"

/* Before the options are read: an enclosing job's own are forgotten. */
void submit_begin(void);

/* One option's value. Nonzero, with a message printed: refused. */
int submit_option(enum plugin_option option, const char *value);

/* After the options: hands them to the prolog and epilog of the job. */
int submit_end(spank_t sp, int count, char *arguments[]);

/* srun has its allocation, and its nodes' prologs are over: fails if the stage-in did. */
int submit_start(spank_t sp);

#endif
