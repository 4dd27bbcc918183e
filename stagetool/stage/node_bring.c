#include "base/cleanup.h"
#include "base/parse.h"
#include "report/numbers.h"
#include "stage/fields.h"
#include "stage/node_start_private.h"
#include "stage/stage.h"
#include "stage/status.h"
#include "stage/tier.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* What the manifest takes of the tier for each entry, about. */
#define MANIFEST_BYTES 256

double node_start_seconds(const struct node_start *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->began.tv_sec) +
	       (double)(now.tv_nsec - start->began.tv_nsec) / 1e9;
}

/* What its quota would end later is refused before a byte moves. */
static int bring_check_size(
	const struct node_start *start, const struct ledger_amount *need, struct error *err)
{
	char needed[64], allowed[64];

	if (!start->record->project_id || need->bytes <= start->specs.size)
		return 0;
	return error_set(err, -ENOSPC,
		"does not fit into --stage-size on %s: %s of space are needed for the input, %s are "
		"allowed",
		start->record->node, parse_format_size(need->bytes, needed, sizeof(needed)),
		parse_format_size(start->specs.size, allowed, sizeof(allowed)));
}

/* The worker has measured: is there room? */
static int bring_reserve(
	struct node_start *start, struct worker *worker, const json_t *message, struct error *err)
{
	struct ledger_amount need;
	uint64_t room = 0;
	int code = fields_get_number(message, "bytes", INT64_MAX / 2, &start->input.bytes, err);

	if (!code)
		code = fields_get_number(
			message, "inodes", INT64_MAX / 1024, &start->input.inodes, err);
	if (!code && start->asked)
		return error_set(err, -EBADMSG, "asked for room twice");
	if (code)
		return code;
	start->asked = true;
	need = start->input;
	need.bytes += need.inodes * MANIFEST_BYTES;
	code = bring_check_size(start, &need, err);
	if (need.bytes < start->specs.size)
		need.bytes = start->specs.size;
	if (!code)
		code = ledger_reserve(start->node->state, start->tier, start->tierfd, start->record,
			&need, &room, err);
	if (code) {
		start->blame = code == -ENOSPC ? NODE_JOB : NODE_NODE;
		return code;
	}
	worker_moved(worker); /* the time that it waited for us is not its own */
	/* What is in an archive shows when it is unpacked. */
	if (start->specs.size)
		room = need.bytes;
	return worker_send(worker->fd,
		json_pack("{s:s, s:I}", "kind", "go", "room",
			(json_int_t)(room < INT64_MAX ? room : INT64_MAX)),
		err);
}

static int bring_progress(struct node_start *start, struct worker *worker, const json_t *message,
	struct error *err)
{
	return node_take_progress(worker, message, &start->used.inodes, &start->used.bytes, err);
}

static int bring_heard(void *ctx, struct worker *worker, const json_t *message, struct error *err)
{
	struct node_start *start = ctx;
	const char *kind = json_string_value(json_object_get(message, "kind"));

	if (!strcmp(kind, TASK_NEED))
		return bring_reserve(start, worker, message, err);
	if (!strcmp(kind, TASK_PROGRESS))
		return bring_progress(start, worker, message, err);
	worker_moved(worker);
	if (!strcmp(kind, TASK_OUTCOME))
		return node_take_outcome(start->record, message, err);
	return error_set(err, -EBADMSG, "\"kind\": '%.40s' is not known", kind);
}

/* "1,234 files, 5.0 GiB of 12.0 GiB" so far. */
static void bring_format(const struct node_start *start, char *text, size_t size)
{
	char files[64], done[64], all[64];

	snprintf(text, size, "%s, %s of %s",
		numbers_count(start->used.inodes, "file", "files", files, sizeof(files)),
		parse_format_size(start->used.bytes, done, sizeof(done)),
		parse_format_size(start->input.bytes, all, sizeof(all)));
}

static void bring_tick(void *ctx)
{
	struct node_start *start = ctx;
	struct status_progress progress = {
		.files = start->used.inodes,
		.bytes = start->used.bytes,
		.total_bytes = start->input.bytes,
		.total_inodes = start->input.inodes,
		.seconds = node_start_seconds(start),
	};
	char text[256];

	if (!start->asked) {
		node_report_progress(start->node->job, "looking at what there is to copy");
		return;
	}
	ledger_note(start->node->state, start->record, &start->used);
	status_publish(start->node->state, start->record, &progress, NULL);
	bring_format(start, text, sizeof(text));
	node_report_progress(start->node->job, text);
}

static int bring_run(struct node_start *start, struct error *err)
{
	const struct node_job *job = start->node->job;
	autofree char *path = stage_path(start->record);
	struct transfer_live *live = transfer_live_new();
	uint64_t index = 0;
	struct symbols symbols;
	int keep[] = { start->stagefd, start->lock }, code;

	if (job->node_index)
		parse_number(job->node_index, 0, UINT32_MAX, &index, NULL);
	node_symbols(start->record, &symbols);
	struct task task = {
		.specs = &start->specs,
		.plan = { start->stagefd, &symbols, start->node->conf, (unsigned)index,
			(unsigned)job->node_count },
		.stage = path,
		.threads = start->node->conf->threads,
		.job_id = job->job_id,
		.node = job->node,
		.live = live,
	};
	struct worker_options options = {
		.user = &start->user,
		.stall = start->node->conf->stall_limit,
		.left = &start->left,
		.keep = keep,
		.n_keep = 2,
		.ctx = &task,
		.body = task_in,
		.beat = task_beat,
		.heard = bring_heard,
		.tick = bring_tick,
		.parent_ctx = start,
	};
	code = path && live ? worker_run(&options, err) : error_sys(err, -ENOMEM, "stage-in");
	transfer_live_free(live);
	return code;
}

/* A stage-in that ended without an error may still not have brought everything. */
static int bring_check(const struct node_start *start, struct error *err)
{
	for (size_t i = 0; i < start->record->n_outcomes; i++) {
		const struct outcome *outcome = &start->record->outcomes[i];
		autofree char *reason = NULL;

		if (outcome->out || outcome->delivered)
			continue;
		reason = outcome_reason(outcome);
		return error_set(err, -EIO, "%s", reason ? reason : "out of memory");
	}
	return 0;
}

/* How far it had come. */
static void bring_add_extent(const struct node_start *start, struct error *err)
{
	struct error whole = ERROR_INIT;
	char text[256];

	if (!start->used.inodes)
		return;
	bring_format(start, text, sizeof(text));
	error_set(&whole, err->code, "%s (after %s)", err->text, text);
	*err = whole;
}

/* Whether it was the tier that failed, and not what was to be copied. */
static int bring_blame_tier(struct node_start *start, struct error *err)
{
	autofree char *name = record_name(start->record, "");
	struct error probe = ERROR_INIT;

	if (!name || !tier_probe(start->tier, start->tierfd, name, &probe))
		return 0;
	start->blame = NODE_NODE;
	return error_set(err, probe.code, "%s", probe.text);
}

int node_start_bring(struct node_start *start, struct error *err)
{
	struct error failure = ERROR_INIT;
	int code = bring_run(start, &failure);

	if (!code)
		code = bring_check(start, &failure);
	if (!code)
		return 0;
	if (code == -ECANCELED)
		error_set(&failure, code, "the stage-in was cancelled");
	bring_add_extent(start, &failure);
	*err = failure;
	if (start->blame == NODE_JOB && code != -ECANCELED && !start->left &&
		bring_blame_tier(start, err))
		return err->code;
	return code;
}

/* "/proj/x", or "/proj/x and 2 others". */
static void bring_sources(const struct node_start *start, char *text, size_t size)
{
	const char *first = NULL;
	size_t others = 0;

	for (size_t i = 0; i < start->specs.count; i++) {
		if (start->specs.items[i].side != SPEC_IN)
			continue;
		if (first)
			others++;
		else
			first = start->specs.items[i].from;
	}
	if (others)
		snprintf(text, size, "%s and %zu other%s", first, others, others == 1 ? "" : "s");
	else
		snprintf(text, size, "%s", first ? first : "");
}

char *node_start_notice(const struct node_start *start)
{
	struct summary total = { .verb = "staged in" };
	autofree char *line = NULL;
	char sources[1024];
	char *notice = NULL;

	bring_sources(start, sources, sizeof(sources));
	if (!*sources)
		return NULL;
	for (size_t i = 0; i < start->record->n_outcomes; i++)
		if (!start->record->outcomes[i].out)
			summary_merge(&total, &start->record->outcomes[i].summary);
	total.seconds = node_start_seconds(start);
	line = summary_line(&total);
	summary_free(&total);
	if (!line || asprintf(&notice, "%s, from %s", line, sources) < 0)
		return NULL;
	return notice;
}
