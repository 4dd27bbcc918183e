#include "copy/range_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

/* Below this a buffered read is one request, too. */
#define DIRECT_MIN (256u << 10)

/* A buffered read of a megabyte becomes 8 requests of 128 KiB (the read-ahead of a FUSE or NFS mount, which
 * several threads at one file defeat), and passes through memory that the job could use: 1.3 to 2 times as
 * long. Local disks read ahead well, and what is in memory already is not read again. */
static bool direct_suits_pair(int src, dev_t src_dev, int dst, dev_t dst_dev)
{
	struct statfs fs;

	(void)src_dev;
	(void)dst;
	(void)dst_dev;
	if (fstatfs(src, &fs))
		return false;
	switch ((unsigned long)fs.f_type & 0xffffffff) {
	case FUSE_SUPER_MAGIC:
	case NFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static bool direct_suits_range(const struct range_job *job)
{
	return job->length >= DIRECT_MIN && !job->skip_zeros;
}

static int direct_copy(const struct range_job *job, struct range_buffer *buffer, uint64_t *copied,
	struct error *err)
{
	int flags = fcntl(job->src, F_GETFL);

	if (flags < 0)
		return error_errno(err, "fcntl");
	if (!(flags & O_DIRECT) && fcntl(job->src, F_SETFL, flags | O_DIRECT)) {
		error_errno(err, "fcntl (O_DIRECT)");
		return RANGE_NEVER;
	}
	return range_read_and_write(job, true, buffer, copied, err);
}

const struct range_backend range_direct = {
	.name = "direct",
	.suits_pair = direct_suits_pair,
	.suits_range = direct_suits_range,
	.copy = direct_copy,
};
