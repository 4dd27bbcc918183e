#include <errno.h>
#include <stdlib.h>

#include "copy/feed_internal.h"

uint64_t feed_hash(uint64_t hash, const char *name, size_t length)
{
	const uint64_t prime = 0x100000001b3ull;

	hash = (hash ^ '/') * prime;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * prime;
	return hash;
}

/* The slot of hash, or the free one where it would be. 0 means free. */
static size_t set_slot(const struct feed_set *set, uint64_t hash)
{
	size_t slot = (hash ^ hash >> 32) & (set->room - 1);

	while (set->hashes[slot] && set->hashes[slot] != hash)
		slot = (slot + 1) & (set->room - 1);
	return slot;
}

bool feed_set_has(const struct feed_set *set, uint64_t hash)
{
	hash |= !hash;
	return set->room && set->hashes[set_slot(set, hash)] == hash;
}

static int set_grow(struct feed_set *set)
{
	struct feed_set grown = { .count = set->count, .room = set->room ? 2 * set->room : 1024 };

	grown.hashes = calloc(grown.room, sizeof(*grown.hashes));
	if (!grown.hashes)
		return -ENOMEM;
	for (size_t i = 0; i < set->room; i++)
		if (set->hashes[i])
			grown.hashes[set_slot(&grown, set->hashes[i])] = set->hashes[i];
	free(set->hashes);
	*set = grown;
	return 0;
}

int feed_set_add(struct feed_set *set, uint64_t hash)
{
	size_t slot;

	hash |= !hash;
	if (set->count >= set->room / 4 * 3 && set_grow(set))
		return -ENOMEM;
	slot = set_slot(set, hash);
	set->count += !set->hashes[slot];
	set->hashes[slot] = hash;
	return 0;
}
