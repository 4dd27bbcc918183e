#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"
#include "report/numbers.h"
#include "stage/changes.h"
#include "stage/inside.h"
#include "stage/item_filter.h"
#include "stage/stage_out.h"

static const char *const leave_own[] = { MANIFEST_STAGE_DIR, NULL };

static bool is_stage(const struct stage_out *out)
{
	return strcmp(out->item.plan->local, ".") == 0;
}

/* FROM, which was resolved: a symlink that is in its way now was put there since. */
static int open_root(struct stage_out *out, struct error *err)
{
	const struct plan_item *plan = out->item.plan;
	autofree char *dir = NULL;
	const char *name = inside_split(plan->local, &dir);

	if (!name)
		return error_sys(err, -ENOMEM, "%s", plan->local);
	out->root_name = plan->is_dir ? "." : name;
	out->rootfd = path_open_beneath(out->item.transfer->context->stagefd,
		plan->is_dir ? plan->local : dir, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS,
		err);
	return out->rootfd < 0 ? out->rootfd : 0;
}

/* Without a manifest, and where nothing can be written to it, everything is sent that is not known
 * to be there. */
static int find_records(struct stage_out *out, struct error *err)
{
	struct manifest *manifest = out->item.transfer->manifest;
	const struct plan_item *plan = out->item.plan;
	struct manifest_entry entry;
	autofree char *dir = NULL;
	int rc;

	out->item.root_dir = STAGE_OUT_NO_DIR;
	out->item.root_name = is_stage(out) ? NULL : inside_split(plan->local, &dir);
	if (!is_stage(out) && !out->item.root_name)
		return error_sys(err, -ENOMEM, "manifest");
	if (is_stage(out))
		out->item.root_dir = 0;
	if (!manifest)
		return 0;
	rc = dir ? manifest_find(manifest, 0, dir, &entry, err) : -ENOENT;
	if (rc == 0 && entry.type == S_IFDIR)
		out->item.root_dir = entry.dir;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	rc = manifest_rebooted(manifest, &out->suspect, err);
	if (rc == 0)
		rc = manifest_pair(
			manifest, plan->local, plan->shared, out->records, &out->item.pair, err);
	if (rc == -ENOSPC || rc == -EDQUOT)
		out->records = false;
	return rc == -ENOSPC || rc == -EDQUOT ? 0 : rc;
}

static enum copy_conflict conflict_policy(const struct stage_out *out)
{
	static const enum copy_conflict policies[] = {
		[SPEC_CONFLICT_KEEP] = COPY_CONFLICT_KEEP,
		[SPEC_CONFLICT_FAIL] = COPY_CONFLICT_FAIL,
		[SPEC_CONFLICT_OVERWRITE] = COPY_CONFLICT_OVERWRITE,
	};

	/* What may have been damaged replaces nothing. */
	if (out->suspect && out->item.plan->spec->conflict == SPEC_CONFLICT_OVERWRITE)
		return COPY_CONFLICT_KEEP;
	return policies[out->item.plan->spec->conflict];
}

static int run_copy(struct stage_out *out, struct error *err)
{
	const struct transfer_context *context = out->item.transfer->context;
	struct transfer_copy run = { .srcdir = out->rootfd, .srcname = out->root_name };
	autoclose int parent =
		transfer_open_parent(out->item.plan->resolved, true, &run.dstname, err);

	if (parent < 0)
		return parent;
	run.dstdir = parent;
	transfer_options(&out->item, &run.options);
	run.options.publish = true;
	run.options.durable = true;
	run.options.inherit_group = geteuid() != 0;
	run.options.conflict = conflict_policy(out);
	run.options.conflict_suffix =
		context->conflict_suffix ? context->conflict_suffix : "conflict";
	run.options.leave = is_stage(out) ? leave_own : NULL;
	run.hooks = stage_out_hooks(out);
	return transfer_copy(&out->item, &run, err);
}

static bool all_arrived(const struct stage_out *out)
{
	const struct copy_counts *counts = &out->item.summary->counts;

	return !counts->failed && !counts->vanished && !counts->changed && !counts->conflicts &&
	       !atomic_load(&out->unlisted);
}

static int send_item(struct stage_out *out, struct error *err)
{
	int rc = open_root(out, err);

	if (rc == 0)
		rc = find_records(out, err);
	if (rc == 0)
		rc = item_filter_new(out->item.plan->spec, &out->item.filter, err);
	if (rc == 0)
		rc = out->item.plan->spec->pack ?
			stage_out_pack(out, conflict_policy(out),
				is_stage(out) ? leave_own : NULL, err) :
			run_copy(out, err);
	if (rc == 0 && transfer_is_broken(out->item.transfer))
		rc = error_set(err, out->item.transfer->failed.code, "%s",
			out->item.transfer->failed.text);
	if (rc == 0 && out->item.plan->spec->remove && out->item.plan->is_dir)
		stage_out_delete(out);
	if (rc == 0 && out->item.plan->spec->receipt && all_arrived(out))
		rc = stage_out_receipt(out, err);
	return rc;
}

static void stage_out_end(struct stage_out *out)
{
	filter_free(out->item.filter);
	transfer_forget_notes(&out->item);
	if (out->rootfd >= 0)
		close(out->rootfd);
}

/* After no space was left nothing more was begun: how much that is, from the local side alone. */
static void add_rest(const struct stage_out *out, struct error *failed)
{
	const struct transfer_context *context = out->item.transfer->context;
	char count[NUMBERS_SIZE], bytes[NUMBERS_SIZE];
	struct error first = *failed;
	struct changes rest;

	if (changes_count(out->item.plan, context->stagefd, out->item.transfer->manifest,
		    context->threads, context->cancel, &rest, NULL) < 0)
		return;
	error_set(failed, first.code, "%s; not sent, and still in the stage: %s (%s)", first.text,
		numbers_count(rest.entries, "entry", "entries", count, sizeof(count)),
		parse_format_size(rest.bytes, bytes, sizeof(bytes)));
}

/* What is wrong with FROM, which is named beside it: not twice. */
static const char *missing_text(const struct plan_item *plan)
{
	size_t length = strlen(plan->local);
	const char *text = plan->problem;

	if (strncmp(text, plan->local, length) != 0 || (text[length] != ':' && text[length] != ' '))
		return text;
	return text + length + strspn(text + length, ": ");
}

/* 0 also where it failed: the others go on. Negative: cancelled. */
static int stage_out_item(struct transfer *transfer, const struct plan_item *plan, bool records,
	struct summary *summary, struct error *err)
{
	struct stage_out out = {
		.item = { .transfer = transfer,
			.plan = plan,
			.summary = summary,
			.shown = plan->local },
		.records = records,
		.rootfd = -1,
	};
	struct error failed = ERROR_INIT;
	double start = transfer_clock();
	int rc;

	summary->verb = "staged out";
	if (plan->missing) {
		if (plan->problem) {
			error_set(&failed, -ENOENT, "%s", missing_text(plan));
			transfer_fail(&out.item, &failed);
		}
		return 0;
	}
	rc = send_item(&out, &failed);
	summary->seconds = transfer_clock() - start;
	stage_out_end(&out);
	if (rc == -ECANCELED)
		return error_set(err, rc, "stage-out %s: %s", plan->spec->text, failed.text);
	if (rc == -ENOSPC || rc == -EDQUOT)
		add_rest(&out, &failed);
	if (rc < 0)
		transfer_fail(&out.item, &failed);
	return 0;
}

/* Opens the manifest to read and write, or, in a stage that is full, to read alone. */
static int open_manifest(struct transfer *transfer, bool *records, struct error *err)
{
	struct error first = ERROR_INIT;
	int rc = manifest_open(transfer->context->stagefd, true, &transfer->manifest, &first);

	*records = rc == 0;
	if (rc == -ENOSPC || rc == -EDQUOT || rc == -EROFS) {
		rc = manifest_open(transfer->context->stagefd, false, &transfer->manifest, &first);
		if (rc == -ENOENT)
			return 0;
	}
	return rc < 0 ? error_set(err, rc, "%s", first.text) : 0;
}

/* Records that can not be written in a full stage cost only that they are sent again. */
static int close_manifest(struct transfer *transfer, bool records, struct error *err)
{
	struct error failed = ERROR_INIT;
	int rc = records ? manifest_sync(transfer->manifest, &failed) : 0;

	return rc < 0 && rc != -ENOSPC && rc != -EDQUOT ? error_set(err, rc, "%s", failed.text) : 0;
}

int transfer_out(const struct transfer_context *context, const struct plan *plan,
	struct summary *results, struct error *err)
{
	struct transfer transfer;
	struct error end = ERROR_INIT;
	bool records = false;
	int rc, end_rc = 0;

	transfer_begin(&transfer, context);
	rc = open_manifest(&transfer, &records, err);
	if (rc == 0) {
		for (size_t i = 0; i < plan->count && rc == 0; i++)
			rc = stage_out_item(&transfer, &plan->items[i], records, &results[i], err);
		end_rc = close_manifest(&transfer, records, &end);
	}
	transfer_end(&transfer);
	return rc < 0 || end_rc == 0 ? rc : error_set(err, end_rc, "%s", end.text);
}
