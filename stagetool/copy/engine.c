#include "copy/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "copy/internal.h"

/* With so much free, what a new entry lacks is not bytes. */
#define ENGINE_SOME_SPACE (64u << 10)

bool copy_stopped(struct copy *copy)
{
	if (copy->options.cancel &&
		atomic_load_explicit(copy->options.cancel, memory_order_relaxed))
		atomic_store_explicit(&copy->stop, true, memory_order_relaxed);
	return atomic_load_explicit(&copy->stop, memory_order_relaxed);
}

void copy_stop(struct copy *copy, const struct error *err)
{
	pthread_mutex_lock(&copy->lock);
	if (!copy->stop_code) {
		copy->stop_code = err->code;
		copy->stop_error = *err;
	}
	pthread_mutex_unlock(&copy->lock);
	atomic_store_explicit(&copy->stop, true, memory_order_relaxed);
}

void copy_no_space(struct copy *copy, int dirfd, bool creating, struct error *err)
{
	char free_text[32], all_text[32];
	struct statvfs fs;
	int code = err->code;

	if ((code != -ENOSPC && code != -EDQUOT) || fstatvfs(dirfd, &fs))
		return;
	/* XFS and others make inodes of free space, and then have neither. */
	if (creating && fs.f_files && (uint64_t)fs.f_bavail * fs.f_frsize >= ENGINE_SOME_SPACE)
		error_set(err, code, "no space left for inodes: %llu of %llu are free (%s)",
			(unsigned long long)fs.f_favail, (unsigned long long)fs.f_files,
			strerrordesc_np(-code));
	else
		error_set(err, code, "no space left for bytes: %s of %s are free (%s)",
			parse_format_size(
				(uint64_t)fs.f_bavail * fs.f_frsize, free_text, sizeof(free_text)),
			parse_format_size(
				(uint64_t)fs.f_blocks * fs.f_frsize, all_text, sizeof(all_text)),
			strerrordesc_np(-code));
	if (code == -ENOSPC)
		copy_stop(copy, err);
}

/* A thread of ours has a umask of its own: modes are given exactly, and the process keeps its
 * umask. Where that may not be, every entry costs a chmod more. */
struct copy_worker *copy_worker_get(struct copy *copy, unsigned worker)
{
	struct copy_worker *own = &copy->workers[worker];

	if (!own->ready && !unshare(CLONE_FS))
		umask(0);
	own->ready = true;
	return own;
}

bool copy_relieve_fds(struct copy *copy, int code, unsigned *attempt)
{
	struct timespec pause = { 0, 1000000 };

	if ((code != -EMFILE && code != -ENFILE) || *attempt >= 200)
		return false;
	++*attempt;
	if (!handle_cache_relieve(&copy->cache))
		nanosleep(&pause, NULL);
	return true;
}

/* One third of the fds is the walk's, one is for destination directories. */
static unsigned engine_fd_budget(void)
{
	unsigned limit = handle_limit();

	return limit > 88 ? (limit - 64) / 3 : 8;
}

static char *engine_name(const char *name)
{
	return strdup(strcmp(name, ".") ? name : "");
}

/* What needs no more than memory. */
static struct copy *engine_alloc(const struct copy_options *options, const struct copy_hooks *hooks)
{
	struct copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->options = *options;
	if (hooks)
		copy->hooks = *hooks;
	pthread_mutex_init(&copy->lock, NULL);
	for (int i = 0; i < COPY_DIR_LOCKS; i++)
		pthread_mutex_init(&copy->dir_locks[i], NULL);
	handle_cache_init(&copy->cache, engine_fd_budget());
	return copy;
}

static int engine_open_source(struct copy *copy, struct error *err)
{
	const char *name = copy->srcname;

	if (name[0] ? fstatat(copy->srcdir, name, &copy->src_root, AT_SYMLINK_NOFOLLOW)
		    : fstat(copy->srcdir, &copy->src_root))
		return error_errno(err, "the source");
	if (!S_ISDIR(copy->src_root.st_mode) && !copy->dstname[0])
		return error_set(
			err, -EISDIR, "the destination is a directory, and the source is none");
	return copy_check_inside(copy, err);
}

static int engine_prepare(struct copy *copy, struct error *err)
{
	const struct copy_options *options = &copy->options;
	const struct meta_options meta = {
		.keep_owner = options->keep_owner,
		.accessed_now = options->accessed_now,
		.inherit_group = options->inherit_group,
		.keep_special_bits = options->keep_special_bits,
	};
	int rc;

	if (!copy->srcname || !copy->dstname)
		return error_sys(err, -ENOMEM, "copying");
	if (strchr(copy->dstname, '/'))
		return error_set(err, -EINVAL, "%s: a name in a directory was expected, not a path",
			copy->dstname);
	copy->links = links_new();
	if (!copy->links)
		return error_sys(err, -ENOMEM, "copying");
	rc = range_new(options->engine, &copy->range, err);
	if (!rc)
		rc = meta_new(&meta, &copy->meta, err);
	if (!rc)
		rc = publish_new(&copy->publish, err);
	if (!rc && !copy->fed)
		rc = engine_open_source(copy, err);
	if (!rc)
		rc = pool_start(copy_width_begin(options, &copy->max_width), &copy->pool, err);
	return rc;
}

/* srcname NULL: it is fed. */
static int engine_new(int srcdir, const char *srcname, int dstdir, const char *dstname,
	const struct copy_options *options, const struct copy_hooks *hooks, struct copy **copy,
	struct error *err)
{
	struct copy *new = engine_alloc(options, hooks);
	int rc;

	if (!new)
		return error_sys(err, -ENOMEM, "copying");
	new->fed = !srcname;
	if (!srcname)
		srcname = "";
	new->srcdir = srcdir;
	new->dstdir = dstdir;
	new->srcname = engine_name(srcname);
	new->dstname = engine_name(dstname);
	rc = engine_prepare(new, err);
	if (rc) {
		copy_free(new);
		return rc;
	}
	*copy = new;
	return 0;
}

int copy_new(int srcdir, const char *srcname, int dstdir, const char *dstname,
	const struct copy_options *options, const struct copy_hooks *hooks, struct copy **copy,
	struct error *err)
{
	return engine_new(srcdir, srcname, dstdir, dstname, options, hooks, copy, err);
}

int copy_new_fed(int dstdir, const char *dstname, const struct copy_options *options,
	const struct copy_hooks *hooks, struct copy **copy, struct error *err)
{
	return engine_new(-1, NULL, dstdir, dstname, options, hooks, copy, err);
}

void copy_free(struct copy *copy)
{
	if (!copy)
		return;
	pool_free(copy->pool);
	links_free(copy->links);
	publish_free(copy->publish);
	meta_free(copy->meta);
	range_free(copy->range);
	for (unsigned i = 0; i <= COPY_FEEDER; i++) {
		range_buffer_free(&copy->workers[i].buffer);
		free(copy->workers[i].small);
	}
	handle_cache_destroy(&copy->cache);
	for (int i = 0; i < COPY_DIR_LOCKS; i++)
		pthread_mutex_destroy(&copy->dir_locks[i]);
	pthread_mutex_destroy(&copy->lock);
	free(copy->srcname);
	free(copy->dstname);
	free(copy);
}

static int engine_run_tree(struct copy *copy, struct error *err)
{
	const struct walk_options options = { .cancel = &copy->stop,
		.gather = &copy->source_waits };
	autoclose int opened = -1;
	struct stat st;
	int rootfd = copy->srcdir, rc;

	if (copy->srcname[0]) {
		opened = handle_open(&copy->cache, copy->srcdir, copy->srcname, &st);
		if (opened < 0)
			return error_sys(err, opened, "opening the source");
		rootfd = opened;
	}
	rc = walk_run(copy->pool, rootfd, &copy_walk_ops, copy, &options, err);
	return rc == -ECANCELED ? 0 : rc;
}

/* A root that is no directory, as the only entry of a directory. On a worker, as every entry is. */
struct engine_root {
	struct pool_task task;
	struct copy *copy;
	struct copy_dir *base;
};

static void engine_root_run(struct pool_task *task, unsigned worker)
{
	struct engine_root *root = (struct engine_root *)task;
	struct copy *copy = root->copy;

	copy_worker_get(copy, worker);
	copy_entry_run(copy, root->base, copy->srcname, copy->dstname,
		IFTODT(copy->src_root.st_mode), worker);
}

static int engine_run_file(struct copy *copy, struct error *err)
{
	struct engine_root root = { { engine_root_run, NULL }, copy, NULL };
	struct stat st;
	int fd = handle_open(&copy->cache, copy->dstdir, ".", &st), rc;

	if (fd < 0)
		return error_sys(err, fd, "opening the destination");
	root.base = copy_dir_new(copy, NULL, "", &st);
	if (!root.base) {
		close(fd);
		return error_sys(err, -ENOMEM, "copying");
	}
	root.base->base = true;
	rc = copy_dir_adopt(root.base, fd, &st, err);
	if (!rc) {
		pool_push(copy->pool, &root.task);
		pool_wait(copy->pool);
	}
	copy_group_flush(copy);
	copy_dir_unref(root.base);
	return rc;
}

/* The root's own name is in a directory that no walk has left. */
int copy_sync(struct copy *copy, struct error *err)
{
	autoclose int fd = -1;

	if (!copy->options.durable || !copy->dstname[0])
		return 0;
	fd = openat(copy->dstdir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) /* a directory that may be written to but not read can not be synced */
		return errno == EACCES ? 0 : error_errno(err, "the destination");
	return publish_sync(fd, err);
}

int copy_run(struct copy *copy, struct error *err)
{
	int rc = S_ISDIR(copy->src_root.st_mode) ? engine_run_tree(copy, err)
						 : engine_run_file(copy, err);

	copy_group_flush(copy);
	if (rc < 0)
		return rc;
	if (copy->stop_code)
		return error_set(err, copy->stop_code, "%s", copy->stop_error.text);
	if (copy_stopped(copy))
		return error_sys(err, -ECANCELED, "stopped");
	return copy_sync(copy, err);
}
