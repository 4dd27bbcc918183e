#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "copy/internal.h"

#define VERIFY_SIZE (512u << 10)

/* Reads size bytes, or up to the end. */
static ssize_t verify_read(int fd, char *data, size_t size, uint64_t offset, struct error *err)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = pread(fd, data + have, size - have, (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, "verify: read");
		if (!n)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

int copy_verify(int src, int dst, uint64_t size, const atomic_bool *stop, struct error *err)
{
	autofree char *ours = malloc(VERIFY_SIZE);
	autofree char *theirs = malloc(VERIFY_SIZE);
	uint64_t offset = 0;

	if (!ours || !theirs)
		return error_sys(err, -ENOMEM, "verify");
	/* What was synced can go from memory, so that it comes from the disk. */
	posix_fadvise(dst, 0, 0, POSIX_FADV_DONTNEED);
	while (true) {
		ssize_t got = verify_read(dst, ours, VERIFY_SIZE, offset, err);
		ssize_t want = got < 0 ? got : verify_read(src, theirs, VERIFY_SIZE, offset, err);

		if (want < 0)
			return (int)want;
		if (atomic_load_explicit(stop, memory_order_relaxed))
			return error_sys(err, -ECANCELED, "stopped");
		if (got != want || memcmp(ours, theirs, (size_t)got))
			return error_set(err, -EBADMSG,
				"verify: what was read back is not what the source has, near byte "
				"%llu",
				(unsigned long long)offset);
		offset += (uint64_t)got;
		if (!got)
			break;
	}
	if (offset < size)
		return error_set(err, -ENODATA, "verify: the source became shorter");
	return 0;
}
