#include "tree/walk_ahead.h"

/* Entries that are listed and not through, for each worker: enough for the time that the next listing
 * takes. */
#define WALK_AHEAD 4

/* Before any directory was read. */
#define WALK_FIRST_GUESS 32

static bool walk_ahead_far(struct walk *walk, long listed)
{
	return listed > (long)WALK_AHEAD * pool_width(walk->pool);
}

static unsigned walk_ahead_mean(struct walk *walk)
{
	unsigned long reads = atomic_load_explicit(&walk->reads, memory_order_relaxed);
	unsigned long entries = atomic_load_explicit(&walk->entries, memory_order_relaxed);

	if (!entries)
		return WALK_FIRST_GUESS;
	return entries > reads && reads ? (unsigned)(entries / reads) : 1;
}

/* Its own share goes down again only after it waits, and walk_ahead_done looks for who waits after each
 * step down: so whoever comes last sees it. */
bool walk_ahead_wait(struct walk_dir *dir)
{
	struct walk *walk = dir->walk;
	unsigned expected;

	if (!walk->options.gather || !atomic_load(walk->options.gather))
		return false;
	expected = walk_ahead_mean(walk);
	if (!walk_ahead_far(walk, atomic_fetch_add(&walk->listed, expected))) {
		dir->expected = expected;
		return false;
	}
	pthread_mutex_lock(&walk->waiting_lock);
	dir->task.next = walk->waiting;
	walk->waiting = &dir->task;
	atomic_fetch_add(&walk->n_waiting, 1);
	pthread_mutex_unlock(&walk->waiting_lock);
	walk_ahead_done(walk, expected);
	return true;
}

void walk_ahead_read(struct walk_dir *dir, unsigned entries)
{
	struct walk *walk = dir->walk;

	if (!walk->options.gather)
		return;
	atomic_fetch_add(&walk->listed, (long)entries - (long)dir->expected);
	dir->expected = 0;
	atomic_fetch_add_explicit(&walk->reads, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&walk->entries, entries, memory_order_relaxed);
}

void walk_ahead_done(struct walk *walk, unsigned entries)
{
	struct pool_task *task;
	long listed;

	if (!walk->options.gather)
		return;
	listed = atomic_fetch_sub(&walk->listed, entries) - (long)entries;
	if (!atomic_load(&walk->n_waiting) || walk_ahead_far(walk, listed))
		return;
	pthread_mutex_lock(&walk->waiting_lock);
	task = walk->waiting;
	if (task) {
		walk->waiting = task->next;
		atomic_fetch_sub(&walk->n_waiting, 1);
	}
	pthread_mutex_unlock(&walk->waiting_lock);
	if (task)
		pool_push(walk->pool, task);
}
