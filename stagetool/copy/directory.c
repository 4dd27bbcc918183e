#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/retry.h"
#include "copy/internal.h"

struct copy_dir *copy_dir_new(
	struct copy *copy, struct copy_dir *parent, const char *name, const struct stat *st)
{
	size_t size = strlen(name) + 1;
	struct copy_dir *dir = calloc(1, sizeof(*dir) + size);

	if (!dir)
		return NULL;
	memcpy(dir->name, name, size);
	dir->copy = copy;
	dir->parent = parent;
	dir->src = *st;
	atomic_init(&dir->refs, 1);
	handle_init(&dir->handle, &copy->cache, parent ? &parent->handle : NULL, dir->name);
	if (parent)
		copy_dir_ref(parent);
	return dir;
}

void copy_dir_ref(struct copy_dir *dir)
{
	atomic_fetch_add_explicit(&dir->refs, 1, memory_order_relaxed);
}

void copy_dir_unref(struct copy_dir *dir)
{
	while (dir && atomic_fetch_sub_explicit(&dir->refs, 1, memory_order_acq_rel) == 1) {
		struct copy_dir *parent = dir->parent;

		handle_close(&dir->handle);
		free(dir->beside);
		free(dir);
		dir = parent;
	}
}

static int dir_state(const struct copy_dir *dir)
{
	return atomic_load_explicit(&dir->state, memory_order_acquire);
}

/* Whether it can be taken for its source: what an earlier run finished, or was killed at between
 * mode and times, whoever knows of it. */
static bool dir_is_like_source(const struct copy_dir *dir, const struct stat *st)
{
	return st->st_mode == dir->src.st_mode;
}

/* A directory of ours that says no even to us, as its source does (a read-only tree that is copied
 * once more), is opened up until it is finished. */
static void dir_open_up(struct copy_dir *dir, int fd, const struct stat *st)
{
	if (dir->expect.kind == COPY_EXPECT_NOTHING ?
			!dir_is_like_source(dir, st) :
			(dir->src.st_mode & S_IRWXU) != (st->st_mode & S_IRWXU))
		return;
	if ((st->st_mode & S_IRWXU) == S_IRWXU || st->st_uid != geteuid() || !geteuid())
		return;
	if (!fchmod(fd, (st->st_mode & 07777) | S_IRWXU))
		dir->opened_up = st->st_mode;
}

int copy_dir_adopt(struct copy_dir *dir, int fd, const struct stat *st, struct error *err)
{
	int rc = meta_place_of(dir->copy->meta, fd, st, &dir->place, err);

	if (rc < 0) {
		close(fd);
		return rc;
	}
	if (!dir->made && !dir->base)
		dir_open_up(dir, fd, st);
	handle_adopt(&dir->handle, fd, st->st_dev, st->st_ino);
	if (!dir->parent && !dir->base) {
		pthread_mutex_lock(&dir->copy->lock);
		dir->copy->dst_root = *st;
		pthread_mutex_unlock(&dir->copy->lock);
	}
	atomic_store_explicit(&dir->state, COPY_DIR_READY, memory_order_release);
	return 0;
}

static bool dir_is_beside(struct copy_dir *dir, const char *name)
{
	char *beside = path_join("", name);

	dir->beside = beside;
	if (beside)
		dir->handle.name = beside;
	return beside;
}

/* Makes dir in its parent's destination, or finds it there, and opens it. 0: the handle is pinned.
 */
static int dir_make_in(struct copy_dir *dir, int parentfd, dev_t dev, const char *name,
	bool *conflict, struct error *err)
{
	struct copy *copy = dir->copy;
	struct publish_request request = { parentfd, dev, NULL, name, &dir->expect,
		copy->options.conflict, copy->options.conflict_suffix, 0 };
	struct publish_result result;
	struct stat st;
	unsigned attempt = 0;
	int rc, fd;

	do
		rc = publish_directory(copy->publish, &request, S_IRWXU, &result, err);
	while (rc < 0 && retry_again(rc, &attempt));
	if (rc < 0) {
		copy_no_space(copy, parentfd, true, err);
		return rc;
	}
	if (result.fate == PUBLISH_REFUSED) {
		*conflict = true;
		return -EEXIST;
	}
	if (strcmp(result.name, name) && !dir_is_beside(dir, result.name))
		return error_sys(err, -ENOMEM, "making the directory");
	fd = handle_open(&copy->cache, parentfd, result.name, &st);
	if (fd < 0)
		return error_sys(err, fd, "opening the directory that was made");
	dir->made = result.fate == PUBLISH_DONE;
	return copy_dir_adopt(dir, fd, &st, err);
}

/* The root, in what the caller gave. */
static int dir_make_root(struct copy_dir *dir, bool *conflict, struct error *err)
{
	struct copy *copy = dir->copy;
	struct stat st;
	int fd;

	if (copy->dstname[0]) {
		if (fstat(copy->dstdir, &st))
			return error_errno(err, "the destination");
		return dir_make_in(dir, copy->dstdir, st.st_dev, copy->dstname, conflict, err);
	}
	fd = handle_open(&copy->cache, copy->dstdir, ".", &st);
	if (fd < 0)
		return error_sys(err, fd, "opening the destination");
	return copy_dir_adopt(dir, fd, &st, err);
}

static void dir_failed(
	struct copy_dir *dir, bool conflict, const struct error *err, unsigned worker)
{
	atomic_store_explicit(&dir->state, COPY_DIR_FAILED, memory_order_release);
	copy_dir_tell(dir, conflict ? COPY_CONFLICT : COPY_FAILED, NULL, err, worker);
}

/* Makes dir, whose parent is ready or failed. Whoever comes first does it; the handle is unpinned.
 */
static void dir_make(struct copy_dir *dir, unsigned worker)
{
	pthread_mutex_t *lock =
		&dir->copy->dir_locks[(uintptr_t)dir / sizeof(*dir) % COPY_DIR_LOCKS];
	struct copy_dir *parent = dir->parent;
	struct error err = ERROR_INIT;
	bool conflict = false;
	int rc, parentfd;

	pthread_mutex_lock(lock);
	if (dir_state(dir) > COPY_DIR_ABSENT) {
		pthread_mutex_unlock(lock);
		return;
	}
	if (!parent) {
		rc = dir_make_root(dir, &conflict, &err);
	} else if (dir_state(parent) == COPY_DIR_FAILED) {
		rc = error_set(&err, -ENOENT, "its directory was not sent");
	} else {
		rc = parentfd = handle_pin(&parent->handle, &err);
		if (parentfd >= 0) {
			rc = dir_make_in(
				dir, parentfd, parent->place.dev, dir->name, &conflict, &err);
			handle_unpin(&parent->handle);
		}
		if (!rc && dir->made)
			atomic_store_explicit(&parent->touched, true, memory_order_relaxed);
	}
	if (!rc)
		handle_unpin(&dir->handle);
	else
		dir_failed(dir, conflict, &err, worker);
	pthread_mutex_unlock(lock);
}

/* Makes what is missing from the top down to dir. */
static int dir_make_chain(struct copy_dir *dir, unsigned worker, struct error *err)
{
	autofree struct copy_dir **missing = NULL;
	size_t count = 0, room = 0;

	for (; dir && dir_state(dir) <= COPY_DIR_ABSENT; dir = dir->parent) {
		if (count == room) {
			struct copy_dir **more;

			room = room ? 2 * room : 16;
			more = realloc(missing, room * sizeof(struct copy_dir *));
			if (!more)
				return error_sys(err, -ENOMEM, "making its directory");
			missing = more;
		}
		missing[count++] = dir;
	}
	while (count)
		dir_make(missing[--count], worker);
	return 0;
}

/* Before a directory that was there is used or looked at for the first time: what a dead run left
 * goes. */
static void dir_clean(struct copy_dir *dir, int fd)
{
	if (dir->made || atomic_exchange_explicit(&dir->cleaned, true, memory_order_relaxed))
		return;
	publish_remove_dead(dir->copy->publish, fd, NULL, NULL);
}

int copy_dir_make(struct copy_dir *dir, unsigned worker, struct error *err)
{
	int rc = dir_state(dir) <= COPY_DIR_ABSENT ? dir_make_chain(dir, worker, err) : 0;

	if (!rc && dir_state(dir) == COPY_DIR_FAILED)
		rc = error_set(err, -ENOENT, "its directory was not sent");
	return rc;
}

int copy_dir_pin(struct copy_dir *dir, unsigned worker, struct error *err)
{
	int fd, rc = copy_dir_make(dir, worker, err);

	if (rc)
		return rc;
	fd = handle_pin(&dir->handle, err);
	if (fd >= 0)
		dir_clean(dir, fd);
	return fd;
}

int copy_dir_look(struct copy_dir *dir)
{
	int fd;

	if (dir_state(dir) != COPY_DIR_READY || dir->made)
		return -ENOENT;
	fd = handle_pin(&dir->handle, NULL);
	if (fd >= 0)
		dir_clean(dir, fd); /* it may be that nothing will be put into it */
	return fd;
}

bool copy_dir_hold_open(struct copy_dir *dir)
{
	return dir_state(dir) == COPY_DIR_READY && handle_pin(&dir->handle, NULL) >= 0;
}

void copy_dir_unpin(struct copy_dir *dir)
{
	handle_unpin(&dir->handle);
}

/* Gives the destination, open as fd, what the source has. */
static void dir_attributes(struct copy_dir *dir, int fd, unsigned worker)
{
	struct meta_source source;
	struct error err = ERROR_INIT;
	unsigned dropped = 0;
	int src = dir->walk ? walk_dir_pin(dir->walk, &err) : -1;

	if (src < 0 && !dir->given) {
		/* It was not readable, which has been told: what the listing of its parent said of
		 * it. */
		if (fchmod(fd, dir->src.st_mode & 0777))
			error_errno(&err, "mode");
		return;
	}
	if (!dir->given)
		meta_read(dir->copy->meta, src, &dir->src, &source);
	if (meta_apply(dir->copy->meta, dir->given ? dir->given : &source, fd, NULL, &dir->place,
		    &dropped, &err) < 0)
		copy_dir_tell(dir, COPY_ATTRIBUTE, NULL, &err, worker);
	if (dropped) {
		char text[64];
		struct error why = ERROR_INIT;

		error_set(
			&why, -EPERM, "without %s", meta_dropped_text(dropped, text, sizeof(text)));
		copy_dir_tell(dir, COPY_DROPPED, NULL, &why, worker);
	}
	if (dir->given)
		return;
	meta_source_free(&source);
	walk_dir_unpin(dir->walk);
}

/* What is done on the destination when all below it is through. */
static int dir_complete(struct copy_dir *dir, bool sent, bool durable, struct stat *st,
	unsigned worker, struct error *err)
{
	int fd = handle_pin(&dir->handle, err);
	int rc = 0;

	if (fd < 0)
		return fd;
	if (sent)
		dir_attributes(dir, fd, worker);
	else if (dir->opened_up && fchmod(fd, dir->opened_up & 07777))
		rc = error_errno(err, "mode");
	if (!rc && durable)
		rc = publish_sync(fd, err);
	if (!rc && fstat(fd, st))
		rc = error_errno(err, "fstat");
	handle_unpin(&dir->handle);
	return rc;
}

void copy_dir_finish(struct copy_dir *dir, unsigned worker)
{
	bool durable = dir->copy->options.durable &&
		       (dir->made || atomic_load_explicit(&dir->touched, memory_order_relaxed));
	bool theirs = !dir->made && dir->expect.kind == COPY_EXPECT_NOTHING;
	bool sent = (dir->send && !theirs) || dir->made;
	struct error err = ERROR_INIT;
	struct stat st;

	if (copy_stopped(dir->copy)) {
		/* What is missing in it comes with the next run, which needs to get in. */
		atomic_store(&dir->told, true);
		sent = false;
	}
	if (dir_state(dir) != COPY_DIR_READY || (!sent && !durable && !dir->opened_up))
		copy_dir_tell(dir, COPY_UNCHANGED, NULL, NULL, worker);
	else if (dir_complete(dir, sent, durable, &st, worker, &err) < 0)
		copy_dir_tell(dir, COPY_FAILED, NULL, &err, worker);
	else
		copy_dir_tell(dir, sent ? COPY_DONE : COPY_UNCHANGED, &st, NULL, worker);
}
