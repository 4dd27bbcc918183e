/*
 * Project quotas of the filesystem that an fd lies on, by the kernel's own calls (ext4 and XFS have
 * them).
 */
#ifndef STAGE_QUOTA_H
#define STAGE_QUOTA_H

#include <stdint.h>

#include "base/error.h"

struct quota_use {
	uint64_t bytes, inodes;
};

/* 0 where the limits of projects are enforced on fd's filesystem; -EOPNOTSUPP where they are not. */
int quota_enforced(int fd, struct error *err);

/* What project id occupies there; nothing where it was never used. */
int quota_get(int fd, uint32_t id, struct quota_use *use, struct error *err);

/* Sets the hard limit of project id in bytes, rounded up to KiB; 0: none. -EOPNOTSUPP: the
 * filesystem has no project quotas, or they are switched off. Needs root. */
int quota_limit(int fd, uint32_t id, uint64_t bytes, struct error *err);

/* The directory dirfd, and what will be made in it, counts for project id. What is in it already
 * does not. */
int quota_join(int dirfd, uint32_t id, struct error *err);

#endif
