/*
 * What the plugin asks of slurmctld: every libslurm call but those of spank.h is here.
 *
 * For the short-lived processes of prolog and epilog, for srun, and for a step before its tasks are
 * forked. Each call is a message to slurmctld and may take as long as MessageTimeout.
 */
#ifndef SPANK_JOB_H
#define SPANK_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

struct job {
	uint32_t id;
	uint32_t array_job_id;  /* the id where it is not an array's task */
	uint32_t array_task_id; /* 0 where it is not an array's task */
	uint32_t state;         /* JOB_* of slurm.h, with flags */
	uint32_t restarts;
	uint32_t time_limit; /* minutes, or INFINITE, NO_VAL */
	time_t submitted;
	bool batch;
	bool array_task;
	char *name;
	char *output; /* expanded; NULL where there is none */
	char *comment;
	char *admin_comment;
};

/* Loads job id. While slurmctld can not be reached it asks again, for patience seconds at most.
 * -ESRCH: there is no such job; -EIO: no answer. Caller frees with job_free. */
int job_load(uint32_t id, unsigned patience, struct job *job, struct error *err);
void job_free(struct job *job);

/* The name of a job's state for STAGE_JOB_STATE: COMPLETED, FAILED, CANCELLED, TIMEOUT ...;
 * REQUEUED for one that will run again. */
const char *job_state_name(uint32_t state);

/* Whether the job is (still) starting or running: not ending, ended, or to be run again. */
bool job_is_live(const struct job *job);

/* Sets the job's comments; a NULL is left as it is. Only while the job is live. */
int job_set_comments(
	const struct job *job, const char *comment, const char *admin_comment, struct error *err);

int job_set_time_limit(const struct job *job, uint32_t minutes, struct error *err);

/* Prints text on the terminal of the srun or salloc that waits for the job; best effort. */
void job_tell(const struct job *job, const char *text);

/* Ends the job as FAILED with exit code 1, without requeue or drain. As its owner or root. */
int job_fail(uint32_t id, struct error *err);

/* Ends this attempt and queues the job again. An error where the job may not be (srun,
 * --no-requeue). */
int job_requeue(const struct job *job, struct error *err);

int job_drain_node(const char *node, const char *reason, struct error *err);

/* Whether Slurm runs the prologs of all nodes before anything of the job starts (PrologFlags:
 * Alloc, and DeferBatch for a batch job). False where it can not be asked. */
bool job_waits_for_prologs(bool batch);

/* The place of node in nodelist, from 0, and the number of nodes. */
int job_node_place(
	const char *nodelist, const char *node, int *index, int *count, struct error *err);

#endif
