/*
 * What a way of moving bytes has to offer to range.c.
 */
#ifndef COPY_RANGE_BACKEND_H
#define COPY_RANGE_BACKEND_H

#include "copy/range.h"

/* Beside 0 and negative errnos. Nothing is wrong with the files: the next backend goes on where
 * this one stopped. NEVER: for no file of this pair of filesystems; NOT_NOW: for this range of this
 * file. */
enum { RANGE_NEVER = 1, RANGE_NOT_NOW = 2 };

struct range_backend {
	const char *name;
	/* Whether it is worth trying unasked for files of this pair of filesystems; asked once a
	 * pair. */
	bool (*suits_pair)(int src, dev_t src_dev, int dst, dev_t dst_dev);
	/* And for this range. NULL: yes. */
	bool (*suits_range)(const struct range_job *job);
	/* Copies the range; adds to *copied as it goes. 0, negative, RANGE_NEVER or RANGE_NOT_NOW:
	 * these with err saying what the kernel said. -ENODATA: src ended. */
	int (*copy)(const struct range_job *job, struct range_buffer *buffer, uint64_t *copied,
		struct error *err);
};

extern const struct range_backend range_reflink, range_cfr, range_direct, range_readwrite;

/* Reads and writes; direct: src is O_DIRECT, and RANGE_NEVER says that it can not be read so (it is not
 * O_DIRECT any more then). Several threads may have set it on one file: readers that did not ask for it
 * take it off where the filesystem refuses. */
int range_read_and_write(const struct range_job *job, bool direct, struct range_buffer *buffer,
	uint64_t *copied, struct error *err);

/* Clones the whole file: 0, negative, RANGE_NEVER or RANGE_NOT_NOW. */
int range_reflink_whole(int src, int dst, struct error *err);

/* -ENODATA, and where src ended. */
int range_short(const struct range_job *job, uint64_t copied, struct error *err);

#endif
