#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/retry.h"
#include "copy/feed_internal.h"

void feed_entry_init(struct copy_feed *feed, struct copy_entry *entry,
	const struct feed_place *place, const struct copy_fed *fed, const char *name)
{
	memset(entry, 0, sizeof(*entry));
	entry->copy = feed->copy;
	entry->dir = place->dir->dir;
	entry->src_name = entry->dst_name = name;
	entry->st = fed->st;
	entry->expect = feed->copy->options.expect;
}

struct feed_item *feed_item_new(struct copy_feed *feed, enum feed_kind kind,
	const struct feed_place *place, const struct copy_fed *fed)
{
	struct feed_buffer *batch;
	struct feed_item *item;
	void *values;
	char *name;

	if (!feed->batch)
		feed->batch = feed_buffer_new(feed);
	batch = feed->batch;
	if (!batch)
		return NULL;
	item = feed_buffer_alloc(batch, sizeof(*item));
	name = feed_buffer_string(batch, place->name);
	values = feed_buffer_alloc(batch, feed_values_size(fed->values, fed->n_values));
	if (!item || !name || !values)
		return NULL;
	memset(item, 0, sizeof(*item));
	item->kind = kind;
	item->again = place->again;
	item->hash = place->hash;
	item->values = feed_values_put(values, fed->values, fed->n_values);
	item->n_values = fed->n_values;
	feed_entry_init(feed, &item->entry, place, fed, name);
	if (fed->target) {
		item->target = feed_buffer_string(batch, fed->target);
		if (!item->target)
			return NULL;
	}
	if (batch->last)
		batch->last->next = item;
	else
		batch->first = item;
	batch->last = item;
	batch->count++;
	feed_enter(feed, item->hash);
	return item;
}

void feed_item_link(struct copy_feed *feed, struct feed_item *item, struct copy_dir *dir,
	const char *name)
{
	struct error err = ERROR_INIT;

	item->olddir = dir;
	item->target = feed_buffer_string(feed->batch, name);
	if (!item->target) {
		error_sys(&err, -ENOMEM, "unpacking");
		copy_stop(feed->copy, &err);
	}
}

/* Tries once to bring a small file to its end. */
static int small_try(struct copy_file *file, const struct feed_item *item, struct error *err,
	unsigned worker)
{
	uint64_t end = 0;
	int rc = 0;

	if (copy_stopped(file->copy))
		return error_sys(err, -ECANCELED, "stopped");
	for (const struct feed_extent *extent = item->extents; extent && !rc; extent = extent->next)
		rc = copy_file_plan(file, extent->size, err);
	if (rc)
		return rc;
	meta_given(file->copy->meta, &file->entry.st, item->values, item->n_values, &file->source);
	file->have_source = true;
	rc = copy_file_make(file, err, worker);
	for (const struct feed_extent *extent = item->extents; extent && !rc;
		extent = extent->next) {
		rc = copy_file_write(file, extent->data, extent->size, extent->offset, err);
		end = extent->offset + extent->size;
		if (rc)
			break;
		file->sent += extent->size;
		copy_count(file->copy, COPY_COUNT_BYTES, (long)extent->size, worker);
	}
	if (!rc && end < (uint64_t)file->entry.st.st_size &&
		ftruncate(file->dst, file->entry.st.st_size))
		rc = error_errno(err, "set its size");
	return rc ? rc : copy_file_finish(file, err, worker);
}

static void small_run(struct copy_feed *feed, struct feed_item *item, unsigned worker)
{
	struct copy_file file;
	struct error err = ERROR_INIT;
	bool again = false;
	int rc;

	copy_file_init(&file, &item->entry);
	if (item->failed) {
		copy_file_conclude(&file, item->failed->code, item->failed, worker);
		return;
	}
	if (!feed_wanted(feed, &item->entry, item->hash, item->again, NULL, worker))
		return;
	file.entry.expect = item->entry.expect;
	do {
		rc = small_try(&file, item, &err, worker);
		if ((rc == -ENOSPC || rc == -EDQUOT) && file.created)
			copy_no_space(feed->copy, file.dirfd, false, &err);
		copy_file_undo(&file, worker);
		again = rc && !copy_stopped(feed->copy) && retry_again(rc, &file.attempt);
	} while (again);
	if (rc)
		copy_file_conclude(&file, rc, &err, worker);
}

static void other_run(struct copy_feed *feed, struct feed_item *item, unsigned worker)
{
	struct meta_source source;

	if (!feed_wanted(feed, &item->entry, item->hash, item->again, NULL, worker))
		return;
	meta_given(feed->copy->meta, &item->entry.st, item->values, item->n_values, &source);
	copy_other_given(&item->entry, &source, item->target, worker);
	meta_source_free(&source);
}

static void item_run(struct copy_feed *feed, struct feed_item *item, unsigned worker)
{
	struct error err = ERROR_INIT;

	if (copy_stopped(feed->copy))
		return;
	copy_width_count(feed->copy, worker);
	switch (item->kind) {
	case FEED_FILE:
		small_run(feed, item, worker);
		break;
	case FEED_OTHER:
		other_run(feed, item, worker);
		break;
	case FEED_DIRECTORY:
		copy_dir_make(item->olddir, worker, &err); /* told by itself */
		break;
	case FEED_LINK:
		feed_link_run(feed, &item->entry, item->hash, item->again, item->olddir,
			item->target, worker);
		break;
	}
}

static void batch_run(struct pool_task *task, unsigned worker)
{
	struct feed_buffer *batch = (struct feed_buffer *)task;
	struct copy_feed *feed = batch->feed;

	copy_worker_get(feed->copy, worker);
	for (struct feed_item *item = batch->first; item; item = item->next) {
		item_run(feed, item, worker);
		feed_leave(feed, item->hash);
	}
	feed_buffer_put_back(batch);
}

void feed_flush(struct copy_feed *feed)
{
	struct feed_buffer *batch = feed->batch;

	feed->batch = NULL;
	if (!batch)
		return;
	batch->task.run = batch_run;
	/* The oldest first: so what is waited for comes soon. */
	pool_push_bottom(feed->copy->pool, &batch->task);
}

void feed_item_done(struct copy_feed *feed)
{
	const struct feed_buffer *batch = feed->batch;

	feed->small = NULL;
	if (batch->more || batch->count >= FEED_BATCH ||
		batch->used + FEED_SMALL_SIZE + sizeof(struct feed_item) > FEED_BUFFER_SIZE ||
		(batch->count >= 4 && pool_idle(feed->copy->pool)))
		feed_flush(feed);
}

bool copy_feed_file(struct copy_feed *feed, const struct copy_fed *fed)
{
	bool small = fed->st.st_size >= 0 && fed->st.st_size <= (off_t)FEED_SMALL_SIZE &&
		     feed_values_size(fed->values, fed->n_values) <= FEED_SMALL_SIZE;
	struct error err = ERROR_INIT;
	struct feed_place place;
	bool takes = false;

	if (feed_place(feed, fed->path, false, &place, &err) < 0) {
		copy_feed_fail(feed, fed, &err);
	} else if (place.dir->left) {
		feed_note_failed(feed, place.hash);
	} else if (feed_set_add(&feed->seen, place.hash)) {
		error_sys(&err, -ENOMEM, "unpacking");
		copy_feed_fail(feed, fed, &err);
	} else if (!small) {
		takes = feed_big_begin(feed, &place, fed);
	} else {
		feed->small = feed_item_new(feed, FEED_FILE, &place, fed);
		takes = feed->small;
		if (!takes) {
			error_sys(&err, -ENOMEM, "unpacking");
			copy_feed_fail(feed, fed, &err);
		}
	}
	feed_place_free(&place);
	return takes;
}

static void item_fail(struct copy_feed *feed, struct feed_item *item, const struct error *err)
{
	if (item->failed)
		return;
	item->failed = feed_buffer_alloc(feed->batch, sizeof(*item->failed));
	if (item->failed)
		*item->failed = *err;
	else
		copy_stop(feed->copy, err); /* half of it must not pass for the whole */
}

/* More of the same stretch goes behind what is there, where that is the buffer's last. */
static char *small_room(struct copy_feed *feed, struct feed_item *item, size_t size,
	uint64_t offset)
{
	struct feed_buffer *batch = feed->batch;
	struct feed_extent *last = item->last, *extent;

	if (last && last->offset + last->size == offset &&
		last->data + last->size == batch->data + batch->used &&
		size <= FEED_BUFFER_SIZE - batch->used) {
		batch->used += size;
		last->size += size;
		return last->data + last->size - size;
	}
	extent = feed_buffer_alloc(batch, sizeof(*extent));
	if (!extent)
		return NULL;
	*extent = (struct feed_extent){ .offset = offset, .size = size };
	extent->data = feed_buffer_alloc(batch, size);
	if (last)
		last->next = extent;
	else
		item->extents = extent;
	item->last = extent;
	return extent->data;
}

static void small_data(struct copy_feed *feed, const void *data, size_t size, uint64_t offset)
{
	struct feed_item *item = feed->small;
	struct error err = ERROR_INIT;
	char *room;

	if (item->failed)
		return;
	if (offset + size > (uint64_t)item->entry.st.st_size) {
		error_set(&err, -EBADMSG, "it has more bytes than its header says");
		item_fail(feed, item, &err);
		return;
	}
	room = small_room(feed, item, size, offset);
	if (room) {
		memcpy(room, data, size);
		return;
	}
	error_sys(&err, -ENOMEM, "unpacking");
	item_fail(feed, item, &err);
}

void copy_feed_data(struct copy_feed *feed, const void *data, size_t size, uint64_t offset)
{
	if (!size)
		return;
	if (feed->big)
		feed_big_data(feed, data, size, offset);
	else
		small_data(feed, data, size, offset);
}

void copy_feed_end(struct copy_feed *feed, int64_t size, const struct error *failed)
{
	if (feed->big) {
		feed_big_end(feed, size, failed);
		return;
	}
	if (failed)
		item_fail(feed, feed->small, failed);
	feed_item_done(feed);
}
