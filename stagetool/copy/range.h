/*
 * Moving bytes from one open file to another, by the best way that the two filesystems have.
 *
 * Ways ("backends") in the order they are tried: reflink, copy_file_range, direct (reads past the
 * page cache), readwrite. Each falls
 * back to the next only on errors that mean "not supported here", which is remembered for the pair
 * of filesystems. Whole files: range_clone first; where it says no, range_copy_data of the whole or
 * of pieces of it in parallel, then an ftruncate to the size where the file may end in a hole.
 */
#ifndef COPY_RANGE_H
#define COPY_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* The choice of backends and what is known of pairs of filesystems. One for a copy, for all
 * threads. */
struct range;

/* name NULL: all in order; else this backend and no other (-EINVAL for a name that is none, with
 * those that are). */
int range_new(const char *name, struct range **range, struct error *err);
void range_free(struct range *range);

/* The names, for help and tests; NULL beyond the last. */
const char *range_name(unsigned index);

/* A worker's memory, kept from call to call. Zeroed: made when first needed. Not shared. */
struct range_buffer {
	char *data;
	size_t size;
};
void range_buffer_free(struct range_buffer *buffer);

/* Bytes from src to dst. Neither file's offset is used or moved: several threads may share them. */
struct range_job {
	int src, dst; /* borrowed */
	dev_t src_dev, dst_dev; /* st_dev of each */
	uint64_t src_offset, dst_offset, length;
	bool skip_zeros; /* leave blocks of zeros unwritten (not where copy_file_range is
			  * forced): dst has nothing there, it is fresh */
	const atomic_bool *cancel; /* borrowed, may be NULL; looked at every few MiB: -ECANCELED */
};

/* Makes dst (empty) a clone of all of src: size, holes and bytes. 1: it is; 0: it can not be done
 * here, go on with range_copy; negative: failed (also where reflink is forced and can not be done).
 * size: src's, from its fstat (small files are quicker read and written, and 0 is said for them
 * without trying). */
int range_clone(struct range *range, int src, dev_t src_dev, int dst, dev_t dst_dev, uint64_t size,
	struct error *err);

/* Copies every byte of the range, holes as zeros. *copied counts what arrived, also on failure.
 * -ENODATA: src ended before the range did (it got shorter). */
int range_copy(struct range *range, const struct range_job *job, struct range_buffer *buffer,
	uint64_t *copied, struct error *err);

/* Copies only where src has data (SEEK_DATA), into a dst that has nothing in the range. Does not
 * set dst's size: where src ends in a hole the caller must. Filesystems without SEEK_DATA: all is
 * data. -ENODATA as above. *copied: bytes of data. */
int range_copy_data(struct range *range, const struct range_job *job, struct range_buffer *buffer,
	uint64_t *copied, struct error *err);

/* Whether a file has holes, as far as its blocks tell: otherwise range_copy spares the
 * SEEK_DATA. */
static inline bool range_has_holes(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
}

#endif
