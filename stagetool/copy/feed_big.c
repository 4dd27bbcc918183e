#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/retry.h"
#include "copy/feed_internal.h"

/* A file that comes in pieces. */
struct feed_big {
	struct copy_file file; /* parts: those who are at it */
	struct copy_feed *feed;
	struct meta_value *values;
	uint64_t hash, end;
};

/* Whoever is last at a large file brings it to its end. */
static void big_release(struct feed_big *big, unsigned worker)
{
	struct copy_file *file = &big->file;
	struct copy_feed *feed = big->feed;
	struct error err = ERROR_INIT;
	int rc;

	if (atomic_fetch_sub(&file->parts, 1) > 1)
		return;
	rc = file->code;
	if (rc)
		err = file->error;
	if (!rc && copy_stopped(file->copy))
		rc = error_sys(&err, -ECANCELED, "stopped");
	if (!rc && big->end < (uint64_t)file->entry.st.st_size &&
		ftruncate(file->dst, file->entry.st.st_size))
		rc = error_errno(&err, "set its size");
	file->attempt = RETRY_MAX; /* its bytes came once */
	if (!rc)
		rc = copy_file_finish(file, &err, worker);
	copy_file_undo(file, worker);
	if (rc)
		copy_file_conclude(file, rc, &err, worker);
	feed_leave(feed, big->hash);
	free(big->values);
	copy_file_free(file, worker);
}

static void big_fail(struct feed_big *big, int rc, const struct error *err)
{
	pthread_mutex_lock(&big->file.lock);
	if (!big->file.code) {
		big->file.code = rc;
		big->file.error = *err;
	}
	pthread_mutex_unlock(&big->file.lock);
}

static void piece_run(struct pool_task *task, unsigned worker)
{
	struct feed_buffer *piece = (struct feed_buffer *)task;
	struct feed_big *big = piece->big;
	struct copy_file *file = &big->file;
	struct error err = ERROR_INIT;
	unsigned attempt = 0;
	int rc;

	copy_worker_get(file->copy, worker);
	if (!copy_stopped(file->copy)) {
		do
			rc = copy_file_write(file, piece->data, piece->used, piece->offset, &err);
		while (rc && retry_again(rc, &attempt));
		if (rc) {
			copy_no_space(file->copy, file->dirfd, false, &err);
			big_fail(big, rc, &err);
		} else {
			pthread_mutex_lock(&file->lock);
			file->sent += piece->used;
			pthread_mutex_unlock(&file->lock);
			copy_count(file->copy, COPY_COUNT_BYTES, (long)piece->used, worker);
		}
	}
	feed_buffer_put_back(piece);
	big_release(big, worker);
}

static void piece_send(struct copy_feed *feed)
{
	struct feed_buffer *piece = feed->piece;

	feed->piece = NULL;
	if (!piece)
		return;
	piece->task.run = piece_run;
	atomic_fetch_add(&feed->big->file.parts, 1);
	pool_push_bottom(feed->copy->pool, &piece->task);
}

/* Makes the destination of a large file. */
static int big_make(struct feed_big *big, size_t n_values, struct error *err)
{
	struct copy_file *file = &big->file;
	int rc;

	do {
		meta_given(file->copy->meta, &file->entry.st, big->values, n_values, &file->source);
		file->have_source = true;
		rc = copy_file_make(file, err, COPY_FEEDER);
		if (rc)
			copy_file_undo(file, COPY_FEEDER);
	} while (rc && !copy_stopped(file->copy) && retry_again(rc, &file->attempt));
	return rc;
}

static struct feed_big *big_new(struct copy_feed *feed, const struct copy_entry *entry,
	const struct copy_fed *fed)
{
	struct feed_big *big = calloc(1, sizeof(*big));

	if (!big)
		return NULL;
	copy_file_init(&big->file, entry);
	big->feed = feed;
	big->values = feed_copy_values(fed->values, fed->n_values);
	if (!big->values || copy_entry_own(&big->file.entry)) {
		free(big->values);
		free(big);
		return NULL;
	}
	pthread_mutex_init(&big->file.lock, NULL);
	atomic_init(&big->file.parts, 1);
	return big;
}

bool feed_big_begin(struct copy_feed *feed, const struct feed_place *place,
	const struct copy_fed *fed)
{
	struct error err = ERROR_INIT;
	struct copy_entry entry;
	struct feed_big *big;
	int rc;

	feed_entry_init(feed, &entry, place, fed, place->name);
	if (!feed_wanted(feed, &entry, place->hash, place->again, NULL, COPY_FEEDER))
		return false;
	big = big_new(feed, &entry, fed);
	if (!big) {
		error_sys(&err, -ENOMEM, "unpacking");
		copy_entry_fail(&entry, false, &err, COPY_FEEDER);
		return false;
	}
	rc = big_make(big, fed->n_values, &err);
	if (rc) {
		copy_file_conclude(&big->file, rc, &err, COPY_FEEDER);
		free(big->values);
		copy_file_free(&big->file, COPY_FEEDER);
		return false;
	}
	big->hash = place->hash;
	feed_enter(feed, big->hash);
	feed->big = big;
	return true;
}

void feed_big_data(struct copy_feed *feed, const char *data, size_t size, uint64_t offset)
{
	struct feed_big *big = feed->big;
	struct error err = ERROR_INIT;
	int rc = copy_file_plan(&big->file, size, &err);

	if (rc) {
		big_fail(big, rc, &err);
		return;
	}
	while (size && !copy_stopped(feed->copy)) {
		struct feed_buffer *piece = feed->piece;
		size_t n;

		if (piece && (piece->offset + piece->used != offset ||
				     piece->used == FEED_BUFFER_SIZE)) {
			piece_send(feed);
			piece = NULL;
		}
		if (!piece) {
			piece = feed->piece = feed_buffer_new(feed);
			if (!piece) {
				error_sys(&err, -ENOMEM, "unpacking");
				big_fail(big, -ENOMEM, &err);
				return;
			}
			piece->big = big;
			piece->offset = offset;
		}
		n = FEED_BUFFER_SIZE - piece->used;
		if (n > size)
			n = size;
		memcpy(piece->data + piece->used, data, n);
		piece->used += n;
		data += n;
		size -= n;
		offset += n;
		if (offset > big->end)
			big->end = offset;
	}
}

void feed_big_end(struct copy_feed *feed, int64_t size, const struct error *failed)
{
	struct feed_big *big = feed->big;
	struct stat *st = &big->file.entry.st;

	if (failed)
		big_fail(big, failed->code, failed);
	piece_send(feed);
	if (size >= 0)
		st->st_size = size;
	else if (st->st_size < 0)
		st->st_size = (off_t)big->end;
	if (!failed && big->end > (uint64_t)st->st_size) {
		struct error err = ERROR_INIT;

		error_set(&err, -EBADMSG, "it has more bytes than its header says");
		big_fail(big, err.code, &err);
	}
	feed->big = NULL;
	big_release(big, COPY_FEEDER);
}
