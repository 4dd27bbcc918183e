#include "stage/node_return.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "report/numbers.h"
#include "stage/project.h"
#include "stage/stage.h"
#include "stage/status.h"
#include "stage/task.h"
#include "stage/tier.h"
#include "stage/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct giving {
	const struct node *node;
	struct record *record;
	struct spec_list specs;
	bool *skip;
	struct priv_user user;
	int lock, tierfd, stagefd;
	bool looked, rest; /* the stage was looked through for what nobody sends; there is some */
	struct status_progress progress;
	struct timespec began;
};

/* How long a stage-out that failed is let alone: doubled by each try. */
#define BACK_OFF_FIRST 60
#define BACK_OFF_MOST (6 * 3600)

/* COMPLETED is success, a state that nobody knows is both. */
static bool giving_wants(const struct spec *spec, const char *job_state)
{
	if (spec->side == SPEC_IN || spec->when == SPEC_WHEN_ALWAYS || !job_state)
		return true;
	return (spec->when == SPEC_WHEN_SUCCESS) == !strcmp(job_state, "COMPLETED");
}

static int giving_decode(struct giving *giving, struct error *err)
{
	struct record *record = giving->record;
	int code = spec_list_decode(record->specs, &giving->specs, err);

	if (code)
		return code;
	giving->skip = calloc(giving->specs.count + 1, sizeof(*giving->skip));
	if (!giving->skip)
		return error_sys(err, -ENOMEM, "stage-out");
	for (size_t i = 0; i < giving->specs.count; i++)
		giving->skip[i] = !giving_wants(&giving->specs.items[i], record->job_state);
	for (size_t i = 0; i < record->n_outcomes; i++) {
		struct outcome *outcome = &record->outcomes[i];

		if (outcome->spec >= giving->specs.count)
			return error_set(
				err, -EBADMSG, "the record names a spec that is not there");
		if (outcome->out)
			outcome->skipped = giving->skip[outcome->spec];
	}
	return priv_user_get((uid_t)record->uid, (gid_t)record->gid, &giving->user, err);
}

static int giving_open(struct giving *giving, struct error *err)
{
	struct conf_tier tier;

	node_record_tier(giving->record, &tier);
	giving->tierfd = tier_open(&tier, err);
	if (giving->tierfd < 0)
		return giving->tierfd;
	giving->stagefd = stage_open(giving->tierfd, giving->record, err);
	return giving->stagefd < 0 ? giving->stagefd : 0;
}

static int giving_heard(void *ctx, struct worker *worker, const json_t *message, struct error *err)
{
	struct giving *giving = ctx;
	const char *kind = json_string_value(json_object_get(message, "kind"));

	if (!strcmp(kind, TASK_PROGRESS))
		return node_take_progress(worker, message, &giving->progress.files,
			&giving->progress.bytes, err);
	worker_moved(worker);
	if (!strcmp(kind, TASK_OUTCOME))
		return node_take_outcome(giving->record, message, err);
	if (!strcmp(kind, TASK_REST)) {
		giving->looked = true;
		giving->rest = json_object_get(message, "path") != NULL;
		return 0;
	}
	return error_set(err, -EBADMSG, "\"kind\": '%.40s' is not known", kind);
}

static void giving_tick(void *ctx)
{
	struct giving *giving = ctx;
	struct timespec now;
	char files[64], bytes[64], text[256];

	clock_gettime(CLOCK_MONOTONIC, &now);
	giving->progress.seconds = (double)(now.tv_sec - giving->began.tv_sec);
	if (giving->node->state)
		status_publish(giving->node->state, giving->record, &giving->progress, NULL);
	snprintf(text, sizeof(text), "%s, %s sent back",
		numbers_count(giving->progress.files, "file", "files", files, sizeof(files)),
		parse_format_size(giving->progress.bytes, bytes, sizeof(bytes)));
	node_report_progress(giving->node->job, text);
}

static int giving_run(struct giving *giving, struct error *err)
{
	const struct record *record = giving->record;
	struct transfer_live *live = transfer_live_new();
	autofree char *path = stage_path(record), *suffix = NULL;
	uint64_t index = 0;
	struct symbols symbols;
	int code, keep[] = { giving->stagefd, giving->lock };

	if (record->node_index)
		parse_number(record->node_index, 0, UINT32_MAX, &index, NULL);
	if (asprintf(&suffix, "conflict-%s-%s", record->job_id, record->node) < 0)
		suffix = NULL;
	node_symbols(record, &symbols);
	struct task task = {
		.specs = &giving->specs,
		.skip = giving->skip,
		.plan = { giving->stagefd, &symbols, giving->node->conf, (unsigned)index,
			(unsigned)record->node_count },
		.stage = path,
		.threads = giving->node->conf->threads,
		.conflict_suffix = suffix,
		.job_id = record->job_id,
		.node = record->node,
		.live = live,
	};
	struct worker_options options = {
		.user = &giving->user,
		.stall = giving->node->conf->stall_limit,
		.keep = keep,
		.n_keep = giving->lock < 0 ? 1 : 2,
		.ctx = &task,
		.body = task_out,
		.beat = task_beat,
		.parent_ctx = giving,
		.heard = giving_heard,
		.tick = giving_tick,
	};
	clock_gettime(CLOCK_MONOTONIC, &giving->began);
	code = live && path && suffix ? worker_run(&options, err)
				      : error_sys(err, -ENOMEM, "stage-out");
	transfer_live_free(live);
	return code;
}

/* A FROM that is not there was nothing to send, where nothing else that is new lies in the stage.
 */
static int giving_check(const struct giving *giving, struct error *err)
{
	for (size_t i = 0; i < giving->record->n_outcomes; i++) {
		const struct outcome *outcome = &giving->record->outcomes[i];
		autofree char *reason = NULL;

		if (!outcome->out || outcome->skipped || outcome->delivered)
			continue;
		if (outcome->missing && giving->looked && !giving->rest)
			continue;
		reason = outcome_reason(outcome);
		return error_set(err, -EIO, "%s", reason ? reason : "out of memory");
	}
	return 0;
}

static bool giving_is_asked_for(const struct record *record)
{
	for (size_t i = 0; i < record->n_outcomes; i++)
		if (record->outcomes[i].out && !record->outcomes[i].skipped)
			return true;
	return false;
}

static uint64_t giving_back_off(uint64_t tries)
{
	uint64_t pause = BACK_OFF_FIRST;

	while (tries-- > 1 && pause < BACK_OFF_MOST)
		pause *= 2;
	return pause < BACK_OFF_MOST ? pause : BACK_OFF_MOST;
}

/* How long it is kept counts from the first time: a try that fails gives it no more time. */
static int giving_keep(struct giving *giving, const struct error *why, struct error *err)
{
	struct record *record = giving->record;
	bool stopped = why->code == -ECANCELED;
	uint64_t now = (uint64_t)time(NULL);
	int code = record_set(
		&record->reason, stopped ? "the stage-out was interrupted" : why->text, err);

	if (stopped && giving->node->stopped)
		*giving->node->stopped = true;
	if (!stopped)
		record->tries++;
	record->next_try = stopped ? now : now + giving_back_off(record->tries);
	if (!record->until)
		record->until = now + giving->node->conf->keep_failed;
	return code ? code : record_save(giving->node->state, record, RECORD_KEPT, err);
}

/* The record first: what it says is done is done, also if the removal does not come to its end.
 * What keeps a stage from being removed may be its user's doing, and is no reason to call the node
 * broken. */
static int giving_finish(struct giving *giving, struct error *err)
{
	struct record *record = giving->record;
	struct error removing = ERROR_INIT;
	int code = record_set(&record->reason, NULL, err);

	record->until = record->next_try = 0;
	if (!code)
		code = record_save(giving->node->state, record, RECORD_DONE, err);
	if (code)
		return code;
	if (stage_remove(giving->tierfd, record, &removing)) {
		node_warn(giving->node, "job %s: %s", record->job_id, removing.text);
		return 0;
	}
	return record_save(giving->node->state, record, RECORD_DONE, err);
}

/* After a boot a tier may not be mounted yet: what is in its place is another directory. */
static bool giving_has_tier(const struct giving *giving)
{
	struct stat st;

	return !giving->record->tier_ino ||
	       (fstat(giving->tierfd, &st) == 0 && st.st_ino == giving->record->tier_ino);
}

/* The stage is not there any more: somebody else removed it. */
static int giving_lost(struct giving *giving, struct error *err)
{
	struct error why = ERROR_INIT, releasing = ERROR_INIT;
	struct record *record = giving->record;
	int code;

	if (!giving_has_tier(giving)) {
		error_set(&why, -ENOENT,
			"tier %s: %s: not the directory that it was: is it not mounted?",
			record->tier, record->tier_path);
		return giving_keep(giving, &why, err);
	}
	code = record_set(&record->reason, "the stage is gone: what was in it is lost", err);

	record->present = false;
	if (project_release(giving->tierfd, record, &releasing))
		node_warn(giving->node, "job %s: %s", record->job_id, releasing.text);
	return code ? code : record_save(giving->node->state, record, RECORD_FAILED, err);
}

/* Everything but what becomes of record and stage. */
static int giving_send(struct giving *giving, struct error *err)
{
	int code = giving_decode(giving, err);

	if (!code && giving->stagefd < 0)
		code = giving_open(giving, err);
	if (!code && giving_is_asked_for(giving->record))
		code = giving_run(giving, err);
	return code ? code : giving_check(giving, err);
}

static int giving_work(struct giving *giving, struct error *err)
{
	struct error why = ERROR_INIT;
	int code = record_save(giving->node->state, giving->record, RECORD_RETURNING, err);

	if (code)
		return code;
	code = giving_send(giving, &why);
	if (code == -ENOENT && giving->tierfd >= 0 && giving->stagefd < 0)
		return giving_lost(giving, err);
	if (!code)
		return giving_finish(giving, err);
	code = giving_keep(giving, &why, err);
	if (!code && giving->stagefd < 0 && giving->specs.count)
		return error_set(err, why.code, "%s", why.text); /* the tier can not be used */
	return code;
}

static void giving_end(struct giving *giving)
{
	if (giving->tierfd >= 0)
		close(giving->tierfd);
	free(giving->skip);
	spec_list_free(&giving->specs);
	priv_user_free(&giving->user);
}

int node_return(const struct node *node, struct record *record, int lock, struct error *err)
{
	struct giving giving = {
		.node = node,
		.record = record,
		.lock = lock,
		.tierfd = -1,
		.stagefd = -1,
	};
	int code = giving_work(&giving, err);

	if (giving.stagefd >= 0)
		close(giving.stagefd);
	giving_end(&giving);
	return code;
}

int node_send(const struct node *node, struct record *record, int stagefd, struct error *err)
{
	struct giving giving = {
		.node = node,
		.record = record,
		.lock = -1,
		.tierfd = -1,
		.stagefd = stagefd,
	};
	int code = giving_send(&giving, err);

	giving_end(&giving);
	return code;
}
