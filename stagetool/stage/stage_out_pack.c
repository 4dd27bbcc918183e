#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "archive/pack_file.h"
#include "base/cleanup.h"
#include "stage/delta.h"
#include "stage/stage_out.h"

/* What of ours may be at TO: the archive that was sent last, or else the one that FROM was unpacked from. */
static void expect_ours(struct stage_out *out, struct copy_expect *expect)
{
	struct transfer_item *item = &out->item;
	struct manifest_entry record;
	bool known;

	expect->kind = COPY_EXPECT_NOTHING;
	if (!item->pair)
		return;
	known = transfer_record(item->transfer, item->pair, 0, "", &record) &&
		record.type == S_IFREG;
	if (!known && item->root_name && item->root_dir != STAGE_OUT_NO_DIR)
		known = transfer_record(item->transfer, 0, item->root_dir, item->root_name,
				&record) &&
			record.pair == item->pair && !out->suspect;
	if (known)
		delta_expect(expect, &record.shared);
}

/* What can not be written because the stage is full costs only that a next run meets a conflict. */
static int note_sent(struct stage_out *out, int dirfd, const char *name, struct error *err)
{
	struct manifest_entry record = { .type = S_IFREG, .pair = out->item.pair };
	struct error failed = ERROR_INIT;
	struct stat st;
	int rc;

	if (!out->records || !out->item.pair)
		return 0;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return error_errno(err, "stat");
	record.mode = st.st_mode & 07777;
	record.run = manifest_run(out->item.transfer->manifest);
	manifest_identity_from(&st, &record.shared);
	rc = manifest_put(
		out->item.transfer->manifest, out->item.pair, 0, "", &record, &failed);
	return rc < 0 && rc != -ENOSPC && rc != -EDQUOT ?
		error_set(err, rc, "%s", failed.text) :
		0;
}

static void problem(
	void *ctx, const char *path, enum copy_outcome outcome, const struct error *err)
{
	struct stage_out *out = ctx;

	transfer_tell_path(&out->item, path, outcome, err->text);
}

int stage_out_pack(struct stage_out *out, enum copy_conflict conflict, const char *const *leave,
	struct error *err)
{
	const struct transfer_context *context = out->item.transfer->context;
	const struct pack_options options = {
		.format = pack_format_find(spec_pack_name(out->item.plan->spec->pack)),
		.threads = context->threads,
		.filter = out->item.filter,
		.leave = leave,
		.cancel = context->cancel,
		.problem = problem,
		.ctx = out,
	};
	struct pack_file to = { .conflict = conflict,
		.suffix = context->conflict_suffix ? context->conflict_suffix : "conflict" };
	struct publish_result result;
	struct copy_counts counts = { 0 };
	autoclose int parent = -1;
	int rc;

	if (!out->item.plan->is_dir)
		return error_set(err, -ENOTDIR, "it is a file: pack= is for directories");
	parent = transfer_open_parent(out->item.plan->resolved, true, &to.name, err);
	if (parent < 0)
		return parent;
	to.dirfd = parent;
	expect_ours(out, &to.expect);
	rc = pack_file(out->rootfd, &to, &options, &result, &counts, err);
	transfer_add_counts(&out->item, &counts);
	if (rc < 0)
		return rc;
	if (result.fate == PUBLISH_DONE)
		return note_sent(out, parent, result.name, err);
	out->item.summary->counts.conflicts++;
	transfer_tell_path(&out->item, "", COPY_CONFLICT, err->text);
	return 0;
}
