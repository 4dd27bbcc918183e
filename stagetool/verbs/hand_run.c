#include "verbs/hand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "report/progress.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

/* Of more items than these only the sum is said, unless more is asked for. */
#define LINES_MOST 8

static void sample(void *ctx, struct progress_now *now)
{
	const struct hand *hand = ctx;

	transfer_live_now(hand->live, &now->files, &now->bytes);
	now->total_files = hand->plan->inodes;
	now->total_bytes = hand->plan->bytes;
}

static void problem(void *ctx, const char *path, const char *kind, const char *text)
{
	(void)ctx;
	if (strcmp(kind, "dropped") == 0 || strcmp(kind, "special") == 0)
		log_warning("%s: %s", path, text);
	else
		log_error("%s: %s", path, text);
}

int hand_transfer(struct hand *hand, bool in, const atomic_bool *cancel, struct error *err)
{
	struct transfer_context context = {
		.stagefd = hand->stagefd,
		.threads = hand->options.threads,
		.engine = hand->options.engine,
		.conflict_suffix = hand->strings[2],
		.job_id = hand->symbols.job_id,
		.node = hand->symbols.node,
		.cancel = cancel,
		.problem = problem,
	};
	struct progress *progress;
	int rc;

	hand->results = calloc(hand->plan->count + 1, sizeof(*hand->results));
	hand->live = context.live = transfer_live_new();
	if (!hand->results || !hand->live)
		return error_sys(err, -ENOMEM, "%s", hand->verb);
	progress = progress_start(STDERR_FILENO, hand->options.quiet, hand->verb, sample, hand);
	rc = (in ? transfer_in : transfer_out)(&context, hand->plan, hand->results, err);
	progress_stop(progress);
	for (size_t i = 0; i < hand->plan->count; i++)
		summary_merge(&hand->total, &hand->results[i]);
	return rc;
}

static bool nothing_done(const struct copy_counts *counts)
{
	return !counts->files && !counts->directories && !counts->symlinks && !counts->others &&
	       !counts->unchanged;
}

static int status_of(const struct hand *hand, int rc)
{
	int status = summary_status(&hand->total);

	if (rc == -ENOSPC || rc == -EDQUOT)
		return VERB_NO_SPACE;
	if (rc < 0)
		return VERB_FAILED;
	/* "The others are done" would be a lie. */
	return status == VERB_INCOMPLETE && nothing_done(&hand->total.counts) ? VERB_FAILED
									      : status;
}

static void say_items(const struct hand *hand)
{
	bool each = hand->options.verbose || hand->plan->count <= LINES_MOST;

	for (size_t i = 0; each && i < hand->plan->count; i++) {
		const struct plan_item *item = &hand->plan->items[i];
		bool in = item->spec->side == SPEC_IN && strcmp(hand->verb, "in") == 0;
		autofree char *line = summary_line(&hand->results[i]);

		if (line && hand->results[i].verb)
			log_info("%s %s %s", line, in ? "from" : "to", item->shared);
	}
	if (hand->plan->count != 1 && hand->total.verb) {
		autofree char *line = summary_line(&hand->total);

		if (line)
			log_info("%s in all", line);
	}
}

static json_t *item_json(const struct plan_item *item, const struct summary *result)
{
	json_t *json = summary_json(result);

	if (json)
		json_object_set_new(json, "spec", summary_json_bytes(item->spec->text));
	if (json)
		json_object_set_new(json, "shared", summary_json_bytes(item->shared));
	if (json)
		json_object_set_new(json, "local", summary_json_bytes(item->local));
	return json;
}

static json_t *hand_json(const struct hand *hand)
{
	json_t *json = hand->results ? summary_json(&hand->total) : json_object();
	json_t *items = json_array();

	for (size_t i = 0; hand->results && i < hand->plan->count; i++)
		json_array_append_new(items, item_json(&hand->plan->items[i], &hand->results[i]));
	if (json && items)
		json_object_set_new(json, "items", items);
	if (json && hand->dir)
		json_object_set_new(json, "dir", summary_json_bytes(hand->dir));
	return json;
}

int hand_report(struct hand *hand, int rc, const struct error *err)
{
	int status = status_of(hand, rc);

	if (!hand->total.verb)
		hand->total.verb = strcmp(hand->verb, "in") == 0 ? "staged in" : "staged out";
	if (hand->results && (rc == 0 || rc == -ECANCELED))
		say_items(hand);
	if (rc < 0)
		log_error("%s: %s", hand->verb, err->text);
	if (rc == -ECANCELED)
		log_info("the same command goes on from here");
	else if (status != VERB_DONE && hand->results && strcmp(hand->verb, "out") == 0)
		log_info("nothing in %s was removed: the same command tries again", hand->dir);
	if (!hand->options.json)
		return status;
	return output_result(hand->verb, hand_json(hand), status, err);
}
