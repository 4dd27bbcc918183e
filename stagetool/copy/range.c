#include "copy/range_backend.h"

#include "base/known.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Up to here one read and one write cost no more than a clone. */
#define CLONE_MIN (16u << 10)

static const struct range_backend *const backends[] = { &range_reflink, &range_cfr,
	&range_direct, &range_readwrite };
#define N_BACKENDS (sizeof(backends) / sizeof(*backends))

/* Two flags for each backend in known: the pair was looked at, and it is not to be tried. Above
 * those the lack of SEEK_DATA. */
#define KNOWN_ASKED(i) (1u << (2 * (i)))
#define KNOWN_UNFIT(i) (2u << (2 * (i)))
#define KNOWN_NO_SEEK (1u << 16)

struct range {
	const struct range_backend *forced;
	struct known known;
};

const char *range_name(unsigned index)
{
	return index < N_BACKENDS ? backends[index]->name : NULL;
}

static const struct range_backend *backend_find(const char *name)
{
	for (unsigned i = 0; i < N_BACKENDS; i++)
		if (strcmp(backends[i]->name, name) == 0)
			return backends[i];
	return NULL;
}

int range_new(const char *name, struct range **range, struct error *err)
{
	const struct range_backend *forced = name ? backend_find(name) : NULL;
	struct range *new;

	if (name && !forced)
		return error_set(err, -EINVAL, "engine \"%s\" is not known: expected reflink, "
			"copy_file_range, direct or readwrite", name);
	new = calloc(1, sizeof(*new));
	if (!new)
		return error_sys(err, -ENOMEM, "range");
	new->forced = forced;
	*range = new;
	return 0;
}

void range_free(struct range *range)
{
	free(range);
}

void range_buffer_free(struct range_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct range_buffer){ 0 };
}

int range_short(const struct range_job *job, uint64_t copied, struct error *err)
{
	return error_set(err, -ENODATA, "read: the file ended at byte %" PRIu64 ", %" PRIu64
		" were expected", job->src_offset + copied, job->src_offset + job->length);
}

/* A backend that was asked for by name can not do it: that is an error, and says so. */
static int forced_failed(const struct range *range, const struct error *why, struct error *err)
{
	int code = why->code == -ENODATA ? -ENODATA : -EOPNOTSUPP;

	return error_set(err, code, "engine %s can not copy this file: %s", range->forced->name,
		why->text);
}

static bool backend_fits(struct range *range, unsigned index, const struct range_job *job)
{
	const struct range_backend *backend = backends[index];
	unsigned flags;

	if (range->forced)
		return range->forced == backend;
	if (backend->suits_range && !backend->suits_range(job))
		return false;
	flags = known_flags(&range->known, job->src_dev, job->dst_dev);
	if (flags & KNOWN_UNFIT(index))
		return false;
	if (!backend->suits_pair || flags & KNOWN_ASKED(index))
		return true;
	flags = KNOWN_ASKED(index);
	if (!backend->suits_pair(job->src, job->src_dev, job->dst, job->dst_dev))
		flags |= KNOWN_UNFIT(index);
	known_note(&range->known, job->src_dev, job->dst_dev, flags);
	return !(flags & KNOWN_UNFIT(index));
}

int range_clone(struct range *range, int src, dev_t src_dev, int dst, dev_t dst_dev, uint64_t size,
	struct error *err)
{
	struct error why = ERROR_INIT;
	int rc;

	if (range->forced && range->forced != &range_reflink)
		return 0;
	if (!range->forced && (size <= CLONE_MIN ||
		known_flags(&range->known, src_dev, dst_dev) & KNOWN_UNFIT(0)))
		return 0;
	rc = range_reflink_whole(src, dst, &why);
	if (rc == RANGE_NEVER)
		known_note(&range->known, src_dev, dst_dev, KNOWN_UNFIT(0));
	if (rc == 0)
		return 1;
	if (rc < 0)
		return error_set(err, rc, "%s", why.text);
	return range->forced ? forced_failed(range, &why, err) : 0;
}

int range_copy(struct range *range, const struct range_job *job, struct range_buffer *buffer,
	uint64_t *copied, struct error *err)
{
	struct range_job rest = *job;

	*copied = 0;
	for (unsigned i = 0; i < N_BACKENDS; i++) {
		struct error why = ERROR_INIT;
		uint64_t done = 0;
		int rc;

		if (!backend_fits(range, i, &rest))
			continue;
		rc = backends[i]->copy(&rest, buffer, &done, &why);
		*copied += done;
		if (rc == 0)
			return 0;
		if (rc < 0)
			return error_set(err, rc, "%s", why.text);
		if (range->forced)
			return forced_failed(range, &why, err);
		if (rc == RANGE_NEVER)
			known_note(&range->known, job->src_dev, job->dst_dev, KNOWN_UNFIT(i));
		rest.src_offset += done;
		rest.dst_offset += done;
		rest.length -= done;
	}
	return error_set(err, -EOPNOTSUPP, "no way to copy this file");
}

/* The next run of data in [*start, end). 1: there is one, *start and *stop are set; 0: only a hole
 * is left; -ENODATA: the file ends before end. Where the filesystem does not say, all is data. */
static int next_data(struct range *range, const struct range_job *job, uint64_t end,
	uint64_t *start, uint64_t *stop, struct error *err)
{
	struct stat st;
	off_t data, hole;

	*stop = end;
	if (known_flags(&range->known, job->src_dev, job->src_dev) & KNOWN_NO_SEEK)
		return 1;
	data = lseek(job->src, (off_t)*start, SEEK_DATA);
	if (data < 0 && (errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) {
		known_note(&range->known, job->src_dev, job->src_dev, KNOWN_NO_SEEK);
		return 1;
	}
	if (data < 0 && errno != ENXIO)
		return error_errno(err, "lseek (SEEK_DATA)");
	if (data < 0 || (uint64_t)data >= end) {
		if (fstat(job->src, &st) < 0)
			return error_errno(err, "fstat");
		if ((uint64_t)st.st_size < end)
			return error_set(err, -ENODATA, "read: the file ended at byte %" PRId64
				", %" PRIu64 " were expected", (int64_t)st.st_size, end);
		return 0;
	}
	*start = (uint64_t)data;
	hole = lseek(job->src, data, SEEK_HOLE);
	/* An end that makes no sense (the file is changing): the rest counts as data. */
	if (hole > data && (uint64_t)hole < end)
		*stop = (uint64_t)hole;
	return 1;
}

int range_copy_data(struct range *range, const struct range_job *job, struct range_buffer *buffer,
	uint64_t *copied, struct error *err)
{
	uint64_t end = job->src_offset + job->length, start = job->src_offset, stop;
	int rc = 0;

	*copied = 0;
	while (start < end) {
		struct range_job piece = *job;
		uint64_t done = 0;

		rc = next_data(range, job, end, &start, &stop, err);
		if (rc <= 0)
			return rc;
		piece.src_offset = start;
		piece.dst_offset = job->dst_offset + (start - job->src_offset);
		piece.length = stop - start;
		rc = range_copy(range, &piece, buffer, &done, err);
		*copied += done;
		if (rc < 0)
			return rc;
		start = stop;
	}
	return 0;
}
