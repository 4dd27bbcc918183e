#include "stage/node_start.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "spec/handoff.h"
#include "stage/node_start_private.h"
#include "stage/project.h"
#include "stage/stage.h"
#include "stage/status.h"
#include "stage/tier.h"
#include "stage/views.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* For a twin of this process to come to its end: as long as any stage-in may take. */
#define TWIN_WAIT (24 * 3600)

static int start_decode(struct node_start *start, struct error *err)
{
	const struct node_job *job = start->node->job;
	int code = spec_list_decode(job->specs, &start->specs, err);

	if (code)
		return error_prefix(err, code, "what the job asked for can not be read");
	start->tier = conf_tier(start->node->conf, start->specs.tier, err);
	if (!start->tier)
		return err->code ? err->code : -ENOENT;
	for (size_t i = 0; i < start->specs.count; i++)
		if (start->specs.items[i].dist == SPEC_DIST_FIRST && !job->node_index)
			return error_set(err, -EINVAL,
				"stage-in %s: dist=first: which of the job's nodes this is, is not "
				"known (%s)",
				start->specs.items[i].text, HANDOFF_NODE_INDEX);
	return 0;
}

static int start_lookup(struct node_start *start, struct error *err)
{
	const struct node_job *job = start->node->job;

	return priv_user_get((uid_t)job->uid, (gid_t)job->gid, &start->user, err);
}

static int start_new_record(struct node_start *start, struct error *err)
{
	const struct node_job *job = start->node->job;
	struct record *record = calloc(1, sizeof(*record));
	autofree char *boot = node_boot_id();
	int code;

	if (!record)
		return error_sys(err, -ENOMEM, "record");
	start->record = record;
	record->restart = job->restart;
	record->uid = job->uid;
	record->gid = job->gid;
	record->node_count = job->node_count;
	record->created = (uint64_t)time(NULL);
	code = record_set(&record->job_id, job->job_id, err) ||
	       record_set(&record->user, job->user ? job->user : start->user.name, err) ||
	       record_set(&record->node, job->node, err) ||
	       record_set(&record->boot_id, boot, err) ||
	       record_set(&record->tier, start->tier->name, err) ||
	       record_set(&record->tier_path, start->tier->path, err) ||
	       record_set(&record->specs, job->specs, err) ||
	       record_set(&record->job_name, job->name, err) ||
	       record_set(&record->array_job_id, job->array_job_id, err) ||
	       record_set(&record->array_task_id, job->array_task_id, err) ||
	       record_set(&record->node_index, job->node_index, err);
	if (!code && job->output && job->output[0] == '/')
		code = record_set(&record->output, job->output, err);
	return code ? -ENOMEM : node_expect(record, &start->specs, err);
}

static int start_views(
	const struct node_start *start, struct handoff *handoff, struct error *err)
{
	struct symbols symbols;
	struct plan_context context = { .symbols = &symbols };
	uint64_t index = 0;

	node_symbols(start->record, &symbols);
	if (start->record->node_index)
		parse_number(start->record->node_index, 0, UINT32_MAX, &index, NULL);
	context.node_index = (unsigned)index;
	return views_make(&start->specs, &context, handoff, err);
}

static int start_handoff(struct node_start *start, struct error *err)
{
	autofree char *dir = stage_path(start->record), *notice = NULL;
	struct handoff handoff = { .dir = dir, .tier = start->record->tier };
	int code;

	if (!dir)
		return error_sys(err, -ENOMEM, "handoff");
	if (start->record->notice && asprintf(&notice, "stagetool: %s: %s", start->record->node,
					     start->record->notice) < 0)
		return error_sys(err, -ENOMEM, "handoff");
	handoff.notice = notice;
	code = start_views(start, &handoff, err);
	if (!code)
		code = handoff_write(
			start->node->conf->state_dir, start->record->job_id, &handoff, err);
	handoff_free_views(&handoff);
	return code;
}

/* A record of this very attempt: a twin was here (a site's Prolog beside the plugin), or we were
 * and died. */
static int start_resume(struct node_start *start, struct record *found, struct error *err)
{
	autoclose int tierfd = -1;
	struct conf_tier tier;
	int code;

	record_free(start->record);
	start->record = found;
	switch (found->state) {
	case RECORD_READY:
		code = start_handoff(start, err);
		if (!code)
			node_verdict_set(start->verdict, NODE_FINE,
				strdup(found->notice ? found->notice : "nothing to stage in"));
		return code ? code : 1;
	case RECORD_FAILED:
		node_verdict_set(start->verdict, NODE_JOB,
			strdup(found->reason ? found->reason : "the stage-in failed"));
		return 1;
	case RECORD_PLANNED:
	case RECORD_STAGING:
		break;
	case RECORD_RETURNING:
	case RECORD_KEPT:
	case RECORD_DONE:
		start->blame = NODE_JOB;
		return error_set(err, -EEXIST,
			"job %s, restart %" PRIu64 " was on this node before (%s)", found->job_id,
			found->restart, record_state_name(found->state));
	}
	node_record_tier(found, &tier);
	tierfd = tier_open(&tier, err);
	code = tierfd < 0 ? tierfd : stage_remove(tierfd, found, err);
	if (code)
		return code;
	start->record = NULL;
	record_free(found);
	code = start_new_record(start, err);
	start->ours = !code;
	return code;
}

static int start_claim(struct node_start *start, struct error *err)
{
	const struct state *state = start->node->state;
	autofree char *name = NULL, *lock = NULL;
	struct error loading = ERROR_INIT;
	struct record *found;
	int code = start_new_record(start, err);

	if (code)
		return code;
	name = record_name(start->record, "");
	lock = record_name(start->record, ".lock");
	if (!name || !lock)
		return error_sys(err, -ENOMEM, "record");
	start->lock = state_lock(state->jobs, lock, TWIN_WAIT, err);
	if (start->lock < 0)
		return start->lock;
	code = record_load(state, name, &found, &loading);
	if (!code)
		return start_resume(start, found, err);
	start->ours = code == -ENOENT;
	return start->ours ? 0 : error_set(err, code, "%s", loading.text);
}

static int start_check_tier(struct node_start *start, struct error *err)
{
	autofree char *name = record_name(start->record, "");

	if (!name)
		return error_sys(err, -ENOMEM, "record");
	start->tierfd = tier_open(start->tier, err);
	if (start->tierfd < 0)
		return start->tierfd;
	return tier_probe(start->tier, start->tierfd, name, err);
}

static int start_make_stage(struct node_start *start, struct error *err)
{
	autofree char *moved = NULL;
	int code = stage_set_aside(start->tierfd, start->record, &moved, err);

	if (code)
		return code;
	if (moved)
		node_warn(start->node,
			"%s: a directory that no record knows was in the way, moved to %s",
			start->record->tier_path, moved);
	start->record->present = true;
	code = record_save(start->node->state, start->record, RECORD_PLANNED, err);
	if (code) {
		start->record->present = false;
		return code;
	}
	start->stagefd = stage_create(start->tierfd, start->record, err);
	if (start->stagefd < 0)
		return start->stagefd;
	if (!start->tier->project_first || !start->specs.size)
		return 0;
	return project_hold(start->node->state, start->tier, start->stagefd, start->record,
		start->specs.size, err);
}

static void start_publish(struct node_start *start)
{
	struct error err = ERROR_INIT;

	if (status_publish(start->node->state, start->record, NULL, &err))
		node_warn(start->node, "%s", err.text);
}

/* The record comes first: a job whose steps have been told of a stage must have one. */
static int start_finish(struct node_start *start, struct error *err)
{
	struct record *record = start->record;
	autofree char *notice = node_start_notice(start);
	int code = record_set(&record->notice, notice, err);

	record->staged_bytes = start->used.bytes;
	record->staged_inodes = start->used.inodes;
	if (!code)
		code = record_save(start->node->state, record, RECORD_READY, err);
	if (!code)
		code = start_handoff(start, err);
	if (code)
		return code;
	start_publish(start);
	node_verdict_set(
		start->verdict, NODE_FINE, strdup(notice ? notice : "nothing to stage in"));
	return 0;
}

/* Nothing of a failed stage-in stays but the reason. */
static void start_undo(struct node_start *start, const struct error *failure)
{
	const struct node *node = start->node;
	struct record *record = start->record;
	struct handoff handoff = { 0 };
	struct error err = ERROR_INIT;
	autofree char *name = record ? record_name(record, "") : NULL;

	if (record && start->ours) {
		/* what a process that lives on may write to is left to the reap after its end */
		if (record->present && start->tierfd >= 0 && !start->left &&
			stage_remove(start->tierfd, record, &err))
			node_warn(node, "%s", err.text);
		record_set(&record->reason, failure->text, NULL);
		/* a job that goes elsewhere may come back with the same count, and must find no
		 * verdict */
		if (start->blame == NODE_NODE && !record->present && name) {
			status_withdraw(node->state, record);
			if (record_remove(node->state, name, &err))
				node_warn(node, "%s", err.text);
			return;
		}
		if (record_save(node->state, record, RECORD_FAILED, &err))
			node_warn(node, "%s", err.text);
		start_publish(start);
	}
	handoff.failed = (char *)(uintptr_t)failure->text;
	if (start->blame == NODE_JOB &&
		handoff_write(node->conf->state_dir, node->job->job_id, &handoff, &err))
		node_warn(node, "%s", err.text);
}

static void start_release(struct node_start *start)
{
	autofree char *lock = start->record ? record_name(start->record, ".lock") : NULL;
	bool live = start->record && start->record->state == RECORD_READY;

	if (start->stagefd >= 0)
		close(start->stagefd);
	if (start->tierfd >= 0)
		close(start->tierfd);
	/* the file of the lock stays with a record that others have to reckon with */
	if (start->lock >= 0 && (live || !lock))
		close(start->lock);
	else if (start->lock >= 0)
		state_unlock_remove(start->node->state->jobs, lock, start->lock);
	spec_list_free(&start->specs);
	priv_user_free(&start->user);
	record_free(start->record);
}

void node_start(const struct node *node, struct node_verdict *verdict)
{
	static const struct {
		int (*run)(struct node_start *start, struct error *err);
		enum node_blame blame;
	} steps[] = {
		{ start_decode, NODE_JOB },
		{ start_lookup, NODE_NODE },
		{ start_claim, NODE_NODE },
		{ node_start_supersede, NODE_NODE },
		{ start_check_tier, NODE_NODE },
		{ start_make_stage, NODE_NODE },
		{ node_start_bring, NODE_JOB },
		{ start_finish, NODE_NODE },
	};
	struct node_start start = {
		.node = node,
		.verdict = verdict,
		.lock = -1,
		.tierfd = -1,
		.stagefd = -1,
	};
	struct error err = ERROR_INIT;
	int code = 0;

	clock_gettime(CLOCK_MONOTONIC, &start.began);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !code; i++) {
		start.blame = steps[i].blame;
		code = steps[i].run(&start, &err);
	}
	if (code < 0) {
		node_verdict_set(verdict, start.blame, strdup(err.text));
		start_undo(&start, &err);
	}
	start_release(&start);
}
