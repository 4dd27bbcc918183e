#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "copy/feed_internal.h"

struct feed_dir *feed_dir_find(const struct copy_feed *feed, const struct feed_dir *parent,
	const char *name, size_t length)
{
	uint64_t hash = parent ? feed_hash(parent->hash, name, length) : FEED_HASH_ROOT;
	struct feed_dir *dir = feed->n_buckets ? feed->buckets[hash % feed->n_buckets] : NULL;

	for (; dir; dir = dir->next)
		if (dir->hash == hash && dir->parent == parent &&
			!strncmp(dir->dir->name, name, length) && !dir->dir->name[length])
			return dir;
	return NULL;
}

/* Room for one more, in the list and in buckets. */
static int dirs_grow(struct copy_feed *feed)
{
	size_t room = feed->dirs_room ? 2 * feed->dirs_room : 64;
	struct feed_dir **dirs, **buckets;

	if (feed->n_dirs < feed->dirs_room)
		return 0;
	dirs = reallocarray(feed->dirs, room, sizeof(struct feed_dir *));
	if (!dirs)
		return -ENOMEM;
	feed->dirs = dirs;
	buckets = calloc(room, sizeof(struct feed_dir *));
	if (!buckets)
		return -ENOMEM;
	for (size_t i = 0; i < feed->n_dirs; i++) {
		struct feed_dir **bucket = &buckets[dirs[i]->hash % room];

		dirs[i]->next = *bucket;
		*bucket = dirs[i];
	}
	free(feed->buckets);
	feed->buckets = buckets;
	feed->n_buckets = feed->dirs_room = room;
	return 0;
}

/* What is at its name. always: also where this feed has made the directory that it is in. */
static bool dir_look(struct copy_feed *feed, const struct copy_dir *dir, bool always,
	struct stat *st)
{
	const struct copy *copy = feed->copy;

	if (!always && !copy->options.look)
		return false;
	if (!dir->parent)
		return !fstatat(copy->dstdir, copy->dstname[0] ? copy->dstname : ".", st,
			AT_SYMLINK_NOFOLLOW);
	return feed_look(dir->parent, dir->name, always, st);
}

/* What the caller wants of it. It is opened where it is there, so that what is in it can be looked at. */
static void dir_decide(struct copy_feed *feed, struct feed_dir *dir, bool always)
{
	struct copy_dir *own = dir->dir;
	enum copy_answer answer = COPY_SEND;
	struct error err = ERROR_INIT;
	struct copy_item item;
	struct copy_place place;
	struct stat st;
	bool have = dir_look(feed, own, always, &st);

	own->expect = feed->copy->options.expect;
	if (feed->hooks.decide) {
		copy_item_of(&item, &place, own->parent, own->name, &own->src, NULL);
		answer = feed->hooks.decide(
			feed->hooks.ctx, &item, have ? &st : NULL, &own->expect, &own->tag);
	}
	dir->left = answer == COPY_LEAVE;
	own->send = own->given && answer == COPY_SEND;
	if (have && !dir->left)
		copy_dir_make(own, COPY_FEEDER, &err);
}

static int dir_set_given(struct copy_feed *feed, struct feed_dir *dir, const struct copy_fed *fed)
{
	struct meta_value *values = feed_copy_values(fed->values, fed->n_values);

	if (!values)
		return -ENOMEM;
	meta_source_free(&dir->source);
	free(dir->values);
	dir->values = values;
	meta_given(feed->copy->meta, &fed->st, values, fed->n_values, &dir->source);
	dir->dir->src = fed->st;
	dir->dir->given = &dir->source;
	return 0;
}

static struct feed_dir *dir_new(struct copy_feed *feed, struct feed_dir *parent, const char *name,
	size_t length)
{
	struct feed_dir *dir = calloc(1, sizeof(*dir));
	autofree char *own_name = strndup(name, length);
	struct stat st;

	memset(&st, 0, sizeof(st));
	st.st_mode = S_IFDIR | (0777 & ~feed->umask);
	if (dir && own_name)
		dir->dir = copy_dir_new(feed->copy, parent ? parent->dir : NULL, own_name, &st);
	if (!dir || !dir->dir) {
		free(dir);
		return NULL;
	}
	dir->parent = parent;
	dir->hash = parent ? feed_hash(parent->hash, name, length) : FEED_HASH_ROOT;
	return dir;
}

struct feed_dir *feed_dir_get(struct copy_feed *feed, struct feed_dir *parent, const char *name,
	size_t length, const struct copy_fed *fed)
{
	struct feed_dir *dir = feed_dir_find(feed, parent, name, length), **bucket;

	if (dir || dirs_grow(feed))
		return dir;
	dir = dir_new(feed, parent, name, length);
	if (!dir)
		return NULL;
	bucket = &feed->buckets[dir->hash % feed->n_buckets];
	dir->next = *bucket;
	*bucket = dir;
	feed->dirs[feed->n_dirs++] = dir;
	if (fed && dir_set_given(feed, dir, fed))
		dir->left = true;
	else if (parent && parent->left)
		dir->left = true;
	else
		dir_decide(feed, dir, feed_set_has(&feed->seen, dir->hash));
	return dir;
}

int feed_dir_describe(struct copy_feed *feed, struct feed_dir *dir, const struct copy_fed *fed)
{
	feed_drain(feed); /* they may be reading what changes now */
	if (dir_set_given(feed, dir, fed))
		return -ENOMEM;
	/* One that was there, and of which the caller knows nothing, is somebody else's. */
	if (!dir->left && (dir->dir->made || dir->dir->expect.kind == COPY_EXPECT_ANY))
		dir_decide(feed, dir, true);
	return 0;
}

/* Each after what lies in it: that was met later. */
void feed_dirs_finish(struct copy_feed *feed)
{
	for (size_t i = feed->n_dirs; i--;) {
		struct feed_dir *dir = feed->dirs[i];
		struct error err = ERROR_INIT;

		if (dir->left)
			continue;
		if (dir->dir->send && !copy_stopped(feed->copy))
			copy_dir_make(dir->dir, COPY_FEEDER, &err);
		copy_dir_finish(dir->dir, COPY_FEEDER);
	}
}

void feed_dirs_free(struct copy_feed *feed)
{
	for (size_t i = feed->n_dirs; i--;) {
		struct feed_dir *dir = feed->dirs[i];

		copy_dir_unref(dir->dir);
		meta_source_free(&dir->source);
		free(dir->values);
		free(dir);
	}
	free(feed->dirs);
	free(feed->buckets);
}
