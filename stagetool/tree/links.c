#include "tree/links.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define LINKS_SHARDS 64
#define LINKS_BUCKETS 16 /* of a shard, at first */

struct links_shard {
	pthread_mutex_t lock;
	struct links_file **buckets;
	size_t n_buckets, count;
};

struct links {
	struct links_shard shards[LINKS_SHARDS];
};

static uint64_t links_hash(dev_t dev, ino_t ino)
{
	uint64_t hash = ((uint64_t)ino ^ ((uint64_t)dev << 32)) * 0x9e3779b97f4a7c15ull;

	return hash ^ (hash >> 29);
}

static struct links_shard *links_shard_of(struct links *links, dev_t dev, ino_t ino)
{
	return &links->shards[links_hash(dev, ino) % LINKS_SHARDS];
}

static struct links_file **links_bucket(struct links_shard *shard, dev_t dev, ino_t ino)
{
	return &shard->buckets[links_hash(dev, ino) / LINKS_SHARDS % shard->n_buckets];
}

struct links *links_new(void)
{
	struct links *links = calloc(1, sizeof(*links));

	for (int i = 0; links && i < LINKS_SHARDS; i++)
		pthread_mutex_init(&links->shards[i].lock, NULL);
	return links;
}

void links_free(struct links *links)
{
	for (int i = 0; links && i < LINKS_SHARDS; i++) {
		struct links_shard *shard = &links->shards[i];

		for (size_t b = 0; b < shard->n_buckets; b++) {
			while (shard->buckets[b]) {
				struct links_file *next = shard->buckets[b]->next;

				free(shard->buckets[b]);
				shard->buckets[b] = next;
			}
		}
		free(shard->buckets);
		pthread_mutex_destroy(&shard->lock);
	}
	free(links);
}

/* Makes room for one more. False: there is no memory, and not a single bucket. */
static bool links_make_room(struct links_shard *shard)
{
	size_t n_old = shard->n_buckets;
	struct links_file **old = shard->buckets, **new;

	if (shard->count < n_old)
		return true;
	new = calloc(n_old ? 2 * n_old : LINKS_BUCKETS, sizeof(struct links_file *));
	if (!new)
		return n_old > 0;
	shard->buckets = new;
	shard->n_buckets = n_old ? 2 * n_old : LINKS_BUCKETS;
	for (size_t b = 0; b < n_old; b++) {
		while (old[b]) {
			struct links_file *file = old[b];
			struct links_file **bucket = links_bucket(shard, file->dev, file->ino);

			old[b] = file->next;
			file->next = *bucket;
			*bucket = file;
		}
	}
	free(old);
	return true;
}

static struct links_file *links_find(struct links_shard *shard, dev_t dev, ino_t ino)
{
	struct links_file *file = shard->n_buckets ? *links_bucket(shard, dev, ino) : NULL;

	while (file && (file->ino != ino || file->dev != dev))
		file = file->next;
	return file;
}

static struct links_file *links_add(struct links_shard *shard, dev_t dev, ino_t ino)
{
	struct links_file *file, **bucket;

	if (!links_make_room(shard))
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->dev = dev;
	file->ino = ino;
	bucket = links_bucket(shard, dev, ino);
	file->next = *bucket;
	*bucket = file;
	shard->count++;
	return file;
}

struct links_file *links_lock(struct links *links, const struct stat *st, unsigned long add)
{
	struct links_shard *shard = links_shard_of(links, st->st_dev, st->st_ino);
	struct links_file *file;

	pthread_mutex_lock(&shard->lock);
	file = links_find(shard, st->st_dev, st->st_ino);
	if (!file)
		file = links_add(shard, st->st_dev, st->st_ino);
	if (!file) {
		pthread_mutex_unlock(&shard->lock);
		return NULL;
	}
	file->seen += add;
	if (st->st_nlink > file->names)
		file->names = st->st_nlink;
	return file;
}

static void links_remove(struct links_shard *shard, struct links_file *file)
{
	struct links_file **at = links_bucket(shard, file->dev, file->ino);

	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	shard->count--;
}

void links_unlock(struct links *links, struct links_file *file)
{
	struct links_shard *shard = links_shard_of(links, file->dev, file->ino);

	if (!file->data && file->seen >= file->names) {
		links_remove(shard, file);
		free(file);
	}
	pthread_mutex_unlock(&shard->lock);
}

bool links_first(struct links *links, const struct stat *st)
{
	struct links_file *file;
	bool first;

	if (st->st_nlink < 2)
		return true;
	file = links_lock(links, st, 1);
	if (!file)
		return true;
	first = file->seen == 1;
	links_unlock(links, file);
	return first;
}

struct links_file *links_take(struct links *links)
{
	for (int i = 0; i < LINKS_SHARDS; i++) {
		struct links_shard *shard = &links->shards[i];

		for (size_t b = 0; b < shard->n_buckets; b++) {
			for (struct links_file *file = shard->buckets[b]; file; file = file->next) {
				if (!file->data)
					continue;
				links_remove(shard, file);
				return file;
			}
		}
	}
	return NULL;
}
