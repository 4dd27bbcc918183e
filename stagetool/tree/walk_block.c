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

/* What one worker is about to hand over; in its own hands alone. */
struct walk_hand {
	struct walk_block *block;
	unsigned begin, end, slices;
};

/* The same, on its way to another one. */
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
 * should be able to take the rest. The first entries come alone: they may be large. */
static unsigned walk_slice(const struct walk *walk, const struct walk_hand *hand)
{
	unsigned left = hand->end - hand->begin, slice = 16;

	if (walk->options.batch)
		slice = walk->options.batch;
	else if (pool_width(walk->pool) > 8 || hand->slices < 2)
		slice = 1;
	return slice < left ? slice : left;
}

static void walk_range_run(struct pool_task *task, unsigned worker);

/* Gives the upper half of what is left to those who have nothing to do; all if it is but one. Without
 * memory it stays here. */
static void walk_split(struct walk *walk, struct walk_hand *hand)
{
	struct walk_range *range = malloc(sizeof(*range));

	if (!range)
		return;
	range->task.run = walk_range_run;
	range->block = hand->block;
	range->begin = hand->begin + (hand->end - hand->begin) / 2;
	range->end = hand->end;
	atomic_fetch_add_explicit(&hand->block->refs, 1, memory_order_relaxed);
	hand->end = range->begin;
	pool_push(walk->pool, &range->task);
}

bool walk_share(struct walk_dir *dir, unsigned worker)
{
	struct walk *walk = dir->walk;
	struct walk_hand *hand = walk->hands[worker];

	if (!hand || hand->begin == hand->end)
		return false;
	walk_split(walk, hand);
	return true;
}

static void walk_hand_entries(struct walk *walk, struct walk_hand *hand, unsigned worker)
{
	struct walk_block *block = hand->block;

	while (hand->begin < hand->end && !walk_cancelled(walk)) {
		const struct walk_entry *entries = block->entries + hand->begin;
		unsigned count;

		if (hand->end - hand->begin > 1 && pool_idle(walk->pool))
			walk_split(walk, hand);
		count = walk_slice(walk, hand);
		hand->begin += count;
		hand->slices++;
		walk->ops->entries(walk->ctx, block->dir, entries, count, worker);
		walk_ahead_done(walk, count);
	}
}

static void walk_hand_over(struct walk_hand *hand, unsigned worker)
{
	struct walk_dir *dir = hand->block->dir;
	struct walk *walk = dir->walk;
	/* Once for all: a callback that pins it as well does so without a lock. */
	bool pinned = walk_dir_pin(dir, NULL) >= 0;

	walk_at_hand(walk, worker, hand);
	walk_hand_entries(walk, hand, worker);
	walk_at_hand(walk, worker, NULL);
	if (pinned)
		walk_dir_unpin(dir);
	walk_block_release(hand->block, worker);
	walk_ahead_done(walk, hand->end - hand->begin);
}

static void walk_range_run(struct pool_task *task, unsigned worker)
{
	struct walk_range *range = (struct walk_range *)task;
	struct walk_hand hand = { .block = range->block, .begin = range->begin, .end = range->end };

	free(range);
	walk_hand_over(&hand, worker);
}

void walk_block_run(struct walk_block *block, unsigned worker)
{
	struct walk_hand hand = { .block = block, .end = block->count };

	walk_hand_over(&hand, worker);
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
