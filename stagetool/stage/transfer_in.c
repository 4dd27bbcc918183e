#include "stage/stage_in.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* One item. 0 also where it failed alone; negative: nothing after it can be done either. */
static int stage_in_item(
	struct transfer_item *item, struct stage_in_brought *brought, struct error *err)
{
	struct error failed = ERROR_INIT;
	double start = transfer_clock();
	int rc = stage_in(item, brought, &failed);

	item->summary->verb = "staged in";
	item->summary->seconds = transfer_clock() - start;
	if (transfer_is_broken(item->transfer))
		failed = item->transfer->failed;
	else if (rc < 0 && rc != -ECANCELED && rc != -ENOSPC) {
		transfer_fail(item, &failed);
		return 0;
	}
	if (!failed.code)
		return 0;
	error_set(err, failed.code, "%s", failed.text);
	return error_prefix(err, failed.code, "stage-in %s", item->plan->spec->text);
}

static void undo(
	struct transfer *transfer, const struct plan *plan, struct stage_in_brought *brought)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct transfer_item item = { .transfer = transfer, .plan = &plan->items[i] };

		if (brought[i].root)
			stage_in_undo(&item, &brought[i]);
	}
}

static int stage_in_all(struct transfer *transfer, const struct plan *plan, struct summary *results,
	struct stage_in_brought *brought, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < plan->count && rc == 0; i++) {
		struct transfer_item item = {
			.transfer = transfer,
			.plan = &plan->items[i],
			.summary = &results[i],
			.shown = plan->items[i].shared,
		};

		if (!plan->items[i].missing)
			rc = stage_in_item(&item, &brought[i], err);
	}
	return rc;
}

/* What was brought is safe before the manifest says so; what a job staged in is gone with the job
 * when the machine goes down, and is not waited for. */
static int finish(struct transfer *transfer, struct error *err)
{
	int rc = 0;

	if (transfer->context->private_stage)
		rc = manifest_not_synced(transfer->manifest, err);
	else if (syncfs(transfer->context->stagefd) < 0)
		rc = error_errno(err, "syncing what was staged in");
	return rc < 0 ? rc : manifest_sync(transfer->manifest, err);
}

static int transfer_in_open(struct transfer *transfer, const struct plan *plan,
	struct summary *results, struct stage_in_brought *brought, struct error *err)
{
	struct error end = ERROR_INIT;
	int rc = manifest_open(transfer->context->stagefd, true, &transfer->manifest, err), end_rc;

	if (rc == 0)
		rc = manifest_bulk(transfer->manifest, err);
	if (rc < 0)
		return rc;
	rc = stage_in_all(transfer, plan, results, brought, err);
	if (rc == -ENOSPC)
		undo(transfer, plan, brought);
	/* Also what was cut short is recorded: a next run goes on from there. */
	end_rc = finish(transfer, &end);
	if (rc < 0 || end_rc == 0)
		return rc;
	return error_set(err, end_rc, "%s", end.text);
}

int transfer_in(const struct transfer_context *context, const struct plan *plan,
	struct summary *results, struct error *err)
{
	struct stage_in_brought *brought = calloc(plan->count + 1, sizeof(*brought));
	struct transfer transfer;
	int rc;

	if (!brought)
		return error_sys(err, -ENOMEM, "stage-in");
	transfer_begin(&transfer, context);
	rc = transfer_in_open(&transfer, plan, results, brought, err);
	transfer_end(&transfer);
	for (size_t i = 0; i < plan->count; i++) {
		free(brought[i].root);
		free(brought[i].replaced.keys);
	}
	free(brought);
	return rc;
}
