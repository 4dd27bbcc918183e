/*
 * How the plugin and the tool talk: names in the environment, lines on a pipe, one file per job.
 *
 * plugin -> tool, environment of prolog and epilog (beside what Slurm gives a Prolog script):
 *   SPANK_STAGE_SPECS       spec_list_encode() of the job's options, carried by Slurm
 *   STAGE_JOB_NAME STAGE_ARRAY_JOB_ID STAGE_ARRAY_TASK_ID
 *   STAGE_NODE_INDEX STAGE_NODE_COUNT
 *   STAGE_JOB_STDOUT        the job's output file, expanded; unset where there is none
 *   STAGE_JOB_STATE         epilog: COMPLETED FAILED CANCELLED TIMEOUT OUT_OF_MEMORY NODE_FAIL PREEMPTED ...
 *                           REQUEUED where Slurm will run the job again, UNKNOWN where it could not be asked
 *   STAGE_CONF              the configuration file, if plugstack.conf says conf=; unset: the default
 *                           one. Tasks of a job that stages have it too.
 *   STAGE_REPORT_FD         where the tool writes report lines
 * SLURM_JOB_RESTART_COUNT is this attempt's in the prolog, but in the epilog of a job that is being requeued
 * it is already the next one's: the epilog goes by the record that it finds on the node.
 * tool -> plugin, lines on that descriptor:
 *   progress TEXT           now and then
 *   verdict ok TEXT         last; TEXT is one line for people
 *   verdict job TEXT        the job must fail, for this reason
 *   verdict node TEXT       the node is broken: to be drained
 * No verdict at all (a crash) is "verdict job". Exit status of prolog: 0, 1 (job), 6 (node).
 */
#ifndef SPEC_HANDOFF_H
#define SPEC_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define HANDOFF_SPECS "STAGE_SPECS"
#define HANDOFF_SPANK_SPECS "SPANK_STAGE_SPECS"
/* The plugin's own: the job was made by srun, which looks after its failure itself. */
#define HANDOFF_CLIENT "STAGE_CLIENT"
#define HANDOFF_SPANK_CLIENT "SPANK_STAGE_CLIENT"
#define HANDOFF_CLIENT_SRUN "srun"
#define HANDOFF_JOB_NAME "STAGE_JOB_NAME"
#define HANDOFF_ARRAY_JOB_ID "STAGE_ARRAY_JOB_ID"
#define HANDOFF_ARRAY_TASK_ID "STAGE_ARRAY_TASK_ID"
#define HANDOFF_NODE_INDEX "STAGE_NODE_INDEX"
#define HANDOFF_NODE_COUNT "STAGE_NODE_COUNT"
#define HANDOFF_JOB_STDOUT "STAGE_JOB_STDOUT"
#define HANDOFF_JOB_STATE "STAGE_JOB_STATE"
#define HANDOFF_CONF "STAGE_CONF"
#define HANDOFF_REPORT_FD "STAGE_REPORT_FD"

#define HANDOFF_EXIT_JOB 1
#define HANDOFF_EXIT_NODE 6

/* What the tasks also see at a place of their own namespace. */
struct handoff_view {
	char *local; /* below dir */
	char *place; /* absolute */
	bool optional; /* nothing is to be seen where local is not there */
};

/* What the steps of a job on this node need, from the prolog: the file STATE_DIR/steps/JOBID, root's, 0644
 * (state_dir and steps are 0711). Without a stage: failed says why. */
struct handoff {
	char *dir; /* STAGE_DIR; NULL if failed */
	char *tier; /* STAGE_TIER */
	char *failed; /* one line for people; NULL if all is well */
	char *notice; /* the stage-in's line for the job's output; NULL: none */
	struct handoff_view *views; /* in this order */
	size_t n_views;
};

/* Writes the file anew under another name, durable, and renames it; makes state_dir and steps where they are
 * missing. failed and notice may hold any bytes, control bytes are escaped; what is long (16 KiB) is cut. job_id: digits (-EINVAL). */
int handoff_write(const char *state_dir, const char *job_id, const struct handoff *handoff,
	struct error *err);

/* -ENOENT where the job has none (it did not ask for staging); -EPERM for a file that is not root's (or of
 * the caller's effective uid, for tests) or that others can write; -EBADMSG for a damaged one. Caller frees
 * with handoff_free; *handoff is untouched on failure. */
int handoff_read(const char *state_dir, const char *job_id, struct handoff *handoff,
	struct error *err);

/* What is missing already is success. */
int handoff_remove(const char *state_dir, const char *job_id, struct error *err);
void handoff_free(struct handoff *handoff);
void handoff_free_views(struct handoff *handoff);

#endif
