/*
 * The one pool of threads: tasks on a shared stack, newest first.
 *
 * Newest first keeps a tree walk depth-first, so that what waits stays small whatever the tree's
 * size. A task may add tasks. Adding never blocks (a worker that waited for room could wait for
 * itself); memory is bounded by who adds: a walk adds one buffer of a directory and then its own
 * continuation.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct pool;

/* A unit of work. Embed it first in a structure of your own. run gets it back and owns it from then
 * on; worker is from 0 to the width - 1 and stays the same on one thread. */
struct pool_task {
	void (*run)(struct pool_task *task, unsigned worker);
	struct pool_task *next; /* the pool's */
};

/* Starts width threads (1 to POOL_MAX_WIDTH), with signals blocked in all of them and small stacks
 * (256 KiB). Tasks that are to stop early look at their own flag, and free what they own. -EAGAIN
 * where threads can not be had: fewer than width but at least one is not an error. */
#define POOL_MAX_WIDTH 512
int pool_start(unsigned width, struct pool **pool, struct error *err);

/* Adds threads until width run, as far as they can be had; never takes any away. Any thread. */
void pool_grow(struct pool *pool, unsigned width);

/* How many threads run. Any thread. */
unsigned pool_width(const struct pool *pool);

/* Adds a task on top, or below all that wait (a continuation that others should pass). Takes task.
 * Any thread. */
void pool_push(struct pool *pool, struct pool_task *task);
void pool_push_bottom(struct pool *pool, struct pool_task *task);

/* Number of threads for which no task waits right now; a hint for how finely to split. Any thread.
 */
unsigned pool_idle(const struct pool *pool);

/* Returns when no task waits or runs. Not for a worker. */
void pool_wait(struct pool *pool);

/* Waits, ends the threads and frees. NULL is fine. */
void pool_free(struct pool *pool);

#endif
