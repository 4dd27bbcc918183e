#include "stage/plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/pool.h"
#include "stage/inside.h"
#include "stage/item_filter.h"
#include "tree/links.h"
#include "tree/walk.h"

/* Enough to keep a slow server busy; on a fast one they cost next to nothing. */
#define MEASURE_THREADS 32
/* What filesystems hand out at least. */
#define BLOCK 4096u

struct measure {
	const struct filter *filter;
	struct links *links;
	atomic_uint_fast64_t bytes, inodes, *looked;
};

static uint64_t occupied(const struct stat *st)
{
	uint64_t blocks = (uint64_t)st->st_blocks * 512, size = (uint64_t)st->st_size;

	if (!S_ISREG(st->st_mode))
		return S_ISDIR(st->st_mode) || size > BLOCK / 64 ? BLOCK : 0;
	return ((size < blocks ? size : blocks) + BLOCK - 1) / BLOCK * BLOCK;
}

static void add(struct measure *measure, const struct stat *st)
{
	if (measure->looked)
		atomic_fetch_add(measure->looked, 1);
	if (!S_ISDIR(st->st_mode) && !links_first(measure->links, st))
		return;
	atomic_fetch_add(&measure->bytes, occupied(st));
	atomic_fetch_add(&measure->inodes, 1);
}

static int enter(void *ctx, struct walk_dir *dir, const struct stat *st, unsigned worker)
{
	struct measure *measure = ctx;
	struct walk_dir *parent = walk_dir_parent(dir);

	(void)worker;
	if (parent && measure->filter) {
		autofree char *path = walk_dir_path(parent, NULL);

		if (path &&
			filter_match(measure->filter, path, walk_dir_name(dir), true) == FILTER_OUT)
			return 1;
	}
	add(measure, st);
	return 0;
}

static void entries(void *ctx, struct walk_dir *dir, const struct walk_entry *list, unsigned count,
	unsigned worker)
{
	struct measure *measure = ctx;
	autofree char *path = measure->filter ? walk_dir_path(dir, NULL) : NULL;
	int fd = walk_dir_pin(dir, NULL);

	(void)worker;
	for (unsigned i = 0; i < count && fd >= 0; i++) {
		struct stat st;

		if (path && filter_match(measure->filter, path, list[i].name, false) == FILTER_OUT)
			continue;
		if (fstatat(fd, list[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			add(measure, &st);
	}
	if (fd >= 0)
		walk_dir_unpin(dir);
}

static void leave(void *ctx, struct walk_dir *dir, unsigned worker)
{
	(void)ctx, (void)dir, (void)worker;
}

static void failed(
	void *ctx, struct walk_dir *dir, const char *name, const struct error *err, unsigned worker)
{
	(void)ctx, (void)dir, (void)name, (void)err, (void)worker;
}

static int measure_tree(struct measure *measure, struct pool *pool, int fd,
	const atomic_bool *cancel, struct error *err)
{
	const struct walk_ops ops = { .enter = enter,
		.entries = entries, .leave = leave, .failed = failed };
	const struct walk_options options = { .cancel = cancel };

	return walk_run(pool, fd, &ops, measure, &options, err);
}

/* Measures what is open as fd. */
static int measure_fd(struct measure *measure, struct pool *pool, int fd, const atomic_bool *cancel,
	struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno(err, "fstat");
	if (S_ISDIR(st.st_mode))
		return measure_tree(measure, pool, fd, cancel, err);
	add(measure, &st);
	return 0;
}

/* Where it was when it was judged: through no symlink that was put there since. */
static int measure_open(const struct plan_item *item, struct error *err)
{
	autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *below = item->resolved + strspn(item->resolved, "/");

	if (root < 0)
		return error_errno(err, "/");
	return path_open_beneath(root, *below ? below : ".",
		item->is_dir ? O_RDONLY | O_DIRECTORY : O_PATH, 0, RESOLVE_NO_SYMLINKS, err);
}

static int measure_item(struct plan_item *item, struct pool *pool, atomic_uint_fast64_t *looked,
	const atomic_bool *cancel, struct error *err)
{
	struct measure measure = { .links = links_new(), .looked = looked };
	struct filter *filter = NULL;
	autoclose int fd = measure_open(item, err);
	int rc = fd < 0 ? fd : 0;

	if (rc == 0 && !measure.links)
		rc = error_sys(err, -ENOMEM, "%s", item->shared);
	if (rc == 0 && item->is_dir)
		rc = item_filter_new(item->spec, &filter, err);
	measure.filter = filter;
	if (rc == 0)
		rc = measure_fd(&measure, pool, fd, cancel, err);
	item->bytes = atomic_load(&measure.bytes);
	item->inodes = atomic_load(&measure.inodes);
	filter_free(filter);
	links_free(measure.links);
	return rc;
}

int plan_measure(struct plan *plan, unsigned threads, const atomic_bool *cancel, struct error *err)
{
	struct pool *pool = NULL;
	int rc = pool_start(threads ? threads : MEASURE_THREADS, &pool, err);

	plan->bytes = plan->inodes = 0;
	for (size_t i = 0; i < plan->count && rc == 0; i++) {
		if (plan->items[i].missing)
			continue;
		rc = measure_item(&plan->items[i], pool, plan->looked, cancel, err);
		plan->bytes += plan->items[i].bytes;
		plan->inodes += plan->items[i].inodes;
	}
	pool_free(pool);
	return rc;
}

/* What is not there counts nothing. */
static int measure_local(const struct plan_item *item, int stagefd, struct measure *measure,
	struct pool *pool, const atomic_bool *cancel, struct error *err)
{
	autoclose int fd = inside_open(
		stagefd, item->local, plan_brings_dir(item) ? O_RDONLY | O_DIRECTORY : O_PATH, NULL, NULL);

	return fd < 0 ? 0 : measure_fd(measure, pool, fd, cancel, err);
}

int plan_measure_present(const struct plan *plan, int stagefd, unsigned threads,
	const atomic_bool *cancel, uint64_t *bytes, uint64_t *inodes, struct error *err)
{
	struct measure measure = { .links = links_new() };
	struct pool *pool = NULL;
	int rc = measure.links ? pool_start(threads ? threads : MEASURE_THREADS, &pool, err)
			       : error_sys(err, -ENOMEM, "plan");

	for (size_t i = 0; i < plan->count && rc == 0; i++)
		rc = measure_local(&plan->items[i], stagefd, &measure, pool, cancel, err);
	pool_free(pool);
	links_free(measure.links);
	*bytes = atomic_load(&measure.bytes);
	*inodes = atomic_load(&measure.inodes);
	return rc;
}
