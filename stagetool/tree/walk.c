#include "tree/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/retry.h"
#include "tree/walk_ahead.h"
#include "tree/walk_block.h"
#include "tree/walk_dir.h"

/* What stays free for the program and for files being copied by the workers. */
#define WALK_RESERVED_FDS 64

static void walk_failed(
	struct walk_dir *dir, const char *name, const struct error *err, unsigned worker)
{
	dir->walk->ops->failed(dir->walk->ctx, dir, name, err, worker);
}

static bool walk_is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Asks for the type of an entry whose filesystem does not say it. */
static void walk_find_type(struct walk_dir *dir, struct walk_record *record, unsigned worker)
{
	struct error err = ERROR_INIT;
	struct stat st;

	if (!fstatat(dir->handle.fd, record->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
		record->d_type = IFTODT(st.st_mode);
		return;
	}
	error_errno(&err, "%s", record->d_name);
	walk_failed(dir, record->d_name, &err, worker);
	record->d_name[0] = '\0';
}

/* Makes types certain; what is not to be seen loses its name. */
static void walk_survey(struct walk_dir *dir, char *buffer, size_t size, unsigned worker)
{
	for (size_t at = 0; at < size;) {
		struct walk_record *record = (struct walk_record *)(void *)(buffer + at);

		at += record->d_reclen;
		if (walk_is_dots(record->d_name))
			record->d_name[0] = '\0';
		else if (record->d_type == DT_UNKNOWN)
			walk_find_type(dir, record, worker);
	}
}

static void walk_no_memory(struct walk_dir *dir, const char *name, unsigned worker)
{
	struct error err = ERROR_INIT;

	error_sys(&err, -ENOMEM, "%s", name ? name : dir->name);
	walk_failed(dir, name, &err, worker);
}

static void walk_open_run(struct pool_task *task, unsigned worker);
static void walk_on_run(struct pool_task *task, unsigned worker);

static void walk_push_dirs(struct walk_dir *dir, char *buffer, size_t size, unsigned worker)
{
	for (size_t at = 0; at < size;) {
		struct walk_record *record = (struct walk_record *)(void *)(buffer + at);
		struct walk_dir *child;

		at += record->d_reclen;
		if (record->d_type != DT_DIR || !record->d_name[0])
			continue;
		child = walk_dir_new(dir->walk, dir, record->d_name, walk_open_run);
		if (child)
			pool_push(dir->walk->pool, &child->task);
		else
			walk_no_memory(dir, record->d_name, worker);
	}
}

/* Reads the next buffer of dir, which is pinned. Its size, 0 at the end or after an error. */
static size_t walk_read(struct walk_dir *dir, char *buffer, unsigned worker)
{
	const struct walk_ops *ops = dir->walk->ops;
	struct error err = ERROR_INIT;
	unsigned attempt = 0;
	uint64_t begun = 0;
	ssize_t size;

	if (!buffer) {
		walk_no_memory(dir, NULL, worker);
		return 0;
	}
	if (ops->list_begin)
		begun = ops->list_begin(dir->walk->ctx, worker);
	do
		size = syscall(SYS_getdents64, dir->handle.fd, buffer, WALK_BUFFER_SIZE);
	while (size < 0 && retry_again(-errno, &attempt));
	if (size < 0)
		error_errno(&err, "%s: reading the directory", dir->name);
	if (ops->list_end)
		ops->list_end(dir->walk->ctx, begun, worker);
	if (size >= 0)
		return size;
	walk_failed(dir, NULL, &err, worker);
	return 0;
}

static char *walk_buffer(struct walk *walk, unsigned worker)
{
	char **buffer = &walk->buffers[worker];
	void *made;

	if (!*buffer && !posix_memalign(&made, 64, WALK_BUFFER_SIZE))
		*buffer = made;
	return *buffer;
}

/* One buffer of a directory: what is left of it below its subdirectories, those on top, so that
 * whoever comes next goes down first; the entries are this worker's own. Where fds are short, the
 * rest is not left for later: a directory that waits half read can not be closed. */
static void walk_buffers(struct walk_dir *dir, unsigned worker)
{
	struct walk *walk = dir->walk;
	char *buffer = walk_buffer(walk, worker);

	while (true) {
		size_t size = walk_cancelled(walk) ? 0 : walk_read(dir, buffer, worker);
		bool tight = handle_cache_tight(&walk->cache);
		struct walk_block *block;

		if (!size)
			break;
		walk_survey(dir, buffer, size, worker);
		if (walk_block_new(dir, buffer, size, &block))
			walk_no_memory(dir, NULL, worker);
		if (!block)
			walk_ahead_read(dir, 0);
		walk_dir_hold(dir);
		if (!tight) {
			dir->task.run = walk_on_run;
			pool_push(walk->pool, &dir->task);
		}
		walk_push_dirs(dir, buffer, size, worker);
		walk_dir_release(dir, worker);
		if (block)
			walk_block_run(block, worker);
		if (!tight)
			return;
	}
	walk_ahead_read(dir, 0);
	handle_unpin(&dir->handle);
	walk_dir_release(dir, worker);
}

/* The next buffer of a directory that is open. */
static void walk_on_run(struct pool_task *task, unsigned worker)
{
	struct walk_dir *dir = (struct walk_dir *)task;
	struct walk *walk = dir->walk;

	if (walk_ahead_wait(dir))
		return;
	walk_buffers(dir, worker);
	walk_ahead_done(walk, 0);
}

/* An entry that was listed as a directory and is none: somebody has put another thing in its place.
 * It is handed over as what it is now. */
static int walk_not_a_dir(struct walk_dir *dir, int dirfd, unsigned worker)
{
	struct walk_entry entry = { dir->name, 0, DT_UNKNOWN };
	struct stat st;

	if (fstatat(dirfd, dir->name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -ESTALE;
	entry.inode = st.st_ino;
	entry.type = IFTODT(st.st_mode);
	dir->walk->ops->entries(dir->walk->ctx, dir->parent, &entry, 1, worker);
	return 0;
}

static uint64_t walk_mount(int fd, const struct stat *st)
{
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) && (stx.stx_mask & STATX_MNT_ID))
		return stx.stx_mnt_id;
	return st->st_dev;
}

/* Opens dir, whose parent is open as dirfd. 1: it is open, and st filled; 0: there is nothing to
 * enter; negative: why not, with st filled if it is an existing directory that may not be read. */
static int walk_open(struct walk_dir *dir, int dirfd, struct stat *st, unsigned worker)
{
	struct walk *walk = dir->walk;
	unsigned attempt = 0;
	int fd;

	do
		fd = handle_open(&walk->cache, dirfd, dir->name, st);
	while (fd < 0 && retry_again(fd, &attempt));
	if (fd < 0)
		memset(st, 0, sizeof(*st));
	if (fd == -ENOTDIR || fd == -ELOOP)
		return walk_not_a_dir(dir, dirfd, worker);
	if (fd < 0) {
		if ((fd == -EACCES || fd == -EPERM) &&
			fstatat(dirfd, dir->name, st, AT_SYMLINK_NOFOLLOW))
			memset(st, 0, sizeof(*st));
		return fd;
	}
	if (walk->options.one_filesystem && walk_mount(fd, st) != walk->mount) {
		close(fd);
		memset(st, 0, sizeof(*st));
		return -EXDEV;
	}
	handle_adopt(&dir->handle, fd, st->st_dev, st->st_ino);
	return 1;
}

/* Enters dir. rc is walk_open's. Whether it is to be read (then it is pinned). */
static bool walk_enter(struct walk_dir *dir, int rc, const struct stat *st, unsigned worker)
{
	struct walk *walk = dir->walk;
	struct error err = ERROR_INIT;
	bool unreadable = rc < 0 && S_ISDIR(st->st_mode);

	if (unreadable)
		handle_adopt(&dir->handle, -1, st->st_dev, st->st_ino);
	if (rc > 0 || unreadable)
		dir->entered = walk->ops->enter(walk->ctx, dir, st, worker) == 0;
	if (rc < 0 && (dir->entered || !unreadable)) {
		error_sys(&err, rc, "%s: opening the directory", dir->name);
		walk_failed(dir->entered ? dir : dir->parent, dir->entered ? NULL : dir->name, &err,
			worker);
	}
	if (rc > 0 && !dir->entered)
		handle_unpin(&dir->handle);
	return rc > 0 && dir->entered;
}

static void walk_open_run(struct pool_task *task, unsigned worker)
{
	struct walk_dir *dir = (struct walk_dir *)task;
	struct walk *walk = dir->walk;
	struct error err = ERROR_INIT;
	bool read = false;

	if (walk_ahead_wait(dir))
		return;
	if (!walk_cancelled(walk)) {
		struct stat st;
		int dirfd = handle_pin(&dir->parent->handle, &err);

		if (dirfd < 0) {
			walk_failed(dir->parent, dir->name, &err, worker);
		} else {
			read = walk_enter(dir, walk_open(dir, dirfd, &st, worker), &st, worker);
			handle_unpin(&dir->parent->handle);
		}
	}
	if (read) {
		walk_buffers(dir, worker);
	} else {
		walk_ahead_read(dir, 0);
		walk_dir_release(dir, worker);
	}
	walk_ahead_done(walk, 0);
}

static void walk_root_run(struct pool_task *task, unsigned worker)
{
	struct walk_dir *dir = (struct walk_dir *)task;
	struct walk *walk = dir->walk;
	struct error err = ERROR_INIT;
	struct stat st;

	if (fstat(dir->handle.fd, &st)) {
		error_errno(&err, "the root of the tree");
		walk_failed(dir, NULL, &err, worker);
	} else if (!walk->ops->enter(walk->ctx, dir, &st, worker)) {
		dir->entered = true;
		walk_buffers(dir, worker);
		walk_ahead_done(walk, 0);
		return;
	}
	handle_unpin(&dir->handle);
	walk_dir_release(dir, worker);
}

/* The root's own fd: the caller's may be O_PATH, and its offset is not ours to move. */
static int walk_open_root(struct walk *walk, int rootfd, struct walk_dir **root, struct error *err)
{
	struct stat st;
	int fd = handle_open(&walk->cache, rootfd, ".", &st);

	if (fd < 0)
		return error_sys(err, fd, "opening the root of the tree");
	*root = walk_dir_new(walk, NULL, "", walk_root_run);
	if (!*root) {
		close(fd);
		return error_sys(err, -ENOMEM, "opening the root of the tree");
	}
	walk->mount = walk_mount(fd, &st);
	handle_adopt(&(*root)->handle, fd, st.st_dev, st.st_ino);
	return 0;
}

static unsigned walk_fd_budget(void)
{
	unsigned limit = handle_limit();

	/* A third for the walk: who copies needs as much for the other side, and files need some.
	 */
	return limit > WALK_RESERVED_FDS + 24 ? (limit - WALK_RESERVED_FDS) / 3 : 8;
}

int walk_run(struct pool *pool, int rootfd, const struct walk_ops *ops, void *ctx,
	const struct walk_options *options, struct error *err)
{
	autofree struct walk *walk = calloc(1, sizeof(*walk));
	struct walk_dir *root = NULL;
	int rc;

	if (!walk)
		return error_sys(err, -ENOMEM, "walking a tree");
	walk->pool = pool;
	walk->ops = ops;
	walk->ctx = ctx;
	if (options)
		walk->options = *options;
	pthread_mutex_init(&walk->waiting_lock, NULL);
	handle_cache_init(&walk->cache, walk_fd_budget());
	rc = walk_open_root(walk, rootfd, &root, err);
	if (!rc && root) {
		pool_push(pool, &root->task);
		pool_wait(pool);
		if (walk_cancelled(walk))
			rc = error_set(err, -ECANCELED, "cancelled");
	}
	for (unsigned i = 0; i < POOL_MAX_WIDTH; i++)
		free(walk->buffers[i]);
	handle_cache_destroy(&walk->cache);
	pthread_mutex_destroy(&walk->waiting_lock);
	return rc;
}
