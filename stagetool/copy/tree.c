#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/retry.h"
#include "copy/internal.h"

/* Names that are never copied: temporaries, and what the caller keeps at the root. */
static bool tree_leaves_out(const struct copy *copy, const struct copy_dir *dir, const char *name)
{
	if (publish_is_temp(name))
		return true;
	if (dir->parent || dir->base || !copy->options.leave)
		return false;
	for (const char *const *leave = copy->options.leave; *leave; leave++)
		if (!strcmp(*leave, name))
			return true;
	return false;
}

/* Some filesystems have names that others can not have. */
static bool tree_name_too_long(
	struct copy *copy, struct copy_dir *dir, const char *name, unsigned worker)
{
	struct error err = ERROR_INIT;

	if (strlen(name) <= NAME_MAX)
		return false;
	error_sys(&err, -ENAMETOOLONG, "its name");
	copy_name_tell(copy, dir, name, COPY_FAILED, &err, worker);
	return true;
}

int copy_entry_pin_source(const struct copy_entry *entry, struct error *err)
{
	return entry->dir->walk ? walk_dir_pin(entry->dir->walk, err) : entry->copy->srcdir;
}

void copy_entry_unpin_source(const struct copy_entry *entry)
{
	if (entry->dir->walk)
		walk_dir_unpin(entry->dir->walk);
}

int copy_entry_own(struct copy_entry *entry)
{
	char *src_name = strdup(entry->src_name);
	char *dst_name = strdup(entry->dst_name);

	if (!src_name || !dst_name) {
		free(src_name);
		free(dst_name);
		return -ENOMEM;
	}
	entry->src_name = src_name;
	entry->dst_name = dst_name;
	entry->owned = true;
	copy_dir_ref(entry->dir);
	if (entry->dir->walk)
		walk_dir_hold(entry->dir->walk);
	return 0;
}

void copy_entry_disown(struct copy_entry *entry, unsigned worker)
{
	free((char *)entry->src_name);
	free((char *)entry->dst_name);
	if (entry->dir->walk)
		walk_dir_release(entry->dir->walk, worker);
	copy_dir_unref(entry->dir);
}

/* What is at the destination's name now. */
static bool tree_look(struct copy_dir *dir, const char *name, struct stat *dst)
{
	int fd = copy_dir_look(dir);
	bool have;

	if (fd < 0)
		return false;
	have = !fstatat(fd, name, dst, AT_SYMLINK_NOFOLLOW);
	copy_dir_unpin(dir);
	return have;
}

enum copy_answer copy_entry_decide(struct copy_entry *entry, struct stat *dst, bool *have_dst)
{
	struct copy *copy = entry->copy;
	struct copy_dir *dir = entry->dir;
	struct copy_tag tag = { 0, 0 };
	struct copy_item item;
	struct copy_place place;

	entry->expect = copy->options.expect;
	*have_dst = copy->options.look && tree_look(dir, entry->dst_name, dst);
	if (!copy->hooks.decide)
		return COPY_SEND;
	copy_item_of(&item, &place, dir, dir->base ? "" : entry->src_name, &entry->st, NULL);
	return copy->hooks.decide(
		copy->hooks.ctx, &item, *have_dst ? dst : NULL, &entry->expect, &tag);
}

void copy_entry_send(struct copy_entry *entry, unsigned worker)
{
	if (S_ISREG(entry->st.st_mode))
		copy_file_send(entry, worker);
	else
		copy_other_send(entry, worker);
}

static bool tree_is_equal(const struct stat *src, const struct stat *dst)
{
	return S_ISREG(dst->st_mode) && src->st_size == dst->st_size &&
	       src->st_mtim.tv_sec == dst->st_mtim.tv_sec &&
	       src->st_mtim.tv_nsec == dst->st_mtim.tv_nsec;
}

/* Asks the caller about an entry whose lstat is known, and does it. */
static void entry_judge(struct copy_entry *entry, unsigned worker)
{
	bool linked = entry->st.st_nlink > 1;
	struct stat dst;
	bool have_dst;

	switch (copy_entry_decide(entry, &dst, &have_dst)) {
	case COPY_SEND:
		copy_entry_send(entry, worker);
		break;
	case COPY_SKIP:
		if (linked && !copy_group_pass(entry,
				      have_dst && tree_is_equal(&entry->st, &dst) ? &dst : NULL)) {
			copy_entry_send(entry, worker);
			break;
		}
		copy_entry_tell(entry, COPY_UNCHANGED, have_dst ? &dst : NULL, NULL, worker);
		break;
	case COPY_LEAVE:
		if (linked)
			copy_group_pass(entry, NULL);
		break;
	}
}

/* lstat of the source. */
static int entry_stat(struct copy_entry *entry, struct error *err, unsigned worker)
{
	unsigned attempt = 0;
	int dirfd = copy_entry_pin_source(entry, err), rc;
	uint64_t start = copy_width_start(entry->copy, worker);

	if (dirfd < 0)
		return dirfd;
	do
		rc = fstatat(dirfd, entry->src_name, &entry->st, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	while (rc && retry_again(rc, &attempt));
	copy_width_note(entry->copy, COPY_TIMED_STAT, start, 1);
	copy_entry_unpin_source(entry);
	return rc ? error_sys(err, rc, "stat") : 0;
}

/* Whether any regular file of dir is sent, whatever it is and whatever is at its name. */
static bool tree_is_certain(const struct copy_dir *dir)
{
	const struct copy *copy = dir->copy;

	if (copy->hooks.sends_new && dir->parent &&
		atomic_load_explicit(&dir->state, memory_order_acquire) == COPY_DIR_READY &&
		dir->made)
		return true;
	return !copy->hooks.decide && !copy->options.look;
}

void copy_entry_run(struct copy *copy, struct copy_dir *dir, const char *src_name,
	const char *dst_name, unsigned char type, unsigned worker)
{
	struct copy_entry entry;
	struct error err;

	memset(&entry.st, 0, sizeof(entry.st));
	entry.copy = copy;
	entry.dir = dir;
	entry.src_name = src_name;
	entry.dst_name = dst_name;
	entry.expect = copy->options.expect;
	entry.equal = false;
	entry.owned = false;
	if (tree_leaves_out(copy, dir, src_name))
		return;
	copy_width_count(copy, worker);
	if (tree_name_too_long(copy, dir, src_name, worker))
		return;
	if (type == DT_REG && tree_is_certain(dir))
		copy_file_send(&entry, worker); /* open and fstat: no lstat before */
	else if (entry_stat(&entry, &err, worker) < 0)
		copy_entry_fail(&entry, true, &err, worker);
	else
		entry_judge(&entry, worker);
}

static void tree_entries(void *ctx, struct walk_dir *walk, const struct walk_entry *entries,
	unsigned count, unsigned worker)
{
	struct copy *copy = ctx;

	struct copy_dir *dir = walk_dir_data(walk);
	/* Once for all: the entries pin it then without a lock. */
	bool pinned = copy_dir_hold_open(dir);

	copy_worker_get(copy, worker);
	copy->workers[worker].walk = walk;
	for (unsigned i = 0; i < count && !copy_stopped(copy); i++)
		copy_entry_run(
			copy, dir, entries[i].name, entries[i].name, entries[i].type, worker);
	copy->workers[worker].walk = NULL;
	if (pinned)
		copy_dir_unpin(dir);
}

/* Whether a directory is the destination itself, seen through a bind mount. */
static bool tree_is_destination(struct copy *copy, const struct stat *st)
{
	bool same;

	pthread_mutex_lock(&copy->lock);
	same = copy->dst_root.st_ino && copy->dst_root.st_ino == st->st_ino &&
	       copy->dst_root.st_dev == st->st_dev;
	pthread_mutex_unlock(&copy->lock);
	return same;
}

/* What the caller wants of a directory, and what is known of its destination. */
static enum copy_answer tree_decide_dir(struct copy_dir *dir, bool *have_dst)
{
	struct copy *copy = dir->copy;
	struct copy_item item;
	struct copy_place place;
	struct stat dst;

	dir->expect = copy->options.expect;
	*have_dst = false;
	if (copy->options.look && dir->parent)
		*have_dst = tree_look(dir->parent, dir->name, &dst);
	else if (copy->options.look && !dir->parent)
		*have_dst = !fstatat(copy->dstdir, copy->dstname[0] ? copy->dstname : ".", &dst,
			AT_SYMLINK_NOFOLLOW);
	if (!copy->hooks.decide)
		return COPY_SEND;
	copy_item_of(&item, &place, dir->parent, dir->name, &dir->src, NULL);
	return copy->hooks.decide(
		copy->hooks.ctx, &item, *have_dst ? &dst : NULL, &dir->expect, &dir->tag);
}

/* A directory that is looked into, whether or not it is sent itself. */
static void tree_begin_dir(struct copy_dir *dir, bool have_dst, unsigned worker)
{
	struct error err = ERROR_INIT;

	/* Without look an unsent directory is not even opened before something in it is sent. */
	if (dir->send || (dir->copy->options.look && have_dst))
		copy_dir_make(dir, worker, &err);
}

static int tree_enter(void *ctx, struct walk_dir *walk, const struct stat *st, unsigned worker)
{
	struct copy *copy = ctx;
	struct walk_dir *above = walk_dir_parent(walk);
	struct copy_dir *parent = above ? walk_dir_data(above) : NULL;
	const char *name = walk_dir_name(walk);
	struct error err = ERROR_INIT;
	struct copy_dir *dir;
	enum copy_answer answer;
	bool have_dst;

	copy_worker_get(copy, worker);
	if (copy_stopped(copy) || (parent && tree_leaves_out(copy, parent, name)))
		return 1;
	if (tree_name_too_long(copy, parent, name, worker))
		return -ENAMETOOLONG;
	if (parent && tree_is_destination(copy, st)) {
		error_set(&err, -EINVAL, "it is the destination itself");
		copy_name_tell(copy, parent, name, COPY_FAILED, &err, worker);
		return 1;
	}
	dir = copy_dir_new(copy, parent, name, st);
	if (!dir) {
		error_sys(&err, -ENOMEM, "a directory");
		copy_name_tell(copy, parent, name, COPY_FAILED, &err, worker);
		return -ENOMEM;
	}
	dir->walk = walk;
	answer = tree_decide_dir(dir, &have_dst);
	if (answer == COPY_LEAVE) {
		copy_dir_unref(dir);
		return 1;
	}
	dir->send = answer == COPY_SEND;
	walk_dir_set_data(walk, dir);
	tree_begin_dir(dir, have_dst, worker);
	if (atomic_load(&dir->state) != COPY_DIR_FAILED)
		return 0;
	/* It was named; to name everything in it too would say nothing more. */
	walk_dir_set_data(walk, NULL);
	copy_dir_unref(dir);
	return 1;
}

static void tree_leave(void *ctx, struct walk_dir *walk, unsigned worker)
{
	struct copy_dir *dir = walk_dir_data(walk);

	copy_worker_get(ctx, worker);
	copy_dir_finish(dir, worker);
	dir->walk = NULL;
	copy_dir_unref(dir);
}

static void tree_failed(void *ctx, struct walk_dir *walk, const char *name, const struct error *err,
	unsigned worker)
{
	struct copy_dir *dir = walk_dir_data(walk);

	copy_worker_get(ctx, worker);
	if (name)
		copy_name_tell(ctx, dir, name, err->code == -ENOENT ? COPY_VANISHED : COPY_FAILED,
			err, worker);
	else if (dir)
		copy_dir_tell(dir, COPY_FAILED, NULL, err, worker);
	else
		copy_name_tell(ctx, NULL, "", COPY_FAILED, err, worker); /* the root, not entered */
}

static uint64_t tree_list_begin(void *ctx, unsigned worker)
{
	return copy_width_start_list(ctx, worker);
}

static void tree_list_end(void *ctx, uint64_t begun, unsigned worker)
{
	(void)worker;
	copy_width_note(ctx, COPY_TIMED_LIST, begun, 1);
}

const struct walk_ops copy_walk_ops = {
	.enter = tree_enter,
	.entries = tree_entries,
	.leave = tree_leave,
	.failed = tree_failed,
	.list_begin = tree_list_begin,
	.list_end = tree_list_end,
};
