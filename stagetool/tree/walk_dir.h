/*
 * Inside of the walk: what a directory of it consists of. For walk*.c only.
 */
#ifndef TREE_WALK_DIR_H
#define TREE_WALK_DIR_H

#include <pthread.h>

#include "tree/handle.h"
#include "tree/walk.h"

#define WALK_BUFFER_SIZE (32 * 1024)

struct walk_hand;

struct walk {
	struct pool *pool;
	const struct walk_ops *ops;
	void *ctx;
	struct walk_options options;
	struct handle_cache cache;
	uint64_t mount;                /* of the root */
	char *buffers[POOL_MAX_WIDTH]; /* for getdents64, of each worker, made at first use */
	struct walk_hand *hands[POOL_MAX_WIDTH]; /* what each worker is handing over */
	/* Of walk_ahead: */
	atomic_long listed;           /* entries that were read, or will be soon, and are not through */
	atomic_ulong reads, entries;  /* buffers so far, and what was in them */
	pthread_mutex_t waiting_lock; /* of waiting */
	struct pool_task *waiting;    /* directories that are to be opened or read on later */
	atomic_uint n_waiting;
};

struct walk_dir {
	struct pool_task task; /* opening it, then reading on */
	struct walk *walk;
	struct walk_dir *parent;
	struct handle handle;
	atomic_uint refs; /* its own reading, its children, who holds it */
	unsigned depth;
	unsigned expected; /* walk_ahead's */
	bool entered;
	void *data;
	char name[];
};

static inline bool walk_cancelled(const struct walk *walk)
{
	return walk->options.cancel &&
	       atomic_load_explicit(walk->options.cancel, memory_order_relaxed);
}

/* What worker is handing over from now on; NULL: nothing. */
void walk_at_hand(struct walk *walk, unsigned worker, struct walk_hand *hand);

/* A node that is not open yet, with one reference for its reading, which holds parent (may be
 * NULL). NULL on ENOMEM. */
struct walk_dir *walk_dir_new(struct walk *walk, struct walk_dir *parent, const char *name,
	void (*run)(struct pool_task *task, unsigned worker));

#endif
