#include "tree/walk_block.h"

#include "tree/walk_ahead.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct walk_block {
	struct walk_dir *dir;
	atomic_uint refs;
	unsigned count;
	struct walk_entry entries[];
};

struct walk_range {
	struct pool_task task;
	struct walk_block *block;
	unsigned begin, end;
};

static void walk_block_release(struct walk_block *block, unsigned worker)
{
	if (atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) != 1)
		return;
	walk_dir_release(block->dir, worker);
	free(block);
}

/* Slices: the more threads there are, the slower an entry is likely to be, and the sooner somebody
 * should be able to take the rest. */
static unsigned walk_slice(const struct walk *walk)
{
	if (walk->options.batch)
		return walk->options.batch;
	return pool_width(walk->pool) > 8 ? 1 : 16;
}

static void walk_range_run(struct pool_task *task, unsigned worker);

/* Gives the upper half of a range to those who have nothing to do. Without memory it stays here. */
static unsigned walk_split(
	struct walk *walk, struct walk_block *block, unsigned begin, unsigned end)
{
	struct walk_range *range = malloc(sizeof(*range));

	if (!range)
		return end;
	range->task.run = walk_range_run;
	range->block = block;
	range->begin = begin + (end - begin) / 2;
	range->end = end;
	atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
	end = range->begin;
	pool_push(walk->pool, &range->task);
	return end;
}

static void walk_hand_over(struct walk_block *block, unsigned begin, unsigned end, unsigned worker)
{
	struct walk_dir *dir = block->dir;
	struct walk *walk = dir->walk;
	/* Once for all: a callback that pins it as well does so without a lock. */
	bool pinned = walk_dir_pin(dir, NULL) >= 0;

	while (begin < end && !walk_cancelled(walk)) {
		unsigned count = walk_slice(walk);

		if (end - begin > 1 && pool_idle(walk->pool))
			end = walk_split(walk, block, begin, end);
		if (count > end - begin)
			count = end - begin;
		walk->ops->entries(walk->ctx, dir, block->entries + begin, count, worker);
		begin += count;
		walk_ahead_done(walk, count);
	}
	if (pinned)
		walk_dir_unpin(dir);
	walk_block_release(block, worker);
	walk_ahead_done(walk, end - begin);
}

static void walk_range_run(struct pool_task *task, unsigned worker)
{
	struct walk_range *range = (struct walk_range *)task;
	struct walk_block *block = range->block;
	unsigned begin = range->begin, end = range->end;

	free(range);
	walk_hand_over(block, begin, end, worker);
}

void walk_block_run(struct walk_block *block, unsigned worker)
{
	walk_hand_over(block, 0, block->count, worker);
}

static bool walk_takes(const struct walk_record *record)
{
	return record->d_name[0] && record->d_type != DT_DIR;
}

int walk_block_new(struct walk_dir *dir, const char *buffer, size_t size, struct walk_block **block)
{
	size_t count = 0, bytes = 0;
	const struct walk_record *record;
	struct walk_block *b;
	char *names;

	*block = NULL;
	for (size_t at = 0; at < size; at += record->d_reclen) {
		record = (const struct walk_record *)(const void *)(buffer + at);
		if (walk_takes(record)) {
			count++;
			bytes += strlen(record->d_name) + 1;
		}
	}
	if (!count)
		return 0;
	b = malloc(sizeof(*b) + count * sizeof(b->entries[0]) + bytes);
	if (!b)
		return -ENOMEM;
	b->dir = dir;
	b->count = 0;
	atomic_init(&b->refs, 1);
	names = (char *)(b->entries + count);
	for (size_t at = 0; at < size; at += record->d_reclen) {
		size_t length;

		record = (const struct walk_record *)(const void *)(buffer + at);
		if (!walk_takes(record))
			continue;
		length = strlen(record->d_name) + 1;
		memcpy(names, record->d_name, length);
		b->entries[b->count++] =
			(struct walk_entry){ names, record->d_ino, record->d_type };
		names += length;
	}
	walk_dir_hold(dir);
	walk_ahead_read(dir, b->count);
	*block = b;
	return 0;
}
