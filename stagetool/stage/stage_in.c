#include "stage/stage_in.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/delta.h"
#include "stage/inside.h"
#include "stage/item_filter.h"

static const char *const leave_own[] = { MANIFEST_STAGE_DIR, NULL };

static uint64_t dir_of(const struct transfer_item *item, const struct copy_item *entry)
{
	return entry->parent ? entry->parent->id : item->root_dir;
}

static const char *name_of(const struct transfer_item *item, const struct copy_item *entry)
{
	return entry->parent ? entry->name : item->root_name;
}

/* dir: of a directory, its id. local: NULL where it is not known (yet). */
static void put(struct transfer_item *item, const struct copy_item *entry, uint64_t dir,
	const struct stat *local, uint32_t run)
{
	const struct stat *src = entry->src, *seen = local ? local : src;
	bool whole = (local || !S_ISDIR(src->st_mode)) && !transfer_lacks_attribute(item, entry);
	struct manifest_entry record = {
		.type = src->st_mode & S_IFMT,
		.mode = whole ? seen->st_mode & 07777 : MANIFEST_MODE_UNKNOWN,
		.uid = seen->st_uid,
		.gid = seen->st_gid,
		.pair = item->pair,
		.run = run,
		.dir = dir,
	};
	struct error err = ERROR_INIT;

	manifest_identity_from(src, &record.shared);
	if (local)
		manifest_identity_from(local, &record.local);
	if (manifest_put(item->transfer->manifest, 0, dir_of(item, entry), name_of(item, entry),
		    &record, &err) < 0)
		transfer_broken(item->transfer, &err);
}

/* Where another pair brought record from. Caller frees; NULL: this one did, or nobody knows. */
static char *brought_from(const struct transfer_item *item, const struct manifest_entry *record)
{
	char *local = NULL, *shared = NULL;

	if (record && record->pair && record->pair != item->pair)
		manifest_pair_roots(item->transfer->manifest, record->pair, &local, &shared, NULL);
	free(local);
	return shared;
}

static void tell_conflict(struct transfer_item *item, const struct copy_item *entry,
	const struct stat *dst, const struct manifest_entry *record)
{
	char *other = brought_from(item, record);
	struct error err = ERROR_INIT;

	if ((entry->src->st_mode & S_IFMT) != (dst->st_mode & S_IFMT))
		error_set(&err, -EEXIST, "the stage has something of another kind there: kept");
	else if (other)
		error_set(
			&err, -EEXIST, "the stage has a file there that came from %s: kept", other);
	else
		error_set(&err, -EEXIST,
			"the stage has a file there that was changed, or was not staged in: kept");
	free(other);
	pthread_mutex_lock(&item->transfer->lock);
	item->summary->counts.conflicts++;
	pthread_mutex_unlock(&item->transfer->lock);
	transfer_tell(item, entry, "conflict", err.text);
}

static void expect_dst(const struct stat *dst, struct copy_expect *expect)
{
	expect->kind = COPY_EXPECT_SAME;
	expect->identity.size = (uint64_t)dst->st_size;
	expect->identity.ino = dst->st_ino;
	expect->identity.mtime = dst->st_mtim;
	expect->identity.ctime = dst->st_ctim;
}

/* A directory as a run makes it before anything is in it, and that no record knows: left by a run that died
 * before the record was written. It is no more than that by its looks, and gets the source's attributes. */
static bool is_left_over(const struct transfer_item *item, const struct stat *dst,
	const struct manifest_entry *record)
{
	return !record && dst && manifest_follows_death(item->transfer->manifest) &&
	       (dst->st_mode & 07777) == 0700 && dst->st_uid == geteuid();
}

/* A directory gets its id here, and a record at once, so that what lies in it can be found again
 * even if this run does not come to its end. */
static enum copy_answer enter_dir(struct transfer_item *item, const struct copy_item *entry,
	const struct stat *dst, const struct manifest_entry *record, struct copy_expect *expect,
	struct copy_tag *tag)
{
	bool known = record && record->type == S_IFDIR;
	bool bring = delta_in(entry->src, dst, record, item->pair) == DELTA_IN_BRING ||
		     is_left_over(item, dst, record);

	if (!name_of(item, entry))
		return COPY_SKIP; /* the stage itself: id 0, and its mode stays */
	tag->id = known ? record->dir : manifest_new_dir(item->transfer->manifest);
	if (!known && bring)
		put(item, entry, tag->id, NULL, manifest_run(item->transfer->manifest));
	else if (!known)
		put(item, entry, tag->id, dst, 0);
	/* Also one that was not there when it was looked for: ours, whatever the answer to mkdir was. */
	if (bring || known)
		expect->kind = COPY_EXPECT_ANY;
	return bring ? COPY_SEND : COPY_SKIP;
}

static void note_replaced(struct transfer_item *item, const struct copy_item *entry)
{
	pthread_mutex_lock(&item->transfer->lock);
	stage_in_replaced_add(item->replaced, dir_of(item, entry), name_of(item, entry));
	pthread_mutex_unlock(&item->transfer->lock);
}

/* A file of several names that is replaced under one of them: its ctime is no longer what the record says,
 * by our own doing. */
static void note_losing(struct transfer_item *item, const struct stat *dst)
{
	struct links_file *file = dst->st_nlink > 1 ? links_lock(item->losing, dst, 0) : NULL;

	if (!file)
		return;
	file->data = item;
	links_unlock(item->losing, file);
}

static void forgive_ctime(
	struct transfer_item *item, const struct stat *dst, struct manifest_entry *record)
{
	struct links_file *file;

	/* only where it matters: what is asked for is kept in mind */
	if (!S_ISREG(dst->st_mode) || dst->st_ino != record->local.ino ||
		(dst->st_ctim.tv_sec == record->local.ctime_sec &&
			(uint32_t)dst->st_ctim.tv_nsec == record->local.ctime_nsec))
		return;
	file = links_lock(item->losing, dst, 0);
	if (file && file->data) {
		record->local.ctime_sec = dst->st_ctim.tv_sec;
		record->local.ctime_nsec = (uint32_t)dst->st_ctim.tv_nsec;
	}
	if (file)
		links_unlock(item->losing, file);
}

static enum copy_answer decide(void *ctx, const struct copy_item *entry, const struct stat *dst,
	struct copy_expect *expect, struct copy_tag *tag)
{
	struct transfer_item *item = ctx;
	struct transfer *transfer = item->transfer;
	enum filter_answer filter = transfer_filter(item, entry);
	bool is_dir = S_ISDIR(entry->src->st_mode);
	struct manifest_entry found, *record = NULL;
	enum delta_in delta;

	if (filter == FILTER_OUT || transfer_is_broken(transfer))
		return COPY_LEAVE;
	if ((dst || is_dir) && name_of(item, entry) &&
		transfer_record(transfer, 0, dir_of(item, entry), name_of(item, entry), &found))
		record = &found;
	if (record && dst)
		forgive_ctime(item, dst, record);
	delta = delta_in(entry->src, dst, record, item->pair);
	if (delta == DELTA_IN_CONFLICT) {
		tell_conflict(item, entry, dst, record);
		return COPY_LEAVE;
	}
	if (is_dir) {
		enum copy_answer answer = enter_dir(item, entry, dst, record, expect, tag);

		return filter == FILTER_ENTER ? COPY_SKIP : answer;
	}
	if (delta == DELTA_IN_ADOPT)
		put(item, entry, 0, dst, 0);
	if (delta == DELTA_IN_REPLACE) {
		expect_dst(dst, expect);
		note_losing(item, dst);
		note_replaced(item, entry);
	}
	return delta == DELTA_IN_BRING || delta == DELTA_IN_REPLACE ? COPY_SEND : COPY_SKIP;
}

static void outcome(void *ctx, const struct copy_item *entry, enum copy_outcome what,
	const struct stat *dst, const struct error *err)
{
	struct transfer_item *item = ctx;
	bool is_dir = S_ISDIR(entry->src->st_mode);

	transfer_tell_outcome(item, entry, what, err);
	if (what != COPY_DONE || !name_of(item, entry))
		return;
	put(item, entry, is_dir ? entry->tag->id : 0, dst, manifest_run(item->transfer->manifest));
}

static int find_records(
	struct transfer_item *item, const struct stage_in_target *target, struct error *err)
{
	struct manifest *manifest = item->transfer->manifest;
	autofree char *dir = NULL;
	int rc = manifest_pair(
		manifest, item->plan->local, item->plan->shared, true, &item->pair, err);

	if (rc < 0)
		return rc;
	item->root_name = strcmp(target->root, ".") == 0 ? NULL : inside_split(target->root, &dir);
	if (!item->root_name)
		return strcmp(target->root, ".") == 0 ? 0 : error_sys(err, -ENOMEM, "manifest");
	return manifest_make_dirs(manifest, 0, dir, &item->root_dir, err);
}

/* Its own fd for a directory, its parent's for a file. The path is free of symlinks since it was
 * resolved: one that is there now was put there to lead us elsewhere. */
static int open_source(const struct plan_item *plan, const char **name, struct error *err)
{
	autoclose int parent = transfer_open_parent(plan->resolved, false, name, err);
	int fd;

	if (parent < 0)
		return parent;
	if (!plan->is_dir)
		return take_fd(parent);
	fd = path_open_beneath(parent, *name, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS, err);
	*name = ".";
	return fd;
}

void stage_in_prepare(struct transfer_item *item, const struct stage_in_target *target,
	struct copy_options *options, struct copy_hooks *hooks)
{
	transfer_options(item, options);
	options->publish = !item->transfer->context->private_stage;
	options->look = target->exists;
	/* the modification times are old, and cleaners go by the later one */
	options->accessed_now = true;
	options->conflict = COPY_CONFLICT_FAIL;
	options->leave = item->root_name ? NULL : leave_own;
	*hooks = (struct copy_hooks){
		.ctx = item, .decide = decide, .outcome = outcome, .sends_new = !item->filter
	};
}

static int run_copy(
	struct transfer_item *item, const struct stage_in_target *target, struct error *err)
{
	struct transfer_copy run = { .dstdir = target->fd, .dstname = target->name };
	autoclose int source = open_source(item->plan, &run.srcname, err);

	if (source < 0)
		return source;
	run.srcdir = source;
	stage_in_prepare(item, target, &run.options, &run.hooks);
	return transfer_copy(item, &run, err);
}

int stage_in(struct transfer_item *item, struct stage_in_brought *brought, struct error *err)
{
	struct stage_in_target target = { .fd = -1 };
	int rc = stage_in_target(item, &target, err);

	brought->existed = target.exists;
	item->replaced = &brought->replaced;
	item->losing = links_new();
	if (rc == 0 && !item->losing)
		rc = error_sys(err, -ENOMEM, "stage-in");
	if (rc == 0)
		rc = find_records(item, &target, err);
	if (rc == 0)
		rc = item_filter_new(item->plan->spec, &item->filter, err);
	if (rc == 0)
		rc = item->plan->spec->as == SPEC_AS_UNPACK ? stage_in_unpack(item, &target, err) :
							      run_copy(item, &target, err);
	filter_free(item->filter);
	links_free(item->losing);
	transfer_forget_notes(item);
	brought->root = take_ptr(target.root);
	stage_in_target_free(&target);
	return rc;
}
