#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define POOL_STACK_SIZE (256 * 1024)

struct pool_worker {
	struct pool *pool;
	pthread_t thread;
	unsigned index;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work;  /* a task was added, or the end has come */
	pthread_cond_t quiet; /* no task waits or runs */
	struct pool_task *top, *bottom;
	unsigned queued, waiting, running;
	bool ending;
	atomic_uint width, idle;
	struct pool_worker workers[POOL_MAX_WIDTH];
};

/* A thread that was woken counts as waiting until it has the lock, and its task as queued: the
 * difference is right at any moment. */
static void pool_count_idle(struct pool *pool)
{
	unsigned idle = pool->waiting > pool->queued ? pool->waiting - pool->queued : 0;

	atomic_store_explicit(&pool->idle, idle, memory_order_relaxed);
}

static struct pool_task *pool_take(struct pool *pool)
{
	struct pool_task *task = pool->top;

	pool->top = task->next;
	if (!pool->top)
		pool->bottom = NULL;
	pool->queued--;
	pool->running++;
	pool_count_idle(pool);
	return task;
}

static void *pool_work(void *arg)
{
	struct pool_worker *worker = arg;
	struct pool *pool = worker->pool;

	pthread_mutex_lock(&pool->lock);
	while (true) {
		struct pool_task *task;

		while (!pool->top && !pool->ending) {
			pool->waiting++;
			pool_count_idle(pool);
			pthread_cond_wait(&pool->work, &pool->lock);
			pool->waiting--;
			pool_count_idle(pool);
		}
		if (!pool->top)
			break;
		task = pool_take(pool);
		pthread_mutex_unlock(&pool->lock);
		task->run(task, worker->index);
		pthread_mutex_lock(&pool->lock);
		if (--pool->running == 0 && !pool->top)
			pthread_cond_broadcast(&pool->quiet);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Adds one thread. Called with the lock held. Returns a positive errno. */
static int pool_add_thread(struct pool *pool)
{
	unsigned index = atomic_load_explicit(&pool->width, memory_order_relaxed);
	struct pool_worker *worker = &pool->workers[index];
	sigset_t all, before;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return rc;
	worker->pool = pool;
	worker->index = index;
	pthread_attr_setstacksize(&attr, POOL_STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&worker->thread, &attr, pool_work, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		atomic_store_explicit(&pool->width, index + 1, memory_order_relaxed);
	return rc;
}

static int pool_grow_locked(struct pool *pool, unsigned width)
{
	int rc = 0;

	if (width > POOL_MAX_WIDTH)
		width = POOL_MAX_WIDTH;
	while (!rc && pool_width(pool) < width)
		rc = pool_add_thread(pool);
	return rc;
}

void pool_grow(struct pool *pool, unsigned width)
{
	pthread_mutex_lock(&pool->lock);
	if (!pool->ending)
		pool_grow_locked(pool, width);
	pthread_mutex_unlock(&pool->lock);
}

int pool_start(unsigned width, struct pool **pool, struct error *err)
{
	struct pool *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return error_sys(err, -ENOMEM, "starting %u threads", width);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->quiet, NULL);
	pthread_mutex_lock(&p->lock);
	rc = pool_grow_locked(p, width ? width : 1);
	pthread_mutex_unlock(&p->lock);
	if (!pool_width(p)) {
		pool_free(p);
		return error_sys(err, -rc, "starting a thread");
	}
	*pool = p;
	return 0;
}

unsigned pool_width(const struct pool *pool)
{
	return atomic_load_explicit(&pool->width, memory_order_relaxed);
}

unsigned pool_idle(const struct pool *pool)
{
	return atomic_load_explicit(&pool->idle, memory_order_relaxed);
}

static void pool_add(struct pool *pool, struct pool_task *task, bool on_top)
{
	pthread_mutex_lock(&pool->lock);
	if (on_top || !pool->top) {
		task->next = pool->top;
		pool->top = task;
		if (!pool->bottom)
			pool->bottom = task;
	} else {
		task->next = NULL;
		pool->bottom->next = task;
		pool->bottom = task;
	}
	pool->queued++;
	pool_count_idle(pool);
	if (pool->waiting)
		pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

void pool_push(struct pool *pool, struct pool_task *task)
{
	pool_add(pool, task, true);
}

void pool_push_bottom(struct pool *pool, struct pool_task *task)
{
	pool_add(pool, task, false);
}

void pool_wait(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	while (pool->top || pool->running)
		pthread_cond_wait(&pool->quiet, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	while (pool->top || pool->running)
		pthread_cond_wait(&pool->quiet, &pool->lock);
	pool->ending = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool_width(pool); i++)
		pthread_join(pool->workers[i].thread, NULL);
	pthread_cond_destroy(&pool->work);
	pthread_cond_destroy(&pool->quiet);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
