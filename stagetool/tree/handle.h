/*
 * Open directories by the hundred thousand, with a bounded number of file descriptors.
 *
 * A handle is one directory of a tree: its fd, or how to get it again. Handles that nobody uses at
 * the moment are closed, oldest first, when more than the budget are open; using one again opens it
 * through its parent, never through a symlink, and proves by device and inode that it is the same
 * directory.
 */
#ifndef TREE_HANDLE_H
#define TREE_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

struct handle;

struct handle_cache {
	pthread_mutex_t lock;
	struct handle *oldest, *newest; /* open and unused */
	unsigned open, budget;
};

struct handle {
	struct handle_cache *cache;
	struct handle *parent; /* borrowed; NULL: of the root, whose fd stays open */
	const char *name;      /* in parent, borrowed */
	dev_t dev;
	ino_t ino;
	int fd;
	atomic_uint pins;
	struct handle *older, *newer;
};

/* The number of file descriptors that this process may have, after raising the soft limit as far as
 * it goes. */
unsigned handle_limit(void);

void handle_cache_init(struct handle_cache *cache, unsigned budget);
void handle_cache_destroy(struct handle_cache *cache);

/* Closes the oldest unused handles, half of them. For when EMFILE was seen. Whether any was closed.
 */
bool handle_cache_relieve(struct handle_cache *cache);

/* Whether so many are open that new long-lived pins should be avoided. */
bool handle_cache_tight(struct handle_cache *cache);

/* A handle that is closed and whose directory is not known yet. parent and name are borrowed and
 * must live as long. */
void handle_init(
	struct handle *handle, struct handle_cache *cache, struct handle *parent, const char *name);

/* Gives it the directory, just opened as fd (taken), and pins it. fd -1: known, but not open nor
 * pinned. Before any other thread knows of handle. */
void handle_adopt(struct handle *handle, int fd, dev_t dev, ino_t ino);

/* The open fd, valid until handle_unpin. Negative errno (-ESTALE: another directory has its name
 * now) on failure. Any thread. */
int handle_pin(struct handle *handle, struct error *err);
void handle_unpin(struct handle *handle);

/* Closes what is open. Nobody may use it or its children any more. */
void handle_close(struct handle *handle);

/* Opens name below dirfd as a directory, never through a symlink, and gives back its stat. Where
 * fds have run out, relieves cache and tries again for a while. Negative errno without text on
 * failure. */
int handle_open(struct handle_cache *cache, int dirfd, const char *name, struct stat *st);

#endif
