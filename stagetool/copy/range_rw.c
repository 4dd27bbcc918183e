#include "copy/range_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Large enough for one request of a network filesystem, and for one processor's cache. */
#define BUFFER_SIZE (1u << 20)
#define BUFFER_ALIGNMENT 4096u

/* The smallest hole that is left unwritten. */
#define ZERO_BLOCK 4096u

static int buffer_make(struct range_buffer *buffer, struct error *err)
{
	void *data;

	if (buffer->data)
		return 0;
	if (posix_memalign(&data, BUFFER_ALIGNMENT, BUFFER_SIZE))
		return error_sys(err, -ENOMEM, "buffer of %u bytes", BUFFER_SIZE);
	buffer->data = data;
	buffer->size = BUFFER_SIZE;
	return 0;
}

static int write_whole(int fd, const char *data, size_t size, uint64_t offset, struct error *err)
{
	while (size) {
		ssize_t n = pwrite(fd, data, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, "write");
		if (n == 0) /* never for a regular file; a loop without end is worse than an
			     * error */
			return error_set(err, -EIO, "write: nothing was written");
		data += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static bool is_zero(const char *data, size_t size)
{
	return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

/* Writes data but for its blocks of zeros, in runs as long as they come. */
static int write_nonzero(int fd, const char *data, size_t size, uint64_t offset,
	struct error *err)
{
	size_t start = 0, at = 0;

	while (at < size) {
		size_t block = size - at < ZERO_BLOCK ? size - at : ZERO_BLOCK;
		bool zero = is_zero(data + at, block);
		int rc = 0;

		if (zero && at > start)
			rc = write_whole(fd, data + start, at - start, offset + start, err);
		if (rc < 0)
			return rc;
		at += block;
		if (zero)
			start = at;
	}
	return write_whole(fd, data + start, at - start, offset + start, err);
}

/* Whether reads of fd went past the page cache; they do not any more. A server or filesystem may say
 * only at the read that it can not do that. */
static bool stop_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_DIRECT && !fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

int range_read_and_write(const struct range_job *job, bool direct, struct range_buffer *buffer,
	uint64_t *copied, struct error *err)
{
	uint64_t done = 0;
	int rc = buffer_make(buffer, err);

	while (rc == 0 && done < job->length) {
		uint64_t left = job->length - done, to = job->dst_offset + done;
		size_t want = left < buffer->size ? left : buffer->size;
		ssize_t n;

		if (job->cancel && atomic_load_explicit(job->cancel, memory_order_relaxed))
			return error_set(err, -ECANCELED, "cancelled");
		/* Direct reads are of whole blocks on many filesystems. */
		if (direct)
			want = (want + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
		n = pread(job->src, buffer->data, want, (off_t)(job->src_offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EINVAL && stop_direct(job->src)) {
			error_sys(err, -EINVAL, "read");
			if (direct)
				return RANGE_NEVER;
			continue;
		}
		if (n < 0)
			return error_errno(err, "read");
		if (n == 0)
			return range_short(job, done, err);
		if ((uint64_t)n > left)
			n = (ssize_t)left;
		rc = (job->skip_zeros ? write_nonzero : write_whole)(job->dst, buffer->data, (size_t)n,
			to, err);
		if (rc == 0) {
			done += (uint64_t)n;
			*copied += (uint64_t)n;
		}
	}
	return rc;
}

static int readwrite_copy(const struct range_job *job, struct range_buffer *buffer,
	uint64_t *copied, struct error *err)
{
	return range_read_and_write(job, false, buffer, copied, err);
}

const struct range_backend range_readwrite = {
	.name = "readwrite",
	.copy = readwrite_copy,
};
