#include "copy/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/retry.h"

/* What file_begin says when there is nothing more to do here. */
#define FILE_THROUGH 1

static void file_init(struct copy_file *file, const struct copy_entry *entry)
{
	memset(file, 0, offsetof(struct copy_file, temp));
	file->entry = *entry;
	file->copy = entry->copy;
	file->src = file->dst = file->dirfd = -1;
	file->code = 0;
	file->error = NULL;
}

/* The same file, in memory of its own: it outlives the callback. NULL on ENOMEM. */
static struct copy_file *file_own(struct copy_file *file)
{
	struct copy_file *own;

	if (file->entry.owned)
		return file;
	own = malloc(sizeof(*own));
	if (!own)
		return NULL;
	memcpy(own, file, sizeof(*own));
	if (copy_entry_own(&own->entry)) {
		free(own);
		return NULL;
	}
	pthread_mutex_init(&own->lock, NULL);
	return own;
}

void copy_file_free(struct copy_file *file, unsigned worker)
{
	if (!file->entry.owned)
		return;
	pthread_mutex_destroy(&file->lock);
	free(file->error);
	copy_entry_disown(&file->entry, worker);
	free(file);
}

static int file_open_flags(const struct copy_file *file)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;

	if (!file->blocking)
		flags |= O_NONBLOCK;
	if (!atomic_load_explicit(&file->copy->no_noatime, memory_order_relaxed))
		flags |= O_NOATIME;
	return flags;
}

/* Opens the source. Negative errno without text. */
static int file_open(struct copy_file *file, int dirfd)
{
	struct copy *copy = file->copy;
	unsigned attempt = 0;

	while (true) {
		int flags = file_open_flags(file);

		file->src = openat(dirfd, file->entry.src_name, flags);
		if (file->src >= 0)
			return fstat(file->src, &file->entry.st) ? -errno : 0;
		if (errno == EPERM && flags & O_NOATIME)
			atomic_store_explicit(&copy->no_noatime, true, memory_order_relaxed);
		else if (errno != EINTR && !copy_relieve_fds(copy, -errno, &attempt))
			return -errno;
	}
}

/* The other names of the file are not to wait for this one any more. */
static void file_end_group(struct copy_file *file)
{
	struct copy_entry entry = file->entry;

	if (!file->leads)
		return;
	entry.st = file->led;
	file->leads = false;
	copy_group_end(&entry, NULL, false);
}

/* It was listed as a file, and is another thing now: whatever it is, it is handled as that. */
static int file_became_other(struct copy_file *file, int dirfd, struct error *err, unsigned worker)
{
	struct copy_entry *entry = &file->entry;

	if (fstatat(dirfd, entry->src_name, &entry->st, AT_SYMLINK_NOFOLLOW))
		return error_errno(err, "stat");
	if (S_ISREG(entry->st.st_mode))
		return error_sys(err, -EAGAIN, "open: it is being exchanged");
	file_end_group(file);
	copy_other_send(entry, worker);
	return FILE_THROUGH;
}

static int file_open_source(struct copy_file *file, struct error *err, unsigned worker)
{
	int dirfd = copy_entry_pin_source(&file->entry, err);
	uint64_t start = copy_width_start(file->copy, worker);
	int rc;

	if (dirfd < 0)
		return dirfd;
	rc = file_open(file, dirfd);
	copy_width_note(file->copy, COPY_TIMED_OPEN, start);
	if (rc == -ELOOP || rc == -ENXIO || (!rc && !S_ISREG(file->entry.st.st_mode)))
		rc = file_became_other(file, dirfd, err, worker);
	else if (rc < 0)
		error_sys(err, rc, "open");
	copy_entry_unpin_source(&file->entry);
	return rc;
}

static bool file_is_pseudo(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Whether sizes mean nothing on its filesystem, which is asked once. */
static bool file_is_stream(const struct copy_file *file)
{
	enum { ASKED = 1, PSEUDO = 2 };
	struct known *known = &file->copy->known;
	dev_t dev = file->entry.st.st_dev;
	unsigned flags = known_flags(known, dev, dev);

	if (!(flags & ASKED)) {
		flags = ASKED | (file_is_pseudo(file->src) ? PSEUDO : 0);
		known_note(known, dev, dev, flags);
	}
	return flags & PSEUDO;
}

/* Makes the destination: under its final name where nobody looks and the name is free, else under a
 * temporary one. */
static int file_create(struct copy_file *file, mode_t mode, struct error *err)
{
	struct copy *copy = file->copy;
	int flags = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC |
		    (copy->options.verify ? O_RDWR : O_WRONLY);
	unsigned attempt = 0;
	int rc = 0;

	file->temporary = copy->options.publish;
	do {
		if (!file->temporary) {
			file->dst = openat(file->dirfd, file->entry.dst_name, flags, mode);
			if (file->dst >= 0)
				break;
			rc = errno == EEXIST ? -EEXIST : error_errno(err, "create");
			if (rc == -EEXIST)
				file->temporary = true;
		}
		if (file->temporary)
			rc = file->dst =
				publish_create(copy->publish, file->dirfd, mode, file->temp, err);
	} while (file->dst < 0 && copy_relieve_fds(copy, rc, &attempt));
	if (file->dst < 0)
		return rc;
	file->created = true;
	return fstat(file->dst, &file->made) ? error_errno(err, "fstat") : 0;
}

static int file_make(struct copy_file *file, struct error *err, unsigned worker)
{
	struct copy_dir *dir = file->entry.dir;
	uint64_t start;
	int rc;

	file->dirfd = copy_dir_pin(dir, worker, err);
	if (file->dirfd < 0)
		return file->dirfd;
	start = copy_width_start(file->copy, worker);
	rc = file_create(file, meta_create_mode(file->copy->meta, &file->source, &dir->place), err);
	copy_width_note(file->copy, COPY_TIMED_CREATE, start);
	if (rc == -ENOSPC || rc == -EDQUOT)
		copy_no_space(file->copy, file->dirfd, true, err);
	return rc;
}

/* The bytes that the copy may bring in all. */
static int file_plan(struct copy_file *file, struct error *err)
{
	const struct stat *st = &file->entry.st;
	uint64_t max = file->copy->options.max_bytes, size = st->st_size;

	if (!max)
		return 0;
	if (range_has_holes(st))
		size = (uint64_t)st->st_blocks * 512;
	if (atomic_fetch_add_explicit(&file->copy->planned, size, memory_order_relaxed) + size <=
		max)
		return 0;
	error_set(err, -ENOSPC, "no space left: the limit of %llu bytes is reached",
		(unsigned long long)max);
	copy_stop(file->copy, err);
	return -ENOSPC;
}

/* Opens both sides. FILE_THROUGH: it is handled otherwise. */
static int file_begin(struct copy_file *file, struct error *err, unsigned worker)
{
	int rc;

	if (copy_stopped(file->copy))
		return error_sys(err, -ECANCELED, "stopped");
	file->of_source = true;
	rc = file_open_source(file, err, worker);
	if (rc)
		return rc;
	file->of_source = false;
	if (file->leads && (file->led.st_ino != file->entry.st.st_ino ||
				   file->led.st_dev != file->entry.st.st_dev))
		file_end_group(file);
	if (file->entry.st.st_nlink > 1 && !file->leads) {
		if (copy_group_claim(&file->entry, false, worker) == COPY_CLAIM_THROUGH)
			return FILE_THROUGH;
		file->leads = true;
		file->led = file->entry.st;
	}
	rc = file_plan(file, err);
	if (rc)
		return rc;
	file->stream = file_is_stream(file);
	meta_read(file->copy->meta, file->src, &file->entry.st, &file->source);
	file->have_source = true;
	return file_make(file, err, worker);
}

static int file_write(
	struct copy_file *file, const char *data, size_t size, uint64_t offset, struct error *err)
{
	while (size) {
		ssize_t n = pwrite(file->dst, data, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? error_errno(err, "write")
				 : error_set(err, -EIO, "write: nothing was written");
		data += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* Reads up to size bytes; fewer only at the end of the file. */
static ssize_t file_read(
	struct copy_file *file, char *data, size_t size, uint64_t offset, struct error *err)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = pread(file->src, data + have, size - have, (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			file->of_source = true;
			return error_errno(err, "read");
		}
		if (!n)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static char *file_buffer(struct copy_file *file, unsigned worker, struct error *err)
{
	struct copy_worker *own = &file->copy->workers[worker];

	if (!own->small)
		own->small = malloc(COPY_SMALL_SIZE);
	if (!own->small)
		error_sys(err, -ENOMEM, "a buffer");
	return own->small;
}

/* One read, one write; no read at the end of the file, since its size is looked at again. */
static int file_copy_small(struct copy_file *file, struct error *err, unsigned worker)
{
	size_t size = file->entry.st.st_size;
	char *buffer;
	ssize_t got;
	int rc;

	if (!size)
		return 0;
	buffer = file_buffer(file, worker, err);
	if (!buffer)
		return -ENOMEM;
	got = file_read(file, buffer, size, 0, err);
	if (got < 0)
		return (int)got;
	if ((size_t)got < size)
		return error_set(err, -ENODATA, "read: the file ended at byte %zd", got);
	rc = file_write(file, buffer, size, 0, err);
	if (rc)
		return rc;
	file->sent += size;
	copy_count(file->copy, COPY_COUNT_BYTES, (long)size, worker);
	return 0;
}

/* To the end, wherever that is. */
static int file_copy_stream(struct copy_file *file, struct error *err, unsigned worker)
{
	char *buffer = file_buffer(file, worker, err);
	uint64_t offset = 0;
	ssize_t got;
	int rc = buffer ? 0 : -ENOMEM;

	while (!rc) {
		got = file_read(file, buffer, COPY_SMALL_SIZE, offset, err);
		if (got <= 0)
			return (int)got;
		rc = file_write(file, buffer, (size_t)got, offset, err);
		offset += (uint64_t)got;
		file->sent += (uint64_t)got;
		copy_count(file->copy, COPY_COUNT_BYTES, got, worker);
	}
	return rc;
}

/* Whether it fits one read. A backend that was asked for by name does all. */
static bool file_is_small(const struct copy_file *file)
{
	const struct stat *st = &file->entry.st;

	return !st->st_size || (st->st_size <= (off_t)COPY_SMALL_SIZE && !range_has_holes(st) &&
				       !file->copy->options.engine);
}

/* Whether the source is still what it was when it was opened. Access times are not asked for: on a
 * network filesystem that would be a question to the server. */
static int file_check_same(const struct copy_file *file, struct error *err)
{
	const struct stat *st = &file->entry.st;
	struct statx now;

	if (file->stream)
		return 0;
	if (statx(file->src, "", AT_EMPTY_PATH, STATX_SIZE | STATX_MTIME | STATX_CTIME, &now))
		return error_errno(err, "stat");
	if (now.stx_size == (uint64_t)st->st_size && now.stx_mtime.tv_sec == st->st_mtim.tv_sec &&
		now.stx_mtime.tv_nsec == st->st_mtim.tv_nsec &&
		now.stx_ctime.tv_sec == st->st_ctim.tv_sec &&
		now.stx_ctime.tv_nsec == st->st_ctim.tv_nsec)
		return 0;
	return error_set(err, -ENODATA, "it changed while it was read");
}

/* How it ended without success. */
static void file_conclude(struct copy_file *file, int rc, const struct error *err, unsigned worker)
{
	if (rc == -ENODATA)
		copy_entry_tell(&file->entry, COPY_CHANGED, NULL, err, worker);
	else
		copy_entry_fail(&file->entry, file->of_source, err, worker);
	file_end_group(file);
}

bool copy_file_settle(struct copy_file *file, int rc, struct error *err, unsigned worker)
{
	if (!rc)
		rc = file_check_same(file, err);
	if (!rc)
		rc = copy_file_finish(file, err, worker);
	if ((rc == -ENOSPC || rc == -EDQUOT) && file->created)
		copy_no_space(file->copy, file->dirfd, false, err);
	copy_file_undo(file, worker);
	if (!rc)
		return false;
	if (!copy_stopped(file->copy)) {
		if (rc == -ENODATA && !file->changes++)
			return true;
		if (rc == -EAGAIN)
			file->blocking = true;
		if (retry_again(rc, &file->attempt))
			return true;
	}
	file_conclude(file, rc, err, worker);
	return false;
}

void copy_file_work(struct copy_file *file, unsigned worker)
{
	struct error err;
	int rc;

	do {
		err.code = 0;
		rc = file_begin(file, &err, worker);
		if (rc == FILE_THROUGH) {
			copy_file_undo(file, worker);
			break;
		}
		if (!rc && file->stream) {
			rc = file_copy_stream(file, &err, worker);
		} else if (!rc && file_is_small(file)) {
			rc = file_copy_small(file, &err, worker);
		} else if (!rc) {
			struct copy_file *own = file_own(file);

			if (own) {
				copy_split_run(own, worker);
				return;
			}
			rc = error_sys(&err, -ENOMEM, "copying");
		}
	} while (copy_file_settle(file, rc, &err, worker));
	copy_file_free(file, worker);
}

void copy_file_send(struct copy_entry *entry, unsigned worker)
{
	struct copy_file file;

	file_init(&file, entry);
	copy_file_work(&file, worker);
}

void copy_file_lead(struct copy_entry *entry, unsigned worker)
{
	struct copy_file file;

	file_init(&file, entry);
	file.entry.owned = false; /* names and directory stay the caller's until we return */
	file.leads = true;
	file.led = entry->st;
	copy_file_work(&file, worker);
}
