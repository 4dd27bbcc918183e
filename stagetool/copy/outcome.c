#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copy/internal.h"

_Static_assert(sizeof(struct copy_counts) == COPY_COUNTERS * sizeof(uint64_t),
	"the counters are those of struct copy_counts, in its order");

/* Only this worker writes: no locked instruction is needed. A negative sum of one worker is right,
 * as the sum over all is. */
void copy_count(struct copy *copy, enum copy_counter counter, long add, unsigned worker)
{
	atomic_ulong *count = &copy->workers[worker].counts[counter];

	atomic_store_explicit(count,
		atomic_load_explicit(count, memory_order_relaxed) + (unsigned long)add,
		memory_order_relaxed);
}

void copy_counts(const struct copy *copy, struct copy_counts *counts)
{
	uint64_t sums[COPY_COUNTERS] = { 0 };

	unsigned width = pool_width(copy->pool);

	for (unsigned i = 0; i <= width; i++)
		for (int c = 0; c < COPY_COUNTERS; c++)
			sums[c] += atomic_load_explicit(
				&copy->workers[i < width ? i : COPY_FEEDER].counts[c],
				memory_order_relaxed);
	memcpy(counts, sums, sizeof(*counts));
}

static enum copy_counter copy_counter_of(mode_t mode, enum copy_outcome outcome)
{
	switch (outcome) {
	case COPY_DONE:
		if (S_ISREG(mode))
			return COPY_COUNT_FILES;
		if (S_ISDIR(mode))
			return COPY_COUNT_DIRECTORIES;
		return S_ISLNK(mode) ? COPY_COUNT_SYMLINKS : COPY_COUNT_OTHERS;
	case COPY_UNCHANGED:
		return COPY_COUNT_UNCHANGED;
	case COPY_VANISHED:
		return COPY_COUNT_VANISHED;
	case COPY_CHANGED:
		return COPY_COUNT_CHANGED;
	case COPY_CONFLICT:
		return COPY_COUNT_CONFLICTS;
	case COPY_ATTRIBUTE:
		return COPY_COUNT_ATTRIBUTES;
	case COPY_DROPPED:
		return COPY_COUNT_DROPPED;
	case COPY_SPECIAL:
		return COPY_COUNT_SPECIAL;
	case COPY_FAILED:
		break;
	}
	return COPY_COUNT_FAILED;
}

void copy_item_of(struct copy_item *item, struct copy_place *place, const struct copy_dir *dir,
	const char *name, const struct stat *src, const struct copy_tag *tag)
{
	*place = (struct copy_place){ dir, name };
	*item = (struct copy_item){ name, dir && !dir->base ? &dir->tag : NULL, tag, src, place };
}

static void copy_call(struct copy *copy, const struct copy_dir *dir, const char *name,
	const struct stat *src, const struct copy_tag *tag, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err)
{
	struct copy_item item;
	struct copy_place place;

	if (!copy->hooks.outcome)
		return;
	copy_item_of(&item, &place, dir, name, src, tag);
	copy->hooks.outcome(copy->hooks.ctx, &item, outcome, dst, err);
}

void copy_entry_call(const struct copy_entry *entry, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err)
{
	copy_call(entry->copy, entry->dir, entry->dir->base ? "" : entry->src_name, &entry->st,
		NULL, outcome, dst, err);
}

void copy_entry_count(const struct copy_entry *entry, enum copy_outcome outcome, unsigned worker)
{
	copy_count(entry->copy, copy_counter_of(entry->st.st_mode, outcome), 1, worker);
}

void copy_entry_tell(const struct copy_entry *entry, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err, unsigned worker)
{
	copy_entry_count(entry, outcome, worker);
	copy_entry_call(entry, outcome, dst, err);
}

void copy_entry_fail(
	const struct copy_entry *entry, bool of_source, const struct error *err, unsigned worker)
{
	bool vanished = of_source && err->code == -ENOENT;

	if (err->code == -ECANCELED && copy_stopped(entry->copy))
		return;
	copy_entry_tell(entry, vanished ? COPY_VANISHED : COPY_FAILED, NULL, err, worker);
}

void copy_dir_tell(struct copy_dir *dir, enum copy_outcome outcome, const struct stat *dst,
	const struct error *err, unsigned worker)
{
	bool last = outcome != COPY_ATTRIBUTE && outcome != COPY_DROPPED;

	if (last ? atomic_exchange(&dir->told, true) : atomic_load(&dir->told))
		return;
	copy_count(dir->copy, copy_counter_of(S_IFDIR, outcome), 1, worker);
	copy_call(dir->copy, dir->parent, dir->name, &dir->src, &dir->tag, outcome, dst, err);
}

void copy_name_tell(struct copy *copy, struct copy_dir *dir, const char *name,
	enum copy_outcome outcome, const struct error *err, unsigned worker)
{
	struct stat st;

	memset(&st, 0, sizeof(st));
	copy_count(copy, copy_counter_of(0, outcome), 1, worker);
	copy_call(copy, dir, name, &st, NULL, outcome, NULL, err);
}

char *copy_item_path(const struct copy_item *item)
{
	const struct copy_place *place = item->place;
	const struct copy_dir *d;
	size_t size = strlen(place->name) + 1;
	char *path, *at;

	for (d = place->dir; d && d->parent; d = d->parent)
		size += strlen(d->name) + 1;
	path = malloc(size);
	if (!path)
		return NULL;
	at = path + size - strlen(place->name) - 1;
	memcpy(at, place->name, strlen(place->name) + 1);
	for (d = place->dir; d && d->parent; d = d->parent) {
		size_t length = strlen(d->name);

		*--at = '/';
		at -= length;
		memcpy(at, d->name, length);
	}
	return path;
}
