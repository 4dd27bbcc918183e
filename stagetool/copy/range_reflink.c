#include "copy/range_backend.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

/* What a pair of filesystems that can not share blocks says: no such feature (EOPNOTSUPP), not the
 * same filesystem (EXDEV), no such ioctl (ENOTTY; ENOSYS from FUSE and under system call filters).
 * EINVAL is about these two files: an alignment, or flags of theirs that differ (DAX, realtime, no
 * checksums). ENOSPC too: on XFS a group of blocks that is nearly full can not take a reference,
 * while there is room for data elsewhere; if there is none, the write will say so. Not here: EPERM
 * (immutable, append-only) and ETXTBSY (swap), which are refusals and not lacks. */
static int reflink_failed(int code, const char *call, struct error *err)
{
	error_sys(err, -code, "%s", call);
	switch (code) {
	case EOPNOTSUPP:
	case EXDEV:
	case ENOTTY:
	case ENOSYS:
		return RANGE_NEVER;
	case EINVAL:
	case ENOSPC:
		return RANGE_NOT_NOW;
	default:
		return -code;
	}
}

int range_reflink_whole(int src, int dst, struct error *err)
{
	int rc;

	do
		rc = ioctl(dst, FICLONE, src);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? reflink_failed(errno, "reflink (FICLONE)", err) : 0;
}

static int reflink_copy(const struct range_job *job, struct range_buffer *buffer, uint64_t *copied,
	struct error *err)
{
	struct file_clone_range range = {
		.src_fd = job->src,
		.src_offset = job->src_offset,
		.src_length = job->length,
		.dest_offset = job->dst_offset,
	};
	int rc;

	(void)buffer;
	if (!job->length) /* it would mean: to the end */
		return 0;
	do
		rc = ioctl(job->dst, FICLONERANGE, &range);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return reflink_failed(errno, "reflink (FICLONERANGE)", err);
	*copied += job->length;
	return 0;
}

/* Pieces of a file are asked for where the whole was refused, and only those that a filesystem
 * could share: whole blocks, enough of them to be worth a call. */
static bool reflink_suits_range(const struct range_job *job)
{
	return job->length >= 1u << 20 &&
		(job->src_offset | job->dst_offset | job->length) % 4096 == 0;
}

const struct range_backend range_reflink = {
	.name = "reflink",
	.suits_range = reflink_suits_range,
	.copy = reflink_copy,
};
