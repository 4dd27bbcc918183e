#include "stage/stage_in.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Two names with one hash are both left, which is the safe side. */
static uint64_t key_of(uint64_t dir, const char *name)
{
	return XXH3_64bits_withSeed(name, strlen(name), dir);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void stage_in_replaced_add(struct stage_in_replaced *replaced, uint64_t dir, const char *name)
{
	if (replaced->count == replaced->room) {
		size_t room = replaced->room ? 2 * replaced->room : 64;
		uint64_t *keys = reallocarray(replaced->keys, room, sizeof(*keys));

		if (!keys) {
			replaced->all = true;
			return;
		}
		replaced->keys = keys;
		replaced->room = room;
	}
	replaced->keys[replaced->count++] = key_of(dir, name);
}

void stage_in_replaced_sort(struct stage_in_replaced *replaced)
{
	if (replaced->count)
		qsort(replaced->keys, replaced->count, sizeof(*replaced->keys), by_value);
}

bool stage_in_replaced_has(
	const struct stage_in_replaced *replaced, uint64_t dir, const char *name)
{
	uint64_t key = key_of(dir, name);

	return replaced->all || (replaced->count && bsearch(&key, replaced->keys, replaced->count,
							    sizeof(key), by_value));
}
