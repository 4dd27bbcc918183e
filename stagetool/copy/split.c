#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "copy/file.h"

/* What is copied between two looks at whether somebody has nothing to do. */
#define SPLIT_PIECE (8u << 20)

struct split_part {
	struct pool_task task;
	struct copy_file *file;
	uint64_t begin, end;
};

/* Keeps the first error; the others stop at their next piece. */
static void split_failed(struct copy_file *file, const struct error *err)
{
	pthread_mutex_lock(&file->lock);
	if (!file->code) {
		file->code = err->code;
		file->error = *err;
	}
	pthread_mutex_unlock(&file->lock);
}

static bool split_has_failed(struct copy_file *file)
{
	bool failed;

	pthread_mutex_lock(&file->lock);
	failed = file->code;
	pthread_mutex_unlock(&file->lock);
	return failed;
}

static void split_count(struct copy_file *file, uint64_t bytes, unsigned worker)
{
	pthread_mutex_lock(&file->lock);
	file->sent += bytes;
	pthread_mutex_unlock(&file->lock);
	copy_count(file->copy, COPY_COUNT_BYTES, (long)bytes, worker);
}

static int split_copy_piece(
	struct copy_file *file, uint64_t begin, uint64_t size, unsigned worker, struct error *err)
{
	struct copy *copy = file->copy;
	bool holes = range_has_holes(&file->entry.st);
	struct range_job job = {
		.src = file->src,
		.dst = file->dst,
		.src_dev = file->entry.st.st_dev,
		.dst_dev = file->made.st_dev,
		.src_offset = begin,
		.dst_offset = begin,
		.length = size,
		.skip_zeros = holes,
		.cancel = copy->options.cancel ? copy->options.cancel : &copy->stop,
	};
	uint64_t copied = 0, start = copy_width_start_piece(copy);
	int rc = (holes ? range_copy_data : range_copy)(
		copy->range, &job, &copy->workers[worker].buffer, &copied, err);

	copy_width_note_piece(copy, start, copied);
	split_count(file, copied, worker);
	return rc;
}

static void split_part_run(struct pool_task *task, unsigned worker);

/* Gives the upper half of a part to those who have nothing to do. */
static uint64_t split_share(struct copy_file *file, uint64_t begin, uint64_t end)
{
	struct split_part *part = malloc(sizeof(*part));
	uint64_t half = (end - begin) / SPLIT_PIECE / 2 * SPLIT_PIECE;

	if (!part)
		return end;
	part->task.run = split_part_run;
	part->file = file;
	part->begin = begin + half;
	part->end = end;
	atomic_fetch_add_explicit(&file->parts, 1, memory_order_relaxed);
	pool_push(file->copy->pool, &part->task);
	return begin + half;
}

/* Other files come first: writers of one file wait for each other on most filesystems. */
static bool split_share_entries(struct copy *copy, unsigned worker)
{
	struct walk_dir *walk = copy->workers[worker].walk;

	return walk && walk_share(walk, worker);
}

/* All parts are through. */
static void split_end(struct copy_file *file, unsigned worker)
{
	struct error err = ERROR_INIT;
	int rc = file->code;

	if (rc)
		err = file->error;
	/* A hole at the end is not written by anybody. */
	if (!rc && range_has_holes(&file->entry.st) && ftruncate(file->dst, file->entry.st.st_size))
		rc = error_errno(&err, "setting the size");
	file->code = 0;
	if (!copy_file_settle(file, rc, &err, worker) || !copy_file_work(file, worker))
		copy_file_free(file, worker);
}

static void split_part(struct copy_file *file, uint64_t begin, uint64_t end, unsigned worker)
{
	while (begin < end && !split_has_failed(file)) {
		uint64_t size = end - begin;
		struct error err;

		err.code = 0;
		if (pool_idle(file->copy->pool) && !split_share_entries(file->copy, worker) &&
			size >= 2 * (uint64_t)SPLIT_PIECE) {
			end = split_share(file, begin, end);
			size = end - begin;
		}
		if (size > SPLIT_PIECE)
			size = SPLIT_PIECE;
		if (copy_stopped(file->copy))
			error_sys(&err, -ECANCELED, "stopped");
		else
			split_copy_piece(file, begin, size, worker, &err);
		if (err.code)
			split_failed(file, &err);
		begin += size;
	}
	if (atomic_fetch_sub_explicit(&file->parts, 1, memory_order_acq_rel) == 1)
		split_end(file, worker);
}

static void split_part_run(struct pool_task *task, unsigned worker)
{
	struct split_part part = *(struct split_part *)task;

	free(task);
	split_part(part.file, part.begin, part.end, worker);
}

void copy_split_run(struct copy_file *file, unsigned worker)
{
	const struct stat *st = &file->entry.st;
	struct error err = ERROR_INIT;
	int rc = range_clone(file->copy->range, file->src, st->st_dev, file->dst, file->made.st_dev,
		st->st_size, &err);

	atomic_store_explicit(&file->parts, 1, memory_order_relaxed);
	if (rc < 0)
		split_failed(file, &err);
	if (rc > 0)
		split_count(file,
			range_has_holes(st) ? (uint64_t)st->st_blocks * 512 : (uint64_t)st->st_size,
			worker);
	split_part(file, 0, rc ? 0 : (uint64_t)st->st_size, worker);
}
