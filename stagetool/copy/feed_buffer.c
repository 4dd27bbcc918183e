#include <stdlib.h>
#include <string.h>

#include "copy/feed_internal.h"

/* Buffers beside two for each worker. */
#define FEED_BUFFERS 32

struct feed_more {
	struct feed_more *next;
	char data[] __attribute__((aligned(16)));
};

struct feed_buffer *feed_buffer_new(struct copy_feed *feed)
{
	unsigned most = FEED_BUFFERS + 2 * pool_width(feed->copy->pool);
	struct feed_buffer *buffer = NULL;

	pthread_mutex_lock(&feed->lock);
	atomic_store(&feed->waiting, true);
	while (!feed->spare && feed->n_buffers >= most)
		pthread_cond_wait(&feed->change, &feed->lock);
	atomic_store(&feed->waiting, false);
	if (feed->spare) {
		buffer = feed->spare;
		feed->spare = buffer->next;
	} else {
		feed->n_buffers++;
	}
	pthread_mutex_unlock(&feed->lock);
	if (!buffer)
		buffer = malloc(sizeof(*buffer) + FEED_BUFFER_SIZE);
	if (buffer)
		memset(buffer, 0, sizeof(*buffer));
	else {
		pthread_mutex_lock(&feed->lock);
		feed->n_buffers--;
		pthread_mutex_unlock(&feed->lock);
		return NULL;
	}
	buffer->feed = feed;
	return buffer;
}

void feed_buffer_put_back(struct feed_buffer *buffer)
{
	struct copy_feed *feed = buffer->feed;

	while (buffer->more) {
		struct feed_more *more = buffer->more;

		buffer->more = more->next;
		free(more);
	}
	pthread_mutex_lock(&feed->lock);
	buffer->next = feed->spare;
	feed->spare = buffer;
	pthread_cond_broadcast(&feed->change);
	pthread_mutex_unlock(&feed->lock);
}

void feed_buffers_free(struct copy_feed *feed)
{
	while (feed->spare) {
		struct feed_buffer *buffer = feed->spare;

		feed->spare = buffer->next;
		free(buffer);
	}
}

void *feed_buffer_alloc(struct feed_buffer *buffer, size_t size)
{
	size_t used = (buffer->used + 15) & ~(size_t)15;
	struct feed_more *more;

	if (size <= FEED_BUFFER_SIZE && used <= FEED_BUFFER_SIZE - size) {
		buffer->used = used + size;
		return buffer->data + used;
	}
	more = malloc(sizeof(*more) + size);
	if (!more)
		return NULL;
	more->next = buffer->more;
	buffer->more = more;
	return more->data;
}

size_t feed_values_size(const struct meta_value *values, size_t n)
{
	size_t size = n * sizeof(*values);

	for (size_t i = 0; i < n; i++)
		size += strlen(values[i].name) + 1 + values[i].size;
	return size;
}

struct meta_value *feed_values_put(void *memory, const struct meta_value *values, size_t n)
{
	struct meta_value *own = memory;
	char *at = (char *)(own + n);

	for (size_t i = 0; i < n; i++) {
		own[i] = (struct meta_value){ at, NULL, values[i].size };
		at = stpcpy(at, values[i].name) + 1;
		own[i].value = at;
		if (values[i].size)
			memcpy(at, values[i].value, values[i].size);
		at += values[i].size;
	}
	return own;
}

struct meta_value *feed_copy_values(const struct meta_value *values, size_t n)
{
	void *memory = malloc(feed_values_size(values, n) + 1);

	return memory ? feed_values_put(memory, values, n) : NULL;
}

char *feed_buffer_string(struct feed_buffer *buffer, const char *text)
{
	size_t size = strlen(text) + 1;
	char *own = feed_buffer_alloc(buffer, size);

	return own ? memcpy(own, text, size) : NULL;
}
