#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "archive/unpack.h"
#include "base/cleanup.h"
#include "stage/stage_in.h"
#include "stage/transfer_live.h"

/* The archive, through no symlink that was put there since it was resolved. */
static int open_archive(const struct plan_item *plan, struct stat *st, struct error *err)
{
	const char *name;
	autoclose int parent = transfer_open_parent(plan->resolved, false, &name, err);
	autoclose int fd = parent < 0 ? parent :
					openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
						O_NOCTTY | O_CLOEXEC);

	if (parent < 0)
		return parent;
	if (fd < 0 || fstat(fd, st) < 0)
		return error_errno(err, "open");
	if (!S_ISREG(st->st_mode))
		return error_set(err, -EINVAL, "it is no file: not an archive");
	return take_fd(fd);
}

/* What a tree came out of as a whole, as the record of its root has it: the archive, and which of its members
 * were wanted. */
static void origin_of(const struct transfer_item *item, const struct stat *archive,
	struct manifest_identity *origin)
{
	const struct spec *spec = item->plan->spec;
	uint64_t hash = 0;

	manifest_identity_from(archive, origin);
	for (size_t i = 0; i < spec->n_patterns; i++)
		hash = XXH3_64bits_withSeed(spec->patterns[i].glob, strlen(spec->patterns[i].glob),
			2 * hash + spec->patterns[i].include);
	origin->ino ^= hash;
}

static bool is_unpacked(struct transfer_item *item, const struct stage_in_target *target,
	const struct manifest_identity *origin)
{
	struct manifest_entry record;

	return target->exists && item->root_name &&
	       transfer_record(
		       item->transfer, 0, item->root_dir, item->root_name, &record) &&
	       record.type == S_IFDIR && record.pair == item->pair &&
	       manifest_identity_equal(&record.shared, origin);
}

static int note_unpacked(struct transfer_item *item, const struct manifest_identity *origin,
	struct error *err)
{
	struct manifest_entry record;

	if (!item->root_name || !transfer_record(item->transfer, 0, item->root_dir,
					item->root_name, &record))
		return 0;
	record.shared = *origin;
	record.pair = item->pair;
	return manifest_put(item->transfer->manifest, 0, item->root_dir, item->root_name, &record,
		err);
}

/* All of it is there: nothing is to be done again unless the archive changes. */
static bool is_whole(const struct summary *summary)
{
	return summary_status(summary) == 0;
}

static int run_unpack(struct transfer_item *item, int fd, const struct stage_in_target *target,
	struct error *err)
{
	struct transfer_live *live = item->transfer->context->live;
	struct copy_options options;
	struct copy_hooks hooks;
	struct copy_counts counts;
	struct unpack *unpack;
	int rc;

	stage_in_prepare(item, target, &options, &hooks);
	options.threads = item->transfer->context->threads;
	options.max_bytes = item->transfer->context->max_bytes;
	rc = unpack_new(fd, target->fd, target->name, &options, &hooks, &unpack, err);
	if (rc < 0)
		return rc;
	transfer_live_began(live, unpack_copy(unpack));
	rc = unpack_run(unpack, err);
	copy_counts(unpack_copy(unpack), &counts);
	transfer_live_ended(live, &counts);
	transfer_add_counts(item, &counts);
	unpack_free(unpack);
	return rc;
}

int stage_in_unpack(
	struct transfer_item *item, const struct stage_in_target *target, struct error *err)
{
	struct manifest_identity origin, now;
	struct stat st;
	autoclose int fd = open_archive(item->plan, &st, err);
	int rc;

	if (fd < 0)
		return fd;
	origin_of(item, &st, &origin);
	if (is_unpacked(item, target, &origin)) {
		item->summary->counts.unchanged++;
		return 0;
	}
	rc = run_unpack(item, fd, target, err);
	if (rc < 0)
		return rc;
	if (fstat(fd, &st) < 0)
		return error_errno(err, "fstat");
	origin_of(item, &st, &now);
	if (!manifest_identity_equal(&origin, &now))
		return error_set(err, -ESTALE, "it changed while it was unpacked");
	return is_whole(item->summary) ? note_unpacked(item, &origin, err) : 0;
}
