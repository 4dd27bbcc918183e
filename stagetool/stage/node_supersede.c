#include "stage/node_supersede.h"

#include "base/cleanup.h"
#include "stage/fields.h"
#include "stage/node_start_private.h"
#include "stage/stage.h"
#include "stage/status.h"
#include "stage/tier.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* An epilog of the earlier attempt that is still at work is left to it. */
#define EARLIER_WAIT 10

struct supersede {
	const struct node *node;
	struct record *record; /* of the earlier attempt */
	bool told, rest;       /* the look into its stage: done, and found something */
};

static int supersede_heard(
	void *ctx, struct worker *worker, const json_t *message, struct error *err)
{
	struct supersede *earlier = ctx;
	const char *kind = json_string_value(json_object_get(message, "kind"));

	(void)worker;
	if (strcmp(kind, TASK_REST))
		return error_set(err, -EBADMSG, "\"kind\": '%.40s' is not known", kind);
	earlier->told = true;
	earlier->rest = json_object_get(message, "path") != NULL;
	return 0;
}

/* Whether the stage of an attempt that was never brought to its end holds anything that was not
 * brought in. What can not be told counts as yes. */
static bool supersede_has_results(struct supersede *earlier, int tierfd)
{
	const struct record *record = earlier->record;
	struct error err = ERROR_INIT;
	autoclose int stagefd = stage_open(tierfd, record, &err);
	struct priv_user user;
	struct task task = { .plan.stagefd = stagefd };
	int keep[] = { stagefd };
	struct worker_options options = {
		.user = &user,
		.keep = keep,
		.n_keep = 1,
		.ctx = &task,
		.body = task_look,
		.parent_ctx = earlier,
		.heard = supersede_heard,
	};

	if (stagefd < 0)
		return stagefd != -ENOENT;
	if (priv_user_get((uid_t)record->uid, (gid_t)record->gid, &user, &err))
		return true;
	if (worker_run(&options, &err))
		earlier->told = false;
	priv_user_free(&user);
	return !earlier->told || earlier->rest;
}

/* What was tried and failed, or died while it was tried, has another reason. */
static int supersede_keep(struct supersede *earlier, struct error *err)
{
	const struct node *node = earlier->node;
	struct record *record = earlier->record;
	autofree char *reason = NULL;
	int code = 0;

	if (record->state == RECORD_READY || !record->reason)
		code = record_set(&record->reason,
			"the attempt ended without its stage-out, and the job was started again",
			err);
	else if (asprintf(&reason, "%s; the job was started again", record->reason) < 0)
		code = error_sys(err, -ENOMEM, "job %s", record->job_id);
	else
		code = record_set(&record->reason, reason, err);
	if (!record->until)
		record->until = (uint64_t)time(NULL) + node->conf->keep_failed;
	return code ? code : record_save(node->state, record, RECORD_KEPT, err);
}

static int supersede_remove(struct supersede *earlier, int tierfd, struct error *err)
{
	const struct node *node = earlier->node;
	struct record *record = earlier->record;
	enum record_state end = record->state == RECORD_READY || record->state == RECORD_DONE
					? RECORD_DONE
					: RECORD_FAILED;
	int code = record_save(node->state, record, end, err);

	if (!code)
		code = stage_remove(tierfd, record, err);
	return code ? code : record_save(node->state, record, end, err);
}

static int supersede_settle(struct supersede *earlier, struct error *err)
{
	struct record *record = earlier->record;
	autoclose int tierfd = -1;
	struct conf_tier tier;

	if (record->state == RECORD_KEPT || record->state == RECORD_RETURNING)
		return supersede_keep(earlier, err);
	node_record_tier(record, &tier);
	tierfd = tier_open(&tier, err);
	if (tierfd < 0)
		return tierfd;
	if (record->state == RECORD_READY && supersede_has_results(earlier, tierfd))
		return supersede_keep(earlier, err);
	return supersede_remove(earlier, tierfd, err);
}

int node_supersede(
	const struct node *node, struct record *record, uint64_t later, struct error *err)
{
	struct supersede earlier = { .node = node, .record = record };

	if (!record->present || record->superseded)
		return 0;
	record->superseded = later;
	return supersede_settle(&earlier, err);
}

struct later {
	const struct state *state;
	uint64_t restart;
	bool live; /* an attempt of the job may be running */
};

static int later_one(void *ctx, const char *name, struct error *err)
{
	struct later *later = ctx;
	uint64_t restart = strtoull(strchr(name, '.') + 1, NULL, 10);
	struct record *record = NULL;

	(void)err;
	if (restart > later->restart)
		later->restart = restart;
	if (record_load(later->state, name, &record, NULL))
		return 0;
	later->live |= record->state <= RECORD_READY;
	record_free(record);
	return 0;
}

int node_later(const struct state *state, const struct record *record, uint64_t *restart,
	bool *live, struct error *err)
{
	struct later later = { .state = state, .restart = record->restart };
	int code = record_each(state, record->job_id, ".json", later_one, &later, err);

	*restart = later.restart > record->restart ? later.restart : 0;
	*live = later.live;
	return code;
}

/* Trouble with an earlier attempt does not keep this one from starting. */
static void supersede_clear(struct node_start *start, const char *name)
{
	const struct state *state = start->node->state;
	struct record *record = NULL;
	struct error err = ERROR_INIT;
	autofree char *file = NULL;
	int lock, code;

	if (asprintf(&file, "%s.lock", name) < 0)
		return;
	lock = state_lock(state->jobs, file, EARLIER_WAIT, &err);
	code = lock < 0 ? lock : record_load(state, name, &record, &err);
	if (!code) {
		code = node_supersede(start->node, record, start->record->restart, &err);
		status_publish(state, record, NULL, NULL);
	}
	if (code)
		node_warn(start->node, "job %s, earlier attempt %s: %s", start->record->job_id,
			name, err.text);
	state_unlock_remove(state->jobs, file, lock);
	record_free(record);
}

static int supersede_one(void *ctx, const char *name, struct error *err)
{
	struct node_start *start = ctx;
	uint64_t restart = strtoull(strchr(name, '.') + 1, NULL, 10);

	if (restart > start->record->restart) {
		start->blame = NODE_JOB;
		return error_set(err, -ESTALE, "restart %" PRIu64 " of job %s was started since",
			restart, start->record->job_id);
	}
	if (restart < start->record->restart)
		supersede_clear(start, name);
	return 0;
}

int node_start_supersede(struct node_start *start, struct error *err)
{
	return record_each(
		start->node->state, start->record->job_id, ".json", supersede_one, start, err);
}
