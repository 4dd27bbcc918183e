#include "stage/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/pool.h"
#include "stage/delta.h"
#include "stage/inside.h"
#include "stage/item_filter.h"
#include "stage/manifest.h"
#include "tree/walk.h"

#define CHANGES_THREADS 16
/* A directory that nothing is known of. */
#define NO_DIR UINT64_MAX

struct search {
	struct manifest *manifest; /* NULL: none, all is new */
	struct filter *filter;
	uint32_t tree; /* of what was sent; 0: nothing */
	bool whole;    /* the root is the stage itself */
	struct manifest_entry root;
	atomic_uint_fast64_t entries, bytes, unchanged;
};

/* What a directory is called in both trees. */
struct ids {
	uint64_t staged, sent;
};

static bool record(const struct search *search, uint32_t tree, uint64_t dir, const char *name,
	struct manifest_entry *entry)
{
	return search->manifest && dir != NO_DIR &&
	       manifest_get(search->manifest, tree, dir, name, entry, NULL) == 0;
}

static void judge(struct search *search, const struct stat *st, const struct manifest_entry *staged,
	const struct manifest_entry *sent)
{
	struct copy_expect expect;

	if (!delta_out(st, staged, sent, false, &expect)) {
		atomic_fetch_add(&search->unchanged, 1);
		return;
	}
	atomic_fetch_add(&search->entries, 1);
	if (S_ISREG(st->st_mode))
		atomic_fetch_add(&search->bytes, (uint64_t)st->st_size);
}

static void judge_entry(struct search *search, const struct ids *ids, const char *name,
	const struct stat *st, struct ids *below)
{
	struct manifest_entry staged, sent;
	bool have_staged = record(search, 0, ids->staged, name, &staged);
	bool have_sent = search->tree && record(search, search->tree, ids->sent, name, &sent);

	if (below) {
		below->staged = have_staged && staged.type == S_IFDIR ? staged.dir : NO_DIR;
		below->sent = have_sent && sent.type == S_IFDIR ? sent.dir : below->staged;
	}
	judge(search, st, have_staged ? &staged : NULL, have_sent ? &sent : NULL);
}

static void judge_root(struct search *search, const struct stat *st)
{
	struct manifest_entry sent;
	bool have_sent = search->tree && record(search, search->tree, 0, "", &sent);

	judge(search, st, search->root.type ? &search->root : NULL, have_sent ? &sent : NULL);
}

static int enter(void *ctx, struct walk_dir *dir, const struct stat *st, unsigned worker)
{
	struct search *search = ctx;
	struct walk_dir *parent = walk_dir_parent(dir);
	autofree char *path = parent && search->filter ? walk_dir_path(parent, NULL) : NULL;
	struct ids *ids = calloc(1, sizeof(*ids));

	(void)worker;
	if (!ids)
		return -ENOMEM;
	if (path && filter_match(search->filter, path, walk_dir_name(dir), true) == FILTER_OUT) {
		free(ids);
		return 1;
	}
	if (parent && search->whole && !walk_dir_parent(parent) &&
		strcmp(walk_dir_name(dir), MANIFEST_STAGE_DIR) == 0) {
		free(ids);
		return 1;
	}
	if (parent) {
		judge_entry(search, walk_dir_data(parent), walk_dir_name(dir), st, ids);
	} else {
		*ids = (struct ids){ search->root.type == S_IFDIR ? search->root.dir : NO_DIR, 0 };
		if (!search->whole)
			judge_root(search, st);
	}
	walk_dir_set_data(dir, ids);
	return 0;
}

static void entries(void *ctx, struct walk_dir *dir, const struct walk_entry *list, unsigned count,
	unsigned worker)
{
	struct search *search = ctx;
	autofree char *path = search->filter ? walk_dir_path(dir, NULL) : NULL;
	int fd = walk_dir_pin(dir, NULL);

	(void)worker;
	for (unsigned i = 0; i < count && fd >= 0; i++) {
		struct stat st;

		if (path && filter_match(search->filter, path, list[i].name, false) == FILTER_OUT)
			continue;
		if (fstatat(fd, list[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			judge_entry(search, walk_dir_data(dir), list[i].name, &st, NULL);
	}
	if (fd >= 0)
		walk_dir_unpin(dir);
}

static void leave(void *ctx, struct walk_dir *dir, unsigned worker)
{
	(void)ctx, (void)worker;
	free(walk_dir_data(dir));
}

static void failed(
	void *ctx, struct walk_dir *dir, const char *name, const struct error *err, unsigned worker)
{
	(void)ctx, (void)dir, (void)name, (void)err, (void)worker;
}

static int search_tree(struct search *search, int fd, unsigned threads, const atomic_bool *cancel,
	struct error *err)
{
	const struct walk_ops ops = { .enter = enter,
		.entries = entries, .leave = leave, .failed = failed };
	const struct walk_options options = { .cancel = cancel };
	struct pool *pool = NULL;
	int rc = pool_start(threads ? threads : CHANGES_THREADS, &pool, err);

	if (rc == 0)
		rc = walk_run(pool, fd, &ops, search, &options, err);
	pool_free(pool);
	return rc;
}

static int search_item(struct search *search, const struct plan_item *item, int stagefd,
	unsigned threads, const atomic_bool *cancel, struct error *err)
{
	autoclose int fd = inside_open(
		stagefd, item->local, item->is_dir ? O_RDONLY | O_DIRECTORY : O_PATH, NULL, err);
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return fd;
	if (search->manifest) {
		rc = manifest_find(search->manifest, 0, item->local, &search->root, err);
		if (rc == 0 || rc == -ENOENT)
			rc = manifest_pair(search->manifest, item->local, item->shared, false,
				&search->tree, err);
	}
	if (rc == 0 && item->is_dir)
		return search_tree(search, fd, threads, cancel, err);
	if (rc == 0 && fstat(fd, &st) == 0)
		judge_root(search, &st);
	return rc;
}

int changes_count(const struct plan_item *item, int stagefd, struct manifest *manifest,
	unsigned threads, const atomic_bool *cancel, struct changes *changes, struct error *err)
{
	struct search search = { .manifest = manifest, .whole = strcmp(item->local, ".") == 0 };
	int rc = item_filter_new(item->spec, &search.filter, err);

	if (rc == 0)
		rc = search_item(&search, item, stagefd, threads, cancel, err);
	filter_free(search.filter);
	*changes = (struct changes){ atomic_load(&search.entries), atomic_load(&search.bytes),
		atomic_load(&search.unchanged) };
	return rc;
}

int changes_find(const struct plan_item *item, int stagefd, unsigned threads,
	const atomic_bool *cancel, struct changes *changes, struct error *err)
{
	struct manifest *manifest = NULL;
	struct error none = ERROR_INIT;
	int rc = manifest_open(stagefd, false, &manifest, &none);

	if (rc < 0 && rc != -ENOENT)
		return error_set(err, rc, "%s", none.text);
	rc = changes_count(item, stagefd, manifest, threads, cancel, changes, err);
	manifest_close(manifest);
	return rc;
}
