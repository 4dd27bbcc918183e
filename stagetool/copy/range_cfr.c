#include "copy/range_backend.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

/* What one call is asked for: little enough to hear of a cancel. */
#define CFR_PIECE (16u << 20)

/* Below this one read and one write are quicker than one copy_file_range, on local filesystems. */
#define CFR_MIN (64u << 10)

#define CEPH_MAGIC 0x00c36400
#define SMB2_MAGIC 0xfe534d42
#define CIFS_MAGIC 0xff534d42

static long cfr_filesystem(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 ? (long)(fs.f_type & 0xffffffff) : -1;
}

/* Network filesystems copy on the server, also from one mount to another. Local ones that share
 * blocks do that, within one. The others, and FUSE, splice a few pages at a time, which takes 1.4
 * times as long as reads and writes of a megabyte (tmpfs): not worth it unasked. */
static bool cfr_suits_pair(int src, dev_t src_dev, int dst, dev_t dst_dev)
{
	long type = cfr_filesystem(dst);

	switch (type) {
	case NFS_SUPER_MAGIC:
	case CEPH_MAGIC:
	case SMB2_MAGIC:
	case CIFS_MAGIC:
	case BTRFS_SUPER_MAGIC:
		return cfr_filesystem(src) == type;
	case FUSE_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case EXT4_SUPER_MAGIC:
		return false;
	default:
		return src_dev == dst_dev;
	}
}

static bool cfr_suits_range(const struct range_job *job)
{
	return job->length >= CFR_MIN && !job->skip_zeros;
}

/* Lacks: EXDEV (not between these two), EOPNOTSUPP, ENOSYS (old kernel, system call filter). EINVAL
 * is about these files (not regular ones to that filesystem, overlapping). Refusals such as EPERM,
 * ETXTBSY (immutable, swap) and all I/O errors are none. */
static int cfr_failed(int code, struct error *err)
{
	error_sys(err, -code, "copy_file_range");
	switch (code) {
	case EXDEV:
	case EOPNOTSUPP:
	case ENOSYS:
		return RANGE_NEVER;
	case EINVAL:
		return RANGE_NOT_NOW;
	default:
		return -code;
	}
}

static int cfr_copy(const struct range_job *job, struct range_buffer *buffer, uint64_t *copied,
	struct error *err)
{
	uint64_t done = 0;

	(void)buffer;
	while (done < job->length) {
		off64_t from = (off64_t)(job->src_offset + done);
		off64_t to = (off64_t)(job->dst_offset + done);
		uint64_t left = job->length - done;
		ssize_t n;

		if (job->cancel && atomic_load_explicit(job->cancel, memory_order_relaxed))
			return error_set(err, -ECANCELED, "cancelled");
		n = copy_file_range(
			job->src, &from, job->dst, &to, left < CFR_PIECE ? left : CFR_PIECE, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cfr_failed(errno, err);
		/* The end, says the kernel; some filesystems say it wrongly, and a read knows. */
		if (n == 0) {
			range_short(job, done, err);
			return RANGE_NOT_NOW;
		}
		done += (uint64_t)n;
		*copied += (uint64_t)n;
	}
	return 0;
}

const struct range_backend range_cfr = {
	.name = "copy_file_range",
	.suits_pair = cfr_suits_pair,
	.suits_range = cfr_suits_range,
	.copy = cfr_copy,
};
