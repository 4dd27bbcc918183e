#include "copy/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/retry.h"

/* Up to here a read takes its time for the way, not for the bytes. */
#define FILE_TIMED_SIZE (32u << 10)

void copy_file_init(struct copy_file *file, const struct copy_entry *entry)
{
	memset(file, 0, offsetof(struct copy_file, temp));
	file->entry = *entry;
	file->entry.owned =
		false; /* names and directory are the caller's, until it is on the heap */
	file->copy = entry->copy;
	file->src = file->dst = file->dirfd = -1;
	file->code = 0;
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
	pthread_mutex_destroy(&file->lock);
	copy_entry_disown(&file->entry, worker);
	free(file);
}

int copy_file_write(
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
	char **small = &file->copy->workers[worker].small;

	void *made;

	if (!*small && !posix_memalign(&made, 64, COPY_SMALL_SIZE))
		*small = made;
	if (!*small)
		error_sys(err, -ENOMEM, "a buffer");
	return *small;
}

/* One read, one write; no read at the end of the file, since its size is looked at again. */
static int file_copy_small(struct copy_file *file, struct error *err, unsigned worker)
{
	size_t size = file->entry.st.st_size;
	uint64_t start;
	char *buffer;
	ssize_t got;
	int rc;

	if (!size)
		return 0;
	buffer = file_buffer(file, worker, err);
	if (!buffer)
		return -ENOMEM;
	start = size <= FILE_TIMED_SIZE ? copy_width_start(file->copy, worker) : 0;
	got = file_read(file, buffer, size, 0, err);
	copy_width_note(file->copy, COPY_TIMED_READ, start, 1);
	if (got < 0)
		return (int)got;
	if ((size_t)got < size)
		return error_set(err, -ENODATA, "read: the file ended at byte %zd", got);
	rc = copy_file_write(file, buffer, size, 0, err);
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
		rc = copy_file_write(file, buffer, (size_t)got, offset, err);
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

void copy_file_conclude(
	struct copy_file *file, int rc, const struct error *err, unsigned worker)
{
	if (rc == -ENODATA)
		copy_entry_tell(&file->entry, COPY_CHANGED, NULL, err, worker);
	else
		copy_entry_fail(&file->entry, file->of_source, err, worker);
	copy_file_end_group(file);
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
	copy_file_conclude(file, rc, err, worker);
	return false;
}

bool copy_file_work(struct copy_file *file, unsigned worker)
{
	struct error err;
	int rc;

	do {
		err.code = 0;
		rc = copy_file_begin(file, &err, worker);
		if (rc == COPY_FILE_THROUGH) {
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
				return true;
			}
			rc = error_sys(&err, -ENOMEM, "copying");
		}
	} while (copy_file_settle(file, rc, &err, worker));
	return false;
}

void copy_file_send(struct copy_entry *entry, unsigned worker)
{
	struct copy_file file;

	copy_file_init(&file, entry);
	copy_file_work(&file, worker);
}

void copy_file_lead(struct copy_entry *entry, unsigned worker)
{
	struct copy_file file;

	copy_file_init(&file, entry);
	file.leads = true;
	file.led = entry->st;
	copy_file_work(&file, worker);
}
