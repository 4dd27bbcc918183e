#include "stage/stage_out.h"

#include <errno.h>
#include <string.h>

#include "stage/delta.h"

static uint32_t tree_of(const struct stage_out *out)
{
	return out->item.pair;
}

int stage_out_staged(
	struct stage_out *out, const struct copy_item *entry, struct manifest_entry *record)
{
	uint64_t dir = entry->parent ? entry->parent->id : out->item.root_dir;
	const char *name = entry->parent ? entry->name : out->item.root_name;

	if (dir == STAGE_OUT_NO_DIR)
		return 0;
	if (name)
		return transfer_record(out->item.transfer, 0, dir, name, record);
	*record = (struct manifest_entry){ .type = S_IFDIR, .mode = MANIFEST_MODE_UNKNOWN };
	return 1;
}

/* In its tree the root is directory 0, with a record of its own in front of those of its entries.
 */
int stage_out_sent(
	struct stage_out *out, const struct copy_item *entry, struct manifest_entry *record)
{
	if (!tree_of(out))
		return 0;
	return transfer_record(out->item.transfer, tree_of(out),
		entry->parent ? entry->parent->other : 0, entry->parent ? entry->name : "", record);
}

/* What can not be written because the stage is full is not worth losing results for: it is sent
 * once more another time. */
static void put(
	struct stage_out *out, const struct copy_item *entry, const struct manifest_entry *record)
{
	struct error err = ERROR_INIT;
	int rc;

	if (!out->records)
		return;
	rc = manifest_put(out->item.transfer->manifest, tree_of(out),
		entry->parent ? entry->parent->other : 0, entry->parent ? entry->name : "", record,
		&err);
	if (rc < 0 && rc != -ENOSPC && rc != -EDQUOT)
		transfer_broken(out->item.transfer, &err);
}

/* dst: what it is there; NULL: not known. */
static void put_sent(struct stage_out *out, const struct copy_item *entry, const struct stat *dst)
{
	const struct stat *src = entry->src;
	bool whole = !transfer_lacks_attribute(&out->item, entry) || S_ISDIR(src->st_mode);
	struct manifest_entry record = {
		.type = src->st_mode & S_IFMT,
		.mode = whole ? src->st_mode & 07777 : MANIFEST_MODE_UNKNOWN,
		.uid = src->st_uid,
		.gid = src->st_gid,
		.pair = out->item.pair,
		.run = out->records ? manifest_run(out->item.transfer->manifest) : 0,
		.dir = entry->tag ? entry->tag->other : 0,
	};

	manifest_identity_from(src, &record.local);
	if (dst)
		manifest_identity_from(dst, &record.shared);
	put(out, entry, &record);
}

/* A directory that nobody knew of was there. */
static void put_found(
	struct stage_out *out, const struct copy_item *entry, const struct stat *dst)
{
	struct manifest_entry known;

	if (transfer_filter(&out->item, entry) != FILTER_IN)
		return;
	if (stage_out_staged(out, entry, &known) && known.type == S_IFDIR &&
		known.mode != MANIFEST_MODE_UNKNOWN)
		return;
	if (stage_out_sent(out, entry, &known) && known.type == S_IFDIR &&
		known.mode != MANIFEST_MODE_UNKNOWN)
		return;
	put_sent(out, entry, dst);
}

/* In the tree of what was sent a directory has the id that it has in the stage's tree. One that has
 * none gets one, and a record, so that what is sent of it can be found again. */
static void tag_dir(struct stage_out *out, const struct copy_item *entry,
	const struct manifest_entry *staged, const struct manifest_entry *sent,
	struct copy_tag *tag)
{
	struct manifest_entry record = { .type = S_IFDIR, .mode = MANIFEST_MODE_UNKNOWN };

	tag->id = staged && staged->type == S_IFDIR ? staged->dir : STAGE_OUT_NO_DIR;
	if (!entry->parent) {
		tag->other = 0;
	} else if (sent && sent->type == S_IFDIR) {
		tag->other = sent->dir;
	} else if (tag->id != STAGE_OUT_NO_DIR) {
		tag->other = tag->id;
	} else if (out->records) {
		record.dir = tag->other = manifest_new_dir(out->item.transfer->manifest);
		put(out, entry, &record);
	}
}

static enum copy_answer decide(void *ctx, const struct copy_item *entry, const struct stat *dst,
	struct copy_expect *expect, struct copy_tag *tag)
{
	struct stage_out *out = ctx;
	struct transfer *transfer = out->item.transfer;
	enum filter_answer filter = transfer_filter(&out->item, entry);
	struct manifest_entry staged, sent;
	bool have_staged, have_sent, send;

	(void)dst;
	if (filter == FILTER_OUT || transfer_is_broken(transfer))
		return COPY_LEAVE;
	have_staged = stage_out_staged(out, entry, &staged);
	have_sent = stage_out_sent(out, entry, &sent);
	send = delta_out(entry->src, have_staged ? &staged : NULL, have_sent ? &sent : NULL,
		out->suspect, expect);
	if (S_ISDIR(entry->src->st_mode))
		tag_dir(out, entry, have_staged ? &staged : NULL, have_sent ? &sent : NULL, tag);
	return send && filter != FILTER_ENTER ? COPY_SEND : COPY_SKIP;
}

static void outcome(void *ctx, const struct copy_item *entry, enum copy_outcome what,
	const struct stat *dst, const struct error *err)
{
	struct stage_out *out = ctx;
	bool kept = out->item.plan->spec->conflict == SPEC_CONFLICT_KEEP;

	transfer_tell_outcome(&out->item, entry, what, err);
	if (what == COPY_FAILED && !S_ISREG(entry->src->st_mode))
		atomic_store(&out->unlisted, true);
	if (what == COPY_UNCHANGED && S_ISDIR(entry->src->st_mode))
		put_found(out, entry, dst);
	/* Ours that was kept beside theirs has arrived, too: it is not sent again and again. */
	if (what == COPY_DONE || (what == COPY_CONFLICT && kept))
		put_sent(out, entry, what == COPY_DONE ? dst : NULL);
}

struct copy_hooks stage_out_hooks(struct stage_out *out)
{
	return (struct copy_hooks){ .ctx = out, .decide = decide, .outcome = outcome };
}
