#include "stage/task.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/fields.h"
#include "stage/outcome.h"
#include "stage/rest.h"
#include "stage/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static json_t *task_message(const char *kind, json_t *object)
{
	if (object && json_object_set_new(object, "kind", json_string(kind))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

void task_beat(void *ctx, int fd)
{
	const struct task *task = ctx;
	uint64_t files, bytes;

	transfer_live_now(task->live, &files, &bytes);
	worker_send(fd,
		json_pack("{s:s, s:I, s:I, s:I}", "kind", TASK_PROGRESS, "files",
			(json_int_t)files, "bytes", (json_int_t)bytes, "steps",
			(json_int_t)(transfer_live_steps(task->live) & INT64_MAX)),
		NULL);
}

/* The job will go to its stage by name: what stands in the way is better found now. */
static int task_check_path(const struct task *task, struct error *err)
{
	autoclose int fd = path_open(task->stage, O_RDONLY | O_DIRECTORY, err);
	struct stat there, held;

	if (fd < 0)
		return error_prefix(err, fd, "the user can not enter the stage");
	if (fstat(fd, &there) || fstat(task->plan.stagefd, &held))
		return error_errno(err, "%s: stat", task->stage);
	if (there.st_dev != held.st_dev || there.st_ino != held.st_ino)
		return error_set(
			err, -ESTALE, "%s: the user sees another directory there", task->stage);
	return 0;
}

static void task_context(
	const struct task *task, const atomic_bool *stop, struct transfer_context *context)
{
	*context = (struct transfer_context){
		.stagefd = task->plan.stagefd,
		.threads = task->threads,
		.private_stage = true,
		.conflict_suffix = task->conflict_suffix,
		.job_id = task->job_id,
		.node = task->node,
		.cancel = stop,
		.live = task->live,
	};
}

static bool task_has(const struct spec *spec, bool out)
{
	return out ? spec->side == SPEC_OUT || spec->sync : spec->side == SPEC_IN;
}

/* The specs that a plan is made of; the specs themselves stay borrowed. */
struct task_choice {
	struct spec_list list;
	size_t *index; /* of each in the job's list */
};

static void task_choice_free(struct task_choice *choice)
{
	free(choice->list.items);
	free(choice->index);
}

static int task_choose(
	const struct task *task, bool out, struct task_choice *choice, struct error *err)
{
	size_t count = task->specs->count;

	*choice = (struct task_choice){ .list = *task->specs };
	choice->list.count = 0;
	choice->list.items = calloc(count + 1, sizeof(*choice->list.items));
	choice->index = calloc(count + 1, sizeof(*choice->index));
	if (!choice->list.items || !choice->index)
		return error_sys(err, -ENOMEM, "specs");
	for (size_t i = 0; i < count; i++) {
		if (!task_has(&task->specs->items[i], out) || (task->skip && task->skip[i]))
			continue;
		choice->index[choice->list.count] = i;
		choice->list.items[choice->list.count++] = task->specs->items[i];
	}
	return 0;
}

/* What became of one spec: of all the items that it stands for. */
static void task_gather(const struct spec *spec, bool out, const struct plan *plan,
	const struct summary *results, int code, struct outcome *outcome)
{
	*outcome = (struct outcome){ .text = spec->text, .out = out };
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->items[i].spec != spec)
			continue;
		summary_merge(&outcome->summary, &results[i]);
		outcome->missing |= plan->items[i].missing && !spec->optional;
	}
	outcome->delivered =
		!code && !outcome->missing && outcome_complete(&outcome->summary, spec, out);
}

static int task_send_outcomes(const struct task_choice *choice, int fd, bool out,
	const struct plan *plan, const struct summary *results, int transferred, bool *rest,
	struct error *err)
{
	bool missing = false, failed = false;
	int code = 0;

	for (size_t i = 0; i < choice->list.count && !code; i++) {
		struct outcome outcome;

		task_gather(&choice->list.items[i], out, plan, results, transferred, &outcome);
		outcome.spec = choice->index[i];
		missing |= outcome.missing;
		failed |= !outcome.missing && !outcome.delivered;
		code = worker_send(fd, task_message(TASK_OUTCOME, outcome_json(&outcome, NULL)), err);
		summary_free(&outcome.summary);
	}
	*rest = missing && !failed;
	return code;
}

/* Says how much it is, and waits to be told that there is room; *room: how much at most. */
static int task_ask(const struct plan *plan, int fd, uint64_t *room, struct error *err)
{
	json_t *answer;
	int code = worker_send(fd,
		json_pack("{s:s, s:I, s:I}", "kind", TASK_NEED, "bytes", (json_int_t)plan->bytes,
			"inodes", (json_int_t)plan->inodes),
		err);

	if (!code)
		code = worker_receive(fd, &answer, err);
	if (code)
		return code;
	code = fields_get_number(answer, "room", INT64_MAX, room, err);
	json_decref(answer);
	return code;
}

/* What vanished while it was being sent may have been renamed, or only have seemed to be gone: once
 * more, and what is not listed then was removed. */
static int task_send_again(const struct transfer_context *context, const struct plan *plan,
	struct summary *results, struct error *err)
{
	struct summary *again = calloc(plan->count + 1, sizeof(*again));
	int code;

	if (!again)
		return error_sys(err, -ENOMEM, "results");
	code = transfer_out(context, plan, again, err);
	for (size_t i = 0; i < plan->count; i++) {
		results[i].counts.vanished = 0;
		again[i].counts.unchanged = 0; /* counted already */
		summary_merge(&results[i], &again[i]);
		summary_free(&again[i]);
	}
	free(again);
	return code;
}

static int task_transfer(const struct transfer_context *context, bool out, const struct plan *plan,
	struct summary *results, struct error *err)
{
	uint64_t vanished = 0, failed = 0;
	int code = (out ? transfer_out : transfer_in)(context, plan, results, err);

	for (size_t i = 0; i < plan->count; i++) {
		vanished += results[i].counts.vanished;
		failed += results[i].counts.failed;
	}
	if (code || !out || !vanished || failed)
		return code;
	return task_send_again(context, plan, results, err);
}

/* Carries the plan out and tells what became of it, also when it could not go on. rest: a stage-out
 * had nothing to send, and all others are through. */
static int task_carry_out(const struct task *task, const struct task_choice *choice, bool out,
	const struct plan *plan, uint64_t room, int fd, const atomic_bool *stop, bool *rest,
	struct error *err)
{
	struct summary *results = calloc(plan->count + 1, sizeof(*results));
	struct transfer_context context;
	int code, sent;

	if (!results)
		return error_sys(err, -ENOMEM, "results");
	task_context(task, stop, &context);
	context.max_bytes = room;
	code = task_transfer(&context, out, plan, results, err);
	sent = task_send_outcomes(choice, fd, out, plan, results, code, rest, code ? NULL : err);
	for (size_t i = 0; i < plan->count; i++)
		summary_free(&results[i]);
	free(results);
	return code ? code : sent;
}

int task_in(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	const struct task *task = ctx;
	struct task_choice choice;
	struct plan *plan = NULL;
	uint64_t room = 0;
	bool rest;
	int code = task_choose(task, false, &choice, err);

	if (!code)
		code = task_check_path(task, err);
	if (!code)
		code = plan_in(&choice.list, &task->plan, &plan, err);
	if (!code) {
		plan->looked = transfer_live_looked(task->live);
		code = plan_measure(plan, task->threads, stop, err);
	}
	if (!code)
		code = task_ask(plan, fd, &room, err);
	if (!code)
		code = task_carry_out(task, &choice, false, plan, room, fd, stop, &rest, err);
	task_beat(ctx, fd);
	plan_free(plan);
	task_choice_free(&choice);
	return code;
}

static int task_send_rest(int fd, const char *path, struct error *err)
{
	json_t *message = json_pack("{s:s}", "kind", TASK_REST);

	if (message && path)
		json_object_set_new(message, "path", summary_json_bytes(path));
	return worker_send(fd, message, err);
}

static int task_look_beside(const struct task *task, int fd, const char *const *sent, size_t n,
	const atomic_bool *stop, struct error *err)
{
	char *path = NULL;
	int code = rest_find(task->plan.stagefd, sent, n, stop, &path, err);

	if (!code)
		code = task_send_rest(fd, path, err);
	free(path);
	return code;
}

/* A stage-out had nothing to send: is there something else that the user may want? */
static int task_find_rest(const struct task *task, int fd, const struct plan *plan,
	const atomic_bool *stop, struct error *err)
{
	const char **sent = calloc(plan->count + 1, sizeof(*sent));
	size_t n = 0;
	int code;

	if (!sent)
		return error_sys(err, -ENOMEM, "stage-out");
	for (size_t i = 0; i < plan->count; i++)
		if (!plan->items[i].missing)
			sent[n++] = plan->items[i].local;
	code = task_look_beside(task, fd, sent, n, stop, err);
	free(sent);
	return code;
}

int task_out(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	const struct task *task = ctx;
	struct task_choice choice;
	struct plan *plan = NULL;
	bool rest = false;
	int code = task_choose(task, true, &choice, err);

	/* directories of TO that are not there yet are made as most people's are: a project's
	 * members may look into them, and a default ACL decides where there is one */
	umask(022);

	if (!code)
		code = plan_out(&choice.list, &task->plan, &plan, err);
	if (!code)
		code = task_carry_out(task, &choice, true, plan, 0, fd, stop, &rest, err);
	if (!code && rest)
		code = task_find_rest(task, fd, plan, stop, err);
	plan_free(plan);
	task_choice_free(&choice);
	return code;
}

int task_look(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	return task_look_beside(ctx, fd, NULL, 0, stop, err);
}
