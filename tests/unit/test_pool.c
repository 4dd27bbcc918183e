#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/pool.h"

struct shared {
	struct pool *pool;
	atomic_uint ran, depth_left;
	atomic_uint order[8];
};

struct job {
	struct pool_task task;
	struct shared *shared;
	unsigned number;
};

static struct job *job_new(
	struct shared *shared, void (*run)(struct pool_task *, unsigned), unsigned number)
{
	struct job *job = malloc(sizeof(*job));

	assert_non_null(job);
	job->task.run = run;
	job->shared = shared;
	job->number = number;
	return job;
}

/* Each task adds two until 2^depth have run: adding from workers must never block. */
static void run_tree(struct pool_task *task, unsigned worker)
{
	struct job *job = (struct job *)task;

	assert_true(worker < pool_width(job->shared->pool));
	atomic_fetch_add(&job->shared->ran, 1);
	for (int i = 0; i < 2 && job->number > 0; i++)
		pool_push(
			job->shared->pool, &job_new(job->shared, run_tree, job->number - 1)->task);
	free(job);
}

static void test_tree(void **state)
{
	struct shared shared = { NULL };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(pool_start(8, &shared.pool, &err), 0);
	assert_int_equal(pool_width(shared.pool), 8);
	for (int round = 0; round < 3; round++) {
		atomic_store(&shared.ran, 0);
		pool_push(shared.pool, &job_new(&shared, run_tree, 12)->task);
		pool_wait(shared.pool);
		assert_int_equal(atomic_load(&shared.ran), (1 << 13) - 1);
	}
	pool_free(shared.pool);
}

static void run_note(struct pool_task *task, unsigned worker)
{
	struct job *job = (struct job *)task;

	(void)worker;
	atomic_store(&job->shared->order[atomic_fetch_add(&job->shared->ran, 1)], job->number);
	free(job);
}

static void run_adding(struct pool_task *task, unsigned worker)
{
	struct job *job = (struct job *)task;
	struct pool *pool = job->shared->pool;

	(void)worker;
	pool_push(pool, &job_new(job->shared, run_note, 1)->task);
	pool_push(pool, &job_new(job->shared, run_note, 2)->task);
	pool_push_bottom(pool, &job_new(job->shared, run_note, 3)->task);
	pool_push(pool, &job_new(job->shared, run_note, 4)->task);
	free(job);
}

/* With one thread the order is exact: newest first, what was put below last. */
static void test_order(void **state)
{
	static const unsigned expected[] = { 4, 2, 1, 3 };
	struct shared shared = { NULL };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(pool_start(1, &shared.pool, &err), 0);
	pool_push(shared.pool, &job_new(&shared, run_adding, 0)->task);
	pool_wait(shared.pool);
	for (int i = 0; i < 4; i++)
		assert_int_equal(atomic_load(&shared.order[i]), expected[i]);
	pool_free(shared.pool);
}

static void run_grow(struct pool_task *task, unsigned worker)
{
	struct job *job = (struct job *)task;

	(void)worker;
	pool_grow(job->shared->pool, job->number);
	for (int i = 0; i < 100; i++)
		pool_push(job->shared->pool, &job_new(job->shared, run_tree, 0)->task);
	free(job);
}

/* A worker may make the pool wider while it works; it never shrinks. */
static void test_grow(void **state)
{
	struct shared shared = { NULL };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(pool_start(2, &shared.pool, &err), 0);
	pool_push(shared.pool, &job_new(&shared, run_grow, 16)->task);
	pool_push(shared.pool, &job_new(&shared, run_grow, 4)->task);
	pool_wait(shared.pool);
	assert_int_equal(pool_width(shared.pool), 16);
	assert_int_equal(atomic_load(&shared.ran), 200);
	pool_grow(shared.pool, 100000);
	assert_true(pool_width(shared.pool) <= POOL_MAX_WIDTH);
	pool_free(shared.pool);
}

/* What was added and not yet waited for is run before the end. */
static void test_free_waits(void **state)
{
	struct shared shared = { NULL };
	struct error err = ERROR_INIT;

	(void)state;
	pool_free(NULL);
	assert_int_equal(pool_start(3, &shared.pool, &err), 0);
	pool_push(shared.pool, &job_new(&shared, run_tree, 8)->task);
	pool_free(shared.pool);
	assert_int_equal(atomic_load(&shared.ran), (1 << 9) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_free_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
