#include "stage/rest.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/pool.h"
#include "stage/manifest.h"
#include "tree/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

struct rest {
	struct manifest *manifest; /* NULL: nothing was staged */
	const char *const *sent;
	size_t n_sent;
	const atomic_bool *stop;
	atomic_bool over; /* the question is answered */
	pthread_mutex_t lock;
	char *path;
	struct error first;
};

static void rest_failed(struct rest *rest, const struct error *err)
{
	pthread_mutex_lock(&rest->lock);
	if (!rest->first.code)
		rest->first = *err;
	pthread_mutex_unlock(&rest->lock);
	atomic_store(&rest->over, true);
}

static void rest_found(struct rest *rest, char *path)
{
	pthread_mutex_lock(&rest->lock);
	if (rest->path)
		free(path);
	else
		rest->path = path;
	pthread_mutex_unlock(&rest->lock);
	atomic_store(&rest->over, true);
}

static bool rest_is_sent(const struct rest *rest, const char *path)
{
	for (size_t i = 0; i < rest->n_sent; i++) {
		size_t length = strlen(rest->sent[i]);

		if (!strcmp(rest->sent[i], "."))
			return true;
		if (!strncmp(path, rest->sent[i], length) && (path[length] == '/' || !path[length]))
			return true;
	}
	return false;
}

/* Whether the entry called path is there as it was staged. Negative: it can not be told. */
static int rest_is_staged(
	struct rest *rest, const char *path, const struct stat *st, struct error *err)
{
	struct manifest_identity identity;
	struct manifest_entry entry;
	int code = rest->manifest ? manifest_find(rest->manifest, 0, path, &entry, err) : -ENOENT;

	if (code == -ENOENT)
		return 0;
	if (code < 0)
		return code;
	manifest_identity_from(st, &identity);
	return entry.type == (st->st_mode & S_IFMT) &&
	       manifest_identity_equal(&identity, &entry.local);
}

static void rest_entry(struct rest *rest, struct walk_dir *dir, int dirfd, const char *name)
{
	struct error err = ERROR_INIT;
	autofree char *path = walk_dir_path(dir, name);
	struct stat st;
	int staged;

	if (!path) {
		error_sys(&err, -ENOMEM, "%s", name);
		rest_failed(rest, &err);
		return;
	}
	if (rest_is_sent(rest, path))
		return;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno == ENOENT)
			return;
		error_errno(&err, "%s", path);
		rest_failed(rest, &err);
		return;
	}
	staged = rest_is_staged(rest, path, &st, &err);
	if (staged < 0)
		rest_failed(rest, &err);
	else if (!staged)
		rest_found(rest, take_ptr(path));
}

static int rest_enter(void *ctx, struct walk_dir *dir, const struct stat *st, unsigned worker)
{
	struct rest *rest = ctx;
	autofree char *path = walk_dir_path(dir, NULL);

	(void)st;
	(void)worker;
	if (walk_dir_depth(dir) == 1 && !strcmp(walk_dir_name(dir), ".stagetool"))
		return 1;
	return atomic_load(&rest->over) || (rest->stop && atomic_load(rest->stop)) ||
	       (path && *path && rest_is_sent(rest, path));
}

static void rest_entries(void *ctx, struct walk_dir *dir, const struct walk_entry *entries,
	unsigned count, unsigned worker)
{
	struct rest *rest = ctx;
	struct error err = ERROR_INIT;
	int fd = walk_dir_pin(dir, &err);

	(void)worker;
	if (fd < 0) {
		rest_failed(rest, &err);
		return;
	}
	for (unsigned i = 0; i < count && !atomic_load(&rest->over); i++)
		rest_entry(rest, dir, fd, entries[i].name);
	walk_dir_unpin(dir);
}

static void rest_leave(void *ctx, struct walk_dir *dir, unsigned worker)
{
	(void)ctx;
	(void)dir;
	(void)worker;
}

static void rest_walk_failed(
	void *ctx, struct walk_dir *dir, const char *name, const struct error *err, unsigned worker)
{
	(void)dir;
	(void)name;
	(void)worker;
	rest_failed(ctx, err);
}

static int rest_walk(struct rest *rest, int stagefd, struct error *err)
{
	static const struct walk_ops ops = {
		.enter = rest_enter,
		.entries = rest_entries,
		.leave = rest_leave,
		.failed = rest_walk_failed,
	};
	struct walk_options options = { .cancel = rest->stop };
	struct pool *pool;
	int code = pool_start(2, &pool, err);

	if (code)
		return code;
	code = walk_run(pool, stagefd, &ops, rest, &options, err);
	pool_free(pool);
	return code;
}

int rest_find(int stagefd, const char *const *sent, size_t n, const atomic_bool *stop, char **path,
	struct error *err)
{
	struct rest looked = { .sent = sent, .n_sent = n, .stop = stop };
	struct error opening = ERROR_INIT;
	int code = manifest_open(stagefd, false, &looked.manifest, &opening);

	*path = NULL;
	if (code && code != -ENOENT)
		return error_set(err, code, "%s", opening.text);
	pthread_mutex_init(&looked.lock, NULL);
	code = rest_walk(&looked, stagefd, err);
	manifest_close(looked.manifest);
	pthread_mutex_destroy(&looked.lock);
	if (!code && !looked.path && looked.first.code)
		code = error_set(err, looked.first.code, "%s", looked.first.text);
	if (code)
		free(looked.path);
	else
		*path = looked.path;
	return code;
}
