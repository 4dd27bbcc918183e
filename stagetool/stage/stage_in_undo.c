#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"
#include "stage/records.h"
#include "stage/stage_in.h"
#include "tree/remove.h"

struct undo {
	struct transfer_item *item;
	const char *root;
	const struct stage_in_replaced *replaced;
};

/* Opens the directory that holds what record is about; *name is its name there. */
static int open_holder(const struct undo *undo, const struct record *record, const char **name)
{
	autofree char *path = path_join(undo->root, record->path), *dir = NULL;

	if (!path || !inside_split(path, &dir))
		return -ENOMEM;
	*name = record->name;
	return path_open_beneath(undo->item->transfer->context->stagefd, dir,
		O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS, NULL);
}

static bool is_ours(const struct undo *undo, const struct record *record)
{
	return record->entry->run == manifest_run(undo->item->transfer->manifest) && *record->name;
}

static int forget(const struct undo *undo, const struct record *record, struct error *err)
{
	return manifest_delete(
		undo->item->transfer->manifest, 0, record->parent, record->name, err);
}

static bool as_recorded(const struct stat *st, const struct manifest_entry *entry)
{
	struct manifest_identity now;

	manifest_identity_from(st, &now);
	/* Of several names of one file each removal changes the ctime of the others. */
	now.ctime_sec = entry->local.ctime_sec;
	now.ctime_nsec = entry->local.ctime_nsec;
	return (st->st_mode & S_IFMT) == entry->type &&
	       (S_ISFIFO(st->st_mode) || manifest_identity_equal(&now, &entry->local));
}

static int undo_file(void *ctx, const struct record *record, struct error *err)
{
	const struct undo *undo = ctx;
	autoclose int dirfd = -1;
	const char *name;
	struct stat st;
	int rc;

	if (!is_ours(undo, record) ||
		stage_in_replaced_has(undo->replaced, record->parent, record->name))
		return 0;
	rc = dirfd = open_holder(undo, record, &name);
	if (rc >= 0)
		rc = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	if (rc == 0 && as_recorded(&st, record->entry))
		rc = unlinkat(dirfd, name, 0) < 0 ? -errno : -ENOENT;
	return rc == -ENOENT ? forget(undo, record, err) : 0;
}

static int undo_directory(void *ctx, const struct record *record, struct error *err)
{
	const struct undo *undo = ctx;
	autoclose int dirfd = -1;
	const char *name;
	int rc;

	if (!is_ours(undo, record))
		return 0;
	rc = dirfd = open_holder(undo, record, &name);
	if (rc >= 0)
		rc = unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? -errno : -ENOENT;
	return rc == -ENOENT ? forget(undo, record, err) : 0;
}

/* A directory that says no even to us is opened up: what is in it has to go. */
static int undo_enter(void *ctx, const struct record *record, struct error *err)
{
	const struct undo *undo = ctx;
	autoclose int dirfd = -1, fd = -1;
	const char *name;

	(void)err;
	if (!is_ours(undo, record))
		return 0;
	dirfd = open_holder(undo, record, &name);
	if (dirfd >= 0)
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		(void)!fchmod(fd, S_IRWXU);
	return 0;
}

/* There was nothing before: nothing needs to be known of it. */
static void undo_whole(const struct undo *undo)
{
	struct transfer *transfer = undo->item->transfer;
	autofree char *dir = NULL;
	const char *name = inside_split(undo->root, &dir);
	autoclose int dirfd = !name ? -ENOMEM
				    : path_open_beneath(transfer->context->stagefd, dir,
					      O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS, NULL);

	if (dirfd >= 0)
		remove_tree(dirfd, name, NULL);
}

void stage_in_undo(struct transfer_item *item, struct stage_in_brought *brought)
{
	const struct records_ops ops = { undo_enter, undo_file, undo_directory };
	struct undo undo = { item, brought->root, &brought->replaced };
	struct error err = ERROR_INIT;

	stage_in_replaced_sort(&brought->replaced);
	if (!brought->existed)
		undo_whole(&undo);
	if (records_walk(item->transfer->manifest, brought->root, &ops, &undo, &err) < 0 &&
		err.code)
		transfer_broken(item->transfer, &err);
}
