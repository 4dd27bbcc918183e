/*
 * What a worker does for a job: stage in, stage out, look for what is left. Runs as the user; the
 * messages that it sends are these, each with its "kind":
 *
 *   need      bytes inodes        what the stage-ins come to; waits for an answer before it goes on
 *   progress  files bytes steps   copied so far; steps: another number is sign that it gets on
 *   outcome   (outcome_json)      of each spec, once it is through
 *   rest      path                something in the stage is new or changed and was not sent back;
 *                                 without path: nothing is
 */
#ifndef STAGE_TASK_H
#define STAGE_TASK_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/error.h"
#include "spec/spec.h"
#include "stage/plan.h"
#include "stage/transfer.h"

#define TASK_NEED "need"
#define TASK_PROGRESS "progress"
#define TASK_OUTCOME "outcome"
#define TASK_REST "rest"

/* All of it borrowed. */
struct task {
	const struct spec_list *specs;
	const bool *skip; /* per spec: not now; NULL: none */
	struct plan_context plan;
	const char *stage; /* its absolute path */
	unsigned threads;
	const char *conflict_suffix, *job_id, *node;
	struct transfer_live *live;
};

/* Bodies for worker_run; ctx is a struct task. */
int task_in(void *ctx, int fd, const atomic_bool *stop, struct error *err);
int task_out(void *ctx, int fd, const atomic_bool *stop, struct error *err);
/* Only looks for what is new or changed, and sends rest. */
int task_look(void *ctx, int fd, const atomic_bool *stop, struct error *err);

/* For worker_options.beat: sends progress. */
void task_beat(void *ctx, int fd);

#endif
