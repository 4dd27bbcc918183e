#include "stage/manifest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static unsigned slot_of(const struct manifest_buffer *buffer, const struct manifest_key *key)
{
	unsigned slot = (unsigned)XXH3_64bits(key->bytes, key->size) % MANIFEST_BUFFER_SLOTS;

	for (; buffer->slots[slot]; slot = (slot + 1) % MANIFEST_BUFFER_SLOTS) {
		const struct manifest_buffered *item = &buffer->items[buffer->slots[slot] - 1];

		if (item->key_size == key->size &&
			memcmp(buffer->arena + item->key_at, key->bytes, key->size) == 0)
			break;
	}
	return slot;
}

static int reserve(struct manifest_buffer *buffer, size_t bytes)
{
	size_t room = buffer->room ? buffer->room : 64 * 1024;
	unsigned char *arena;

	while (room < buffer->used + bytes)
		room *= 2;
	if (room == buffer->room)
		return 0;
	arena = realloc(buffer->arena, room);
	if (!arena)
		return -ENOMEM;
	buffer->arena = arena;
	buffer->room = room;
	return 0;
}

static size_t append(struct manifest_buffer *buffer, const void *bytes, size_t size)
{
	size_t at = buffer->used;

	if (size)
		memcpy(buffer->arena + at, bytes, size);
	buffer->used += size;
	return at;
}

int manifest_buffer_put(struct manifest_buffer *buffer, const struct manifest_key *key,
	const void *value, size_t value_size)
{
	struct manifest_buffered *item;
	unsigned slot;

	if (reserve(buffer, key->size + value_size) < 0)
		return -ENOMEM;
	slot = slot_of(buffer, key);
	if (buffer->slots[slot]) {
		item = &buffer->items[buffer->slots[slot] - 1];
	} else {
		item = &buffer->items[buffer->count++];
		buffer->slots[slot] = (uint16_t)buffer->count;
		item->key_at = append(buffer, key->bytes, key->size);
		item->key_size = key->size;
	}
	item->deleted = !value;
	item->value_size = value_size;
	item->value_at = append(buffer, value, value_size);
	return 0;
}

const struct manifest_buffered *manifest_buffer_find(
	const struct manifest_buffer *buffer, const struct manifest_key *key)
{
	unsigned slot;

	if (!buffer->count)
		return NULL;
	slot = slot_of(buffer, key);
	return buffer->slots[slot] ? &buffer->items[buffer->slots[slot] - 1] : NULL;
}

static int by_key(const void *left, const void *right, void *ctx)
{
	const struct manifest_buffer *buffer = ctx;
	const struct manifest_buffered *a = &buffer->items[*(const uint16_t *)left];
	const struct manifest_buffered *b = &buffer->items[*(const uint16_t *)right];
	size_t common = a->key_size < b->key_size ? a->key_size : b->key_size;
	int order = memcmp(buffer->arena + a->key_at, buffer->arena + b->key_at, common);

	return order ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

void manifest_buffer_sort(
	const struct manifest_buffer *buffer, uint16_t order[MANIFEST_BUFFER_ITEMS])
{
	for (unsigned i = 0; i < buffer->count; i++)
		order[i] = (uint16_t)i;
	qsort_r(order, buffer->count, sizeof(*order), by_key, (void *)(uintptr_t)buffer);
}

void manifest_buffer_clear(struct manifest_buffer *buffer)
{
	memset(buffer->slots, 0, sizeof(buffer->slots));
	buffer->count = 0;
	buffer->used = 0;
}
