#include "base/known.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static struct known known;

static int setup(void **state)
{
	(void)state;
	memset(&known, 0, sizeof(known));
	return 0;
}

static void test_pairs_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(known_flags(&known, 1, 2), 0);
	known_note(&known, 1, 2, 4);
	known_note(&known, 1, 2, 1);
	assert_int_equal(known_flags(&known, 1, 2), 5);
	assert_int_equal(known_flags(&known, 2, 1), 0);
	assert_int_equal(known_flags(&known, 1, 1), 0);
	known_note(&known, 0, 0, 8);
	assert_int_equal(known_flags(&known, 0, 0), 8);
}

/* What does not fit is not noted, and nothing that is noted is lost or mixed up. */
static void test_full_table(void **state)
{
	unsigned there = 0;

	(void)state;
	for (unsigned i = 0; i < 2 * KNOWN_PAIRS; i++)
		known_note(&known, i, i + 1, i + 1);
	for (unsigned i = 0; i < 2 * KNOWN_PAIRS; i++) {
		unsigned flags = known_flags(&known, i, i + 1);

		assert_true(flags == 0 || flags == i + 1);
		there += flags != 0;
	}
	assert_int_equal(there, KNOWN_PAIRS);
}

static void *note_some(void *argument)
{
	uintptr_t start = (uintptr_t)argument;

	for (unsigned round = 0; round < 1000; round++)
		for (unsigned i = 0; i < KNOWN_PAIRS / 4; i++) {
			dev_t dev = (dev_t)((start + i) % (KNOWN_PAIRS / 4));

			known_note(&known, dev, dev, (unsigned)dev + 1);
			if (known_flags(&known, dev, dev) & ~((unsigned)dev + 1))
				return argument;
		}
	return NULL;
}

static void test_many_threads(void **state)
{
	pthread_t threads[8];
	void *wrong;

	(void)state;
	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, note_some, (void *)i), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	for (unsigned i = 0; i < KNOWN_PAIRS / 4; i++)
		assert_int_equal(known_flags(&known, i, i), i + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_pairs_are_told_apart, setup),
		cmocka_unit_test_setup(test_full_table, setup),
		cmocka_unit_test_setup(test_many_threads, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
