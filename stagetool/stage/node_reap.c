#include "stage/node_reap.h"

#include "base/cleanup.h"
#include "spec/handoff.h"
#include "stage/node_return.h"
#include "stage/node_settle.h"
#include "stage/status.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/* A clock that was set back must not make anything wait for longer than this. */
#define WAIT_MOST (6 * 3600)
/* Where the user can not be told, their results stay for so much longer. */
#define UNTOLD_GRACE (24 * 3600)

/* What Slurm calls the end of a job whose node went down. */
#define JOB_STATE_NODE_FAIL "NODE_FAIL"

struct reap {
	const struct node *node;
	const struct reap_options *options;
	const char *boot_id;
};

const char *reap_end_name(enum reap_end end)
{
	static const char *const names[] = {
		[REAP_NOTHING] = "nothing",
		[REAP_RUNNING] = "running",
		[REAP_BUSY] = "busy",
		[REAP_CLEARED] = "cleared",
		[REAP_DELIVERED] = "delivered",
		[REAP_EXPIRED] = "expired",
		[REAP_LOST] = "lost",
		[REAP_WAITING] = "waiting",
		[REAP_SUPERSEDED] = "superseded",
		[REAP_KEPT] = "kept",
		[REAP_FAILED] = "failed",
	};

	return names[end];
}

static bool reap_is_over(const struct record *record)
{
	return record->until && record->until <= (uint64_t)time(NULL);
}

/* Only what is kept waits: what died while it was sent has not failed. */
static bool reap_is_due(const struct reap *reap, const struct record *record)
{
	uint64_t now = (uint64_t)time(NULL);

	return record->state != RECORD_KEPT || reap->options->now || record->next_try <= now ||
	       record->next_try > now + WAIT_MOST || reap_is_over(record);
}

/* The user is told first. The record comes before the removal: nobody sends what is half gone. */
static int reap_expire(
	const struct reap *reap, struct record *record, enum reap_end *end, struct error *err)
{
	autofree char *note = node_expired_notice(record), *reason = NULL;
	struct error telling = ERROR_INIT;
	int told = node_tell(record, note, &telling), code;

	if (told && told != -ENOENT) {
		node_warn(reap->node, "%s", telling.text);
		if ((uint64_t)time(NULL) < record->until + UNTOLD_GRACE)
			return 0;
	}
	if (asprintf(&reason, "expired: %s", record->reason ? record->reason : "not sent") < 0)
		return error_sys(err, -ENOMEM, "job %s", record->job_id);
	code = record_set(&record->reason, reason, err);
	if (!code)
		code = record_save(reap->node->state, record, RECORD_FAILED, err);
	if (!code)
		code = node_clear(reap->node, record, RECORD_FAILED, err);
	*end = code ? REAP_FAILED : REAP_EXPIRED;
	return code;
}

static int reap_kept(const struct reap *reap, struct record *record, int lock, enum reap_end *end,
	struct error *err)
{
	bool superseded = record->superseded != 0;
	int code = 0;

	*end = superseded ? REAP_SUPERSEDED : REAP_WAITING;
	if (!superseded && reap_is_due(reap, record)) {
		code = node_return_and_tell(reap->node, record, lock, err);
		*end = REAP_KEPT;
	}
	if (code) {
		*end = REAP_FAILED;
		return code;
	}
	if (record->state == RECORD_DONE)
		*end = REAP_DELIVERED;
	else if (record->state == RECORD_FAILED)
		*end = REAP_LOST;
	else if (record->state == RECORD_KEPT && reap_is_over(record) &&
		 !(reap->node->stopped && *reap->node->stopped))
		return reap_expire(reap, record, end, err);
	return 0;
}

/* The job is over, and nobody has said how it ended. */
static int reap_ready(const struct reap *reap, struct record *record, int lock, enum reap_end *end,
	struct error *err)
{
	struct error handing = ERROR_INIT;
	int code;

	*end = REAP_RUNNING;
	if (!reap->options->boot || !reap->boot_id || !record->boot_id ||
		!strcmp(record->boot_id, reap->boot_id))
		return 0;
	code = record_set(&record->job_state, JOB_STATE_NODE_FAIL, err);
	if (!code)
		code = reap_kept(reap, record, lock, end, err);
	if (handoff_remove(reap->node->conf->state_dir, record->job_id, &handing))
		node_warn(reap->node, "%s", handing.text);
	return code;
}

static int reap_settle(const struct reap *reap, struct record *record, int lock, enum reap_end *end,
	struct error *err)
{
	bool present = record->present;
	int code = node_settle_superseded(reap->node, record, err);

	*end = REAP_FAILED;
	if (code)
		return code;
	switch (record->state) {
	case RECORD_PLANNED:
	case RECORD_STAGING:
		code = node_clear_unfinished(reap->node, record, err);
		break;
	case RECORD_FAILED:
	case RECORD_DONE:
		code = node_clear(reap->node, record, record->state, err);
		if (!code && !present)
			*end = REAP_NOTHING;
		break;
	case RECORD_READY:
		return reap_ready(reap, record, lock, end, err);
	case RECORD_RETURNING:
	case RECORD_KEPT:
		return reap_kept(reap, record, lock, end, err);
	}
	if (!code && *end == REAP_FAILED && !record->present)
		*end = REAP_CLEARED;
	return code;
}

static int reap_locked(const struct reap *reap, const char *name, int lock, bool *live)
{
	const struct state *state = reap->node->state;
	enum reap_end end = REAP_FAILED;
	struct record *record = NULL;
	struct error err = ERROR_INIT;
	int code = record_load(state, name, &record, &err);

	/* it went since the directory was read */
	if (code == -ENOENT)
		return 0;
	if (!code) {
		code = reap_settle(reap, record, lock, &end, &err);
		if (end != REAP_NOTHING && end != REAP_RUNNING && end != REAP_WAITING)
			status_publish(state, record, NULL, NULL);
	}
	*live = code ? !record || record->state == RECORD_READY
		     : record->state == RECORD_READY;
	reap->options->told(reap->options->ctx, name, record, end,
		code		 ? err.text
		: record	 ? record->reason
				 : NULL);
	record_free(record);
	return code;
}

/* Why, where it is a process that could not be ended. */
static void reap_tell_busy(const struct reap *reap, const char *name)
{
	struct record *record = NULL;
	const char *reason = NULL;

	if (!record_load(reap->node->state, name, &record, NULL) &&
		(record->state == RECORD_KEPT || record->state == RECORD_FAILED))
		reason = record->reason;
	reap->options->told(reap->options->ctx, name, record, REAP_BUSY, reason);
	record_free(record);
}

static int reap_one(void *ctx, const char *name, struct error *err)
{
	const struct reap *reap = ctx;
	const struct state *state = reap->node->state;
	struct error locking = ERROR_INIT;
	autofree char *file = NULL;
	bool live = false;
	int lock;

	if (reap->node->stopped && *reap->node->stopped)
		return error_set(err, -ECANCELED, "it was told to stop");
	if (asprintf(&file, "%s.lock", name) < 0)
		return error_sys(err, -ENOMEM, "record %s", name);
	lock = state_lock(state->jobs, file, 0, &locking);
	if (lock == -EBUSY)
		reap_tell_busy(reap, name);
	else if (lock < 0)
		reap->options->told(reap->options->ctx, name, NULL, REAP_FAILED, locking.text);
	if (lock < 0)
		return 0;
	reap_locked(reap, name, lock, &live);
	/* the file of the lock stays with a record that others have to reckon with */
	if (live)
		close(lock);
	else
		state_unlock_remove(state->jobs, file, lock);
	return 0;
}

int node_reap(const struct node *node, const struct reap_options *options, struct error *err)
{
	autofree char *boot_id = node_boot_id();
	struct reap reap = { node, options, boot_id };

	return record_each(node->state, options->job_id, ".json", reap_one, &reap, err);
}
