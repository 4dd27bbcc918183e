#include "tree/walk_dir.h"

#include <stdlib.h>
#include <string.h>

struct walk_dir *walk_dir_new(struct walk *walk, struct walk_dir *parent, const char *name,
	void (*run)(struct pool_task *task, unsigned worker))
{
	size_t size = strlen(name) + 1;
	struct walk_dir *dir = malloc(sizeof(*dir) + size);

	if (!dir)
		return NULL;
	dir->task.run = run;
	dir->walk = walk;
	dir->parent = parent;
	atomic_init(&dir->refs, 1);
	dir->depth = parent ? parent->depth + 1 : 0;
	dir->expected = 0;
	dir->entered = false;
	dir->data = NULL;
	memcpy(dir->name, name, size);
	handle_init(&dir->handle, &walk->cache, parent ? &parent->handle : NULL, dir->name);
	if (parent)
		walk_dir_hold(parent);
	return dir;
}

void walk_at_hand(struct walk *walk, unsigned worker, struct walk_hand *hand)
{
	walk->hands[worker] = hand;
}

int walk_dir_pin(struct walk_dir *dir, struct error *err)
{
	return handle_pin(&dir->handle, err);
}

void walk_dir_unpin(struct walk_dir *dir)
{
	handle_unpin(&dir->handle);
}

void walk_dir_hold(struct walk_dir *dir)
{
	atomic_fetch_add_explicit(&dir->refs, 1, memory_order_relaxed);
}

/* A loop and not a recursion: the last leaf of a deep chain takes all that is above it along. */
void walk_dir_release(struct walk_dir *dir, unsigned worker)
{
	while (dir && atomic_fetch_sub_explicit(&dir->refs, 1, memory_order_acq_rel) == 1) {
		struct walk_dir *parent = dir->parent;

		if (dir->entered)
			dir->walk->ops->leave(dir->walk->ctx, dir, worker);
		handle_close(&dir->handle);
		free(dir);
		dir = parent;
	}
}

struct walk_dir *walk_dir_parent(const struct walk_dir *dir)
{
	return dir->parent;
}

const char *walk_dir_name(const struct walk_dir *dir)
{
	return dir->name;
}

unsigned walk_dir_depth(const struct walk_dir *dir)
{
	return dir->depth;
}

void walk_dir_set_data(struct walk_dir *dir, void *data)
{
	dir->data = data;
}

void *walk_dir_data(const struct walk_dir *dir)
{
	return dir->data;
}

char *walk_dir_path(const struct walk_dir *dir, const char *name)
{
	size_t size = name ? strlen(name) + 1 : 0;
	const struct walk_dir *d;
	char *path, *at;

	for (d = dir; d->parent; d = d->parent)
		size += strlen(d->name) + 1;
	path = malloc(size ? size : 1);
	if (!path)
		return NULL;
	path[size ? size - 1 : 0] = '\0';
	at = path + size;
	for (d = dir; name || d->parent;) {
		const char *part = name ? name : d->name;
		size_t length = strlen(part);

		at -= length + 1;
		memcpy(at, part, length);
		at[length] = at + length + 1 == path + size ? '\0' : '/';
		if (!name)
			d = d->parent;
		name = NULL;
	}
	return path;
}
