#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"
#include "stage/records.h"
#include "stage/stage_out.h"

struct removal {
	struct stage_out *out;
	uint64_t root_id; /* of the root's directory in tree 0 */
	int tofd;         /* TO, opened when something in it is to go */
};

/* Where path is below a root: its directory's fd, and its name in it. */
static int open_holder(int rootfd, const char *path, const char **name, struct error *err)
{
	autofree char *dir = NULL;

	*name = inside_split(path, &dir);
	if (!*name)
		return error_sys(err, -ENOMEM, "%s", path);
	return path_open_beneath(rootfd, dir, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS, err);
}

/* 1: path is gone from the stage; 0: something is there. An error: it is not known. */
static int is_gone(const struct removal *removal, const char *path, struct error *err)
{
	struct error why = ERROR_INIT;
	const char *name;
	autoclose int dirfd = open_holder(removal->out->rootfd, path, &name, &why);
	struct stat st;

	if (dirfd == -ENOENT)
		return 1;
	/* A directory in the stage became something else: a conflict, and nothing to be removed. */
	if (dirfd == -ENOTDIR || dirfd == -ELOOP)
		return 0;
	if (dirfd < 0)
		return error_set(err, dirfd, "%s", why.text);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return errno == ENOENT ? 1 : error_errno(err, "%s", path);
}

static bool takes_part(const struct removal *removal, const struct record *record)
{
	bool is_dir = record->entry->type == S_IFDIR;
	autofree char *dir = NULL;
	const char *name;

	if (!*record->path || !removal->out->item.filter)
		return true;
	name = inside_split(record->path, &dir);
	return name && filter_match(removal->out->item.filter, strcmp(dir, ".") == 0 ? "" : dir,
			       name, is_dir) != FILTER_OUT;
}

/* The shared side as we last knew it: as it was sent, or else as it was staged in. */
static struct manifest_identity last_known(
	const struct removal *removal, const struct record *record)
{
	const struct stage_out *out = removal->out;
	uint64_t dir = record->parent == removal->root_id ? 0 : record->parent;
	struct manifest_entry sent;

	if (out->item.pair &&
		transfer_record(out->item.transfer, out->item.pair, dir, record->name, &sent) &&
		sent.run >= record->entry->run)
		return sent.shared;
	return record->entry->shared;
}

static bool may_go(
	const struct removal *removal, const struct record *record, const struct stat *st)
{
	struct manifest_identity now, known = last_known(removal, record);

	manifest_identity_from(st, &now);
	if (record->entry->type == S_IFDIR)
		return S_ISDIR(st->st_mode) && now.ino == known.ino;
	return (st->st_mode & S_IFMT) == record->entry->type &&
	       manifest_identity_equal(&now, &known);
}

static int open_to(struct removal *removal, struct error *err)
{
	const char *name;
	autoclose int parent = -1;

	if (removal->tofd >= 0)
		return 0;
	parent = transfer_open_parent(removal->out->item.plan->resolved, false, &name, err);
	if (parent < 0)
		return parent;
	removal->tofd = path_open_beneath(
		parent, name, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS, err);
	return removal->tofd < 0 ? removal->tofd : 0;
}

static int remove_at(int dirfd, const char *name, const struct removal *removal,
	const struct record *record, struct error *err)
{
	bool is_dir = record->entry->type == S_IFDIR;
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_errno(err, "%s", record->path);
	if (!may_go(removal, record, &st))
		return 0;
	if (unlinkat(dirfd, name, is_dir ? AT_REMOVEDIR : 0) == 0)
		removal->out->item.summary->removed++;
	else if (errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
		return error_errno(err, "%s: removing it", record->path);
	return 0;
}

/* That TO, or a directory in it, is not there leaves nothing to do. */
static int remove_shared(struct removal *removal, const struct record *record, struct error *err)
{
	struct error why = ERROR_INIT;
	autoclose int dirfd = -1;
	const char *name;
	int rc = open_to(removal, &why);

	if (rc == 0)
		rc = dirfd = open_holder(removal->tofd, record->path, &name, &why);
	if (rc >= 0)
		return remove_at(dirfd, name, removal, record, err);
	return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP ? 0
							       : error_set(err, rc, "%s", why.text);
}

static int gone_file(void *ctx, const struct record *record, struct error *err)
{
	struct removal *removal = ctx;
	int rc = takes_part(removal, record) ? is_gone(removal, record->path, err) : 0;

	return rc == 1 ? remove_shared(removal, record, err) : rc;
}

static int gone_enter(void *ctx, const struct record *record, struct error *err)
{
	(void)err;
	return takes_part(ctx, record) ? 0 : 1;
}

static int gone_directory(void *ctx, const struct record *record, struct error *err)
{
	/* One that was never complete was never there. */
	if (!*record->path || record->entry->mode == MANIFEST_MODE_UNKNOWN)
		return 0;
	return gone_file(ctx, record, err);
}

static void tell(struct stage_out *out, const char *text)
{
	out->item.summary->counts.failed++;
	transfer_tell(&out->item, NULL, "failed", text);
}

void stage_out_delete(struct stage_out *out)
{
	const struct records_ops ops = { gone_enter, gone_file, gone_directory };
	struct removal removal = { .out = out, .tofd = -1 };
	struct manifest *manifest = out->item.transfer->manifest;
	struct manifest_entry root;
	struct error err = ERROR_INIT;
	int rc;

	if (out->suspect || atomic_load(&out->unlisted)) {
		tell(out, out->suspect
				  ? "nothing was deleted: the machine went down since the stage-in"
				  : "nothing was deleted: a directory could not be read");
		return;
	}
	rc = manifest ? manifest_find(manifest, 0, out->item.plan->local, &root, &err) : -ENOENT;
	if (rc == 0) {
		removal.root_id = root.dir;
		rc = records_walk(manifest, out->item.plan->local, &ops, &removal, &err);
	}
	if (rc < 0 && err.code) {
		error_prefix(&err, rc, "deleting ended");
		tell(out, err.text);
	}
	if (removal.tofd >= 0)
		close(removal.tofd);
}
