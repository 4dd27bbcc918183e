#include "stage/node_end.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "spec/handoff.h"
#include "stage/node_settle.h"
#include "stage/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* For a prolog or a reap of the same attempt that is still at work. */
#define END_WAIT 300
#define PRUNE_AFTER (24 * 3600)

struct end {
	const struct node *node;
	struct node_verdict *verdict;
	unsigned done;
};

static int end_found(void *ctx, const char *name, struct error *err)
{
	(void)ctx;
	(void)name;
	(void)err;
	return 1;
}

bool node_end_is_needed(const struct state *state, const char *job_id)
{
	return record_each(state, job_id, ".json", end_found, NULL, NULL) != 0;
}

/* Slurm says COMPLETED for a cancelled job too, where only a site's own Epilog asks: the plugin
 * knows better. */
static const char *end_job_state(const struct node_job *job)
{
	const char *code = getenv("SLURM_JOB_EXIT_CODE");

	if (job->state && strcmp(job->state, "UNKNOWN"))
		return job->state;
	if (!code || !*code)
		return NULL;
	return strcmp(code, "0") ? "FAILED" : "COMPLETED";
}

/* The job is over and results may be in its stage. */
static int end_return(struct end *end, struct record *record, int lock, struct error *err)
{
	const struct node_job *job = end->node->job;
	int code = 0;

	if (job->output && job->output[0] == '/')
		code = record_set(&record->output, job->output, err);
	if (!code && end_job_state(job))
		code = record_set(&record->job_state, end_job_state(job), err);
	if (code)
		return code;
	code = node_return_and_tell(end->node, record, lock, err);
	if (record->state != RECORD_DONE && record->reason)
		node_verdict_set(end->verdict, NODE_JOB, strdup(record->reason));
	end->done++;
	return code;
}

static int end_settle(struct end *end, struct record *record, int lock, struct error *err)
{
	enum record_state before = record->state;
	int code = node_settle_superseded(end->node, record, err);

	if (code)
		return code;
	switch (record->state) {
	case RECORD_PLANNED:
	case RECORD_STAGING:
		return node_clear_unfinished(end->node, record, err);
	case RECORD_FAILED:
	case RECORD_DONE:
		return node_clear(end->node, record, record->state, err);
	case RECORD_READY:
	case RECORD_RETURNING:
		return end_return(end, record, lock, err);
	case RECORD_KEPT:
		if (before != RECORD_KEPT && record->reason)
			node_verdict_set(end->verdict, NODE_JOB, strdup(record->reason));
		break;
	}
	return 0;
}

/* Where a record is without its lock; ready where it can not be read. */
static enum record_state end_look(const struct state *state, const char *name)
{
	enum record_state at = RECORD_READY;
	struct record *record = NULL;

	if (record_load(state, name, &record, NULL) == 0)
		at = record->state;
	record_free(record);
	return at;
}

/* A reap clears it away, whatever its lock is waited for. */
static bool end_is_reaps(enum record_state at)
{
	return at == RECORD_KEPT || at == RECORD_FAILED || at == RECORD_DONE;
}

/* A reap may be at work on it, or a process that can not be ended hold it, for as long as a server does
 * not answer. What is kept is the reap's anyway, and what is left of a stage-in too; what is being sent
 * is in good hands. None of it is the node's fault. */
static int end_busy(struct end *end, enum record_state before, enum record_state now,
	struct error *busy, struct error *err)
{
	if (end_is_reaps(before))
		return 0;
	if (now == RECORD_READY)
		return error_set(err, busy->code, "%s", busy->text);
	node_verdict_set(end->verdict, NODE_JOB,
		strdup(now == RECORD_PLANNED || now == RECORD_STAGING
				? "a process of the stage-in has not ended"
				: "another process is still sending the results"));
	return 0;
}

static int end_attempt(struct end *end, const char *name, struct error *err)
{
	const struct state *state = end->node->state;
	enum record_state before = end_look(state, name);
	struct error locking = ERROR_INIT;
	struct record *record = NULL;
	autofree char *file = NULL;
	int lock, code;

	if (asprintf(&file, "%s.lock", name) < 0)
		return error_sys(err, -ENOMEM, "record %s", name);
	lock = state_lock(state->jobs, file, end_is_reaps(before) ? 0 : END_WAIT, &locking);
	if (lock == -EBUSY)
		return end_busy(end, before, end_look(state, name), &locking, err);
	if (lock < 0)
		error_set(err, lock, "%s", locking.text);
	code = lock < 0 ? lock : record_load(state, name, &record, err);
	if (!code) {
		code = end_settle(end, record, lock, err);
		status_publish(state, record, NULL, NULL);
	}
	/* what has still to be brought to its end keeps its lock's file, so that others count it */
	if (!code || (record && record->state != RECORD_READY))
		state_unlock_remove(state->jobs, file, lock);
	else if (lock >= 0)
		close(lock);
	record_free(record);
	return code;
}

/* One attempt's trouble does not keep the others from their end. */
static int end_each(void *ctx, const char *name, struct error *err)
{
	struct end *end = ctx;
	struct error own = ERROR_INIT;

	(void)err;
	if (end_attempt(end, name, &own))
		node_verdict_set(end->verdict, NODE_NODE, strdup(own.text));
	return 0;
}

void node_end(const struct node *node, struct node_verdict *verdict)
{
	struct end end = { node, verdict, 0 };
	struct error err = ERROR_INIT;

	node_verdict_set(verdict, NODE_FINE, NULL);
	if (record_each(node->state, node->job->job_id, ".json", end_each, &end, &err))
		node_verdict_set(verdict, NODE_NODE, strdup(err.text));
	err.code = 0;
	if (handoff_remove(node->conf->state_dir, node->job->job_id, &err))
		node_warn(node, "%s", err.text);
	if (verdict->blame == NODE_FINE)
		node_verdict_set(verdict, NODE_FINE,
			strdup(end.done ? "all results are back" : "nothing to do"));
}

static int prune_one(void *ctx, const char *name, struct error *err)
{
	const struct node *node = ctx;
	struct record *record = NULL;
	autofree char *file = NULL, *json = NULL;
	struct stat st;
	int lock;

	(void)err;
	if (asprintf(&json, "%s.json", name) < 0 || asprintf(&file, "%s.lock", name) < 0 ||
		fstatat(node->state->jobs, json, &st, AT_SYMLINK_NOFOLLOW) ||
		time(NULL) - st.st_mtime < PRUNE_AFTER)
		return 0;
	lock = state_lock(node->state->jobs, file, 0, NULL);
	if (lock < 0)
		return 0;
	if (!record_load(node->state, name, &record, NULL) && !record->present &&
		(record->state == RECORD_DONE || record->state == RECORD_FAILED)) {
		status_withdraw(node->state, record);
		record_remove(node->state, name, NULL);
	}
	if (record && record->state == RECORD_READY)
		close(lock);
	else
		state_unlock_remove(node->state->jobs, file, lock);
	record_free(record);
	return 0;
}

void node_prune(const struct node *node)
{
	struct error err = ERROR_INIT;

	if (record_each(node->state, NULL, ".json", prune_one, (void *)(uintptr_t)node, &err))
		node_warn(node, "%s", err.text);
}
