#include "archive/pack_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/retry.h"

/* Pins the directory that entry is in: of the root's own entry, the root. */
static int read_pin(const struct pack_entry *entry, struct error *err)
{
	return handle_pin(&entry->dir->handle, err);
}

static int open_at(const struct pack_entry *entry, int dirfd, int flags)
{
	const char *name = *entry->name ? entry->name : ".";
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME |
				       flags);

	if (fd < 0 && errno == EPERM)
		fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

int pack_read_open(const struct pack_entry *entry, int flags)
{
	int dirfd = read_pin(entry, NULL), fd;

	if (dirfd < 0)
		return dirfd;
	fd = open_at(entry, dirfd, flags);
	handle_unpin(&entry->dir->handle);
	return fd;
}

static bool same_state(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* The whole of a small file, which must not change meanwhile. */
static int read_small(struct pack_entry *entry, int fd, struct error *err)
{
	size_t size = (size_t)entry->st.st_size, have = 0;
	struct stat now;

	free(entry->data);
	entry->data = malloc(size + 1);
	if (!entry->data)
		return error_sys(err, -ENOMEM, "read");
	while (have < size) {
		ssize_t n = pread(fd, entry->data + have, size - have, (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, "read");
		if (!n)
			break;
		have += (size_t)n;
	}
	if (fstat(fd, &now) < 0)
		return error_errno(err, "stat");
	if (have < size || !same_state(&now, &entry->st))
		return error_set(err, -ESTALE, "it changed while it was read");
	return 0;
}

static void read_values(struct pack_entry *entry, int fd)
{
	struct meta_source source;

	meta_read(entry->pack->meta, fd, &entry->st, &source);
	free(entry->values_memory);
	meta_values(&source, &entry->values_memory, &entry->values, &entry->n_values,
		&entry->attribute);
	meta_source_free(&source);
}

static bool is_small(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size <= (off_t)PACK_SMALL_SIZE &&
	       (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size;
}

/* A regular file or directory. */
static int read_open(struct pack_entry *entry, int dirfd, struct error *err)
{
	autoclose int fd = open_at(entry, dirfd, 0);

	if (fd < 0)
		return error_sys(err, fd, "open");
	if (fstat(fd, &entry->st) < 0)
		return error_errno(err, "stat");
	read_values(entry, fd);
	return is_small(&entry->st) ? read_small(entry, fd, err) : 0;
}

static int read_link(struct pack_entry *entry, int dirfd, struct error *err)
{
	for (size_t room = 256;; room *= 2) {
		ssize_t length;

		free(entry->target);
		entry->target = malloc(room);
		if (!entry->target)
			return error_sys(err, -ENOMEM, "readlink");
		length = readlinkat(dirfd, entry->name, entry->target, room);
		if (length < 0)
			return error_errno(err, "readlink");
		if ((size_t)length < room) {
			entry->target[length] = '\0';
			return 0;
		}
	}
}

static int read_once(struct pack_entry *entry, struct error *err)
{
	const char *name = *entry->name ? entry->name : ".";
	int dirfd = read_pin(entry, err), rc = 0;

	if (dirfd < 0)
		return dirfd;
	if (entry->type == DT_REG || entry->type == DT_DIR) {
		rc = read_open(entry, dirfd, err);
	} else if (fstatat(dirfd, name, &entry->st, AT_SYMLINK_NOFOLLOW) < 0) {
		rc = error_errno(err, "stat");
	} else if (S_ISLNK(entry->st.st_mode)) {
		rc = read_link(entry, dirfd, err);
	}
	/* It may be another thing by now than it was when it was listed. */
	if (!rc && IFTODT(entry->st.st_mode) != entry->type)
		rc = error_set(err, -ESTALE, "it changed while it was read");
	handle_unpin(&entry->dir->handle);
	return rc;
}

/* Fds that ran out come back when others are through. */
static bool read_again(const struct pack_entry *entry, int code, unsigned *attempt,
	unsigned *changes)
{
	const struct timespec pause = { 0, 1000000 };

	if (code == -ESTALE && !(*changes)++)
		return true;
	if (code != -EMFILE && code != -ENFILE)
		return retry_again(code, attempt);
	if (!handle_cache_relieve(&entry->pack->cache))
		nanosleep(&pause, NULL);
	return ++*attempt < 200;
}

void pack_read_run(struct pool_task *task, unsigned worker)
{
	struct pack_entry *entry = (struct pack_entry *)task;
	struct pack *pack = entry->pack;
	unsigned attempt = 0, changes = 0;
	int rc;

	(void)worker;
	do {
		entry->error.code = 0;
		rc = pack_stopped(pack) ? error_sys(&entry->error, -ECANCELED, "stopped") :
					  read_once(entry, &entry->error);
	} while (rc && rc != -ECANCELED && read_again(entry, rc, &attempt, &changes));
	entry->code = rc;
	pthread_mutex_lock(&pack->lock);
	entry->done = true;
	pthread_cond_signal(&pack->change);
	pthread_mutex_unlock(&pack->lock);
}
