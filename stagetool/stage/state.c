#include "stage/state.h"

#include "base/cleanup.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

/* A lock whose file its holder has just removed is had at the next look. */
#define LOCK_TRIES 3

#define LOCK_POLL_NS 20000000L

/* Nobody but us may have a hand in what is below. */
static int state_check(int fd, const char *path, mode_t mode, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, "%s: stat", path);
	if (st.st_uid != geteuid())
		return error_set(err, -EPERM, "%s: owned by user %u, expected %u", path, st.st_uid,
			geteuid());
	if (st.st_mode & 022)
		return error_set(err, -EPERM,
			"%s: others may write to it (mode %04o), expected %04o", path,
			st.st_mode & 07777, mode);
	if ((st.st_mode & mode) != mode && fchmod(fd, mode))
		return error_errno(err, "%s: chmod %04o", path, mode);
	return 0;
}

static int state_open_sub(
	const struct state *state, const char *name, mode_t mode, struct error *err)
{
	autofree char *path = path_join(state->path, name);
	autoclose int fd = -1;
	int code;

	if (!path)
		return error_sys(err, -ENOMEM, "%s", name);
	if (mkdirat(state->fd, name, mode) && errno != EEXIST)
		return error_errno(err, "%s: mkdir", path);
	fd = openat(state->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, "%s", path);
	code = state_check(fd, path, mode, err);
	return code ? code : take_fd(fd);
}

int state_open(const char *path, struct state *state, struct error *err)
{
	struct state opened = { strdup(path), -1, -1, -1 };
	int code = opened.path ? 0 : error_sys(err, -ENOMEM, "%s", path);
	int steps = -1;

	if (!code) {
		opened.fd = path_make_dirs(AT_FDCWD, path, 0711, err);
		code = opened.fd < 0 ? opened.fd : state_check(opened.fd, path, 0711, err);
	}
	if (!code)
		code = opened.jobs = state_open_sub(&opened, "jobs", 0700, err);
	if (code >= 0)
		code = opened.status = state_open_sub(&opened, "status", 0711, err);
	if (code >= 0)
		code = steps = state_open_sub(&opened, "steps", 0711, err);
	if (code < 0) {
		state_close(&opened);
		return error_prefix(err, code, "state_dir");
	}
	close(steps);
	*state = opened;
	return 0;
}

void state_close(struct state *state)
{
	int fds[] = { state->fd, state->jobs, state->status };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(state->path);
	*state = (struct state){ NULL, -1, -1, -1 };
}

/* 1: name is still the file that fd holds; 0: who had it before has removed it; or a negative
 * errno. */
static int state_lock_is_current(int dirfd, const char *name, int fd)
{
	struct stat held, there;

	if (fstat(fd, &held))
		return -errno;
	if (fstatat(dirfd, name, &there, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	return held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

/* 1: fd holds the lock; 0: not now; negative: it can not be had. */
static int state_lock_try(int dirfd, const char *name, int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK || errno == EINTR ? 0 : -errno;
	return state_lock_is_current(dirfd, name, fd);
}

int state_lock(int dirfd, const char *name, unsigned seconds, struct error *err)
{
	struct timespec start, now, pause = { 0, LOCK_POLL_NS };

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned tries = 0;; tries++) {
		autoclose int fd =
			openat(dirfd, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		int code = fd < 0 ? -errno : state_lock_try(dirfd, name, fd);

		if (code > 0)
			return take_fd(fd);
		if (code < 0)
			return error_sys(err, code, "%s: lock", name);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - start.tv_sec >= (time_t)seconds && tries >= LOCK_TRIES)
			return error_set(err, -EBUSY, "%s: another process holds it%s", name,
				seconds ? ", waited in vain" : "");
		if (tries >= LOCK_TRIES)
			nanosleep(&pause, NULL);
	}
}

void state_unlock_remove(int dirfd, const char *name, int lock)
{
	if (lock < 0)
		return;
	close(lock);
	lock = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (lock < 0)
		return;
	if (state_lock_try(dirfd, name, lock) > 0)
		unlinkat(dirfd, name, 0);
	close(lock);
}

static int state_write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		data += written;
		size -= (size_t)written;
	}
	return 0;
}

static int state_fill(int fd, const char *data, size_t size, bool durable, uid_t owner)
{
	int code = state_write_all(fd, data, size);

	if (!code && owner != (uid_t)-1 && fchown(fd, owner, (gid_t)-1))
		code = -errno;
	if (!code && durable && fsync(fd))
		code = -errno;
	if (close(fd) && !code)
		code = -errno;
	return code;
}

int state_write(int dirfd, const char *name, const char *data, size_t size, bool durable,
	uid_t owner, struct error *err)
{
	autofree char *temporary = NULL;
	int fd, code;

	if (asprintf(&temporary, ".tmp.%s", name) < 0)
		return error_sys(err, -ENOMEM, "%s", name);
	if (unlinkat(dirfd, temporary, 0) && errno != ENOENT)
		return error_errno(err, "%s: remove", temporary);
	fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_errno(err, "%s", temporary);
	code = state_fill(fd, data, size, durable, owner);
	if (!code && renameat(dirfd, temporary, dirfd, name))
		code = -errno;
	if (code) {
		unlinkat(dirfd, temporary, 0);
		return error_sys(err, code, "%s: write", name);
	}
	if (durable && fsync(dirfd))
		return error_errno(err, "%s: fsync of its directory", name);
	return 0;
}

int state_read(
	int dirfd, const char *name, size_t max, char **data, size_t *size, struct error *err)
{
	autoclose int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	autofree char *buffer = NULL;
	size_t used = 0;
	struct stat st;

	if (fd < 0)
		return error_errno(err, "%s", name);
	if (fstat(fd, &st))
		return error_errno(err, "%s: stat", name);
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > max)
		return error_set(
			err, -EBADMSG, "%s: expected a file of at most %zu bytes", name, max);
	buffer = malloc((size_t)st.st_size + 1);
	if (!buffer)
		return error_sys(err, -ENOMEM, "%s", name);
	while (used < (size_t)st.st_size) {
		ssize_t got = read(fd, buffer + used, (size_t)st.st_size - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno(err, "%s: read", name);
		if (!got)
			break;
		used += (size_t)got;
	}
	buffer[used] = '\0';
	if (size)
		*size = used;
	*data = take_ptr(buffer);
	return 0;
}
