#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "tree/links.h"

static struct stat file_stat(ino_t ino, nlink_t names)
{
	struct stat st;

	memset(&st, 0, sizeof(st));
	st.st_dev = 7;
	st.st_ino = ino;
	st.st_nlink = names;
	return st;
}

static void test_first(void **state)
{
	struct links *links = links_new();
	struct stat one = file_stat(5, 1), two = file_stat(6, 2), other = file_stat(6, 2);

	(void)state;
	other.st_dev = 8;
	assert_true(links_first(links, &one));
	assert_true(links_first(links, &one));
	assert_true(links_first(links, &two));
	assert_true(links_first(links, &other));
	assert_false(links_first(links, &two));
	/* All its names were met: it was forgotten, and this is a new file of that number. */
	assert_true(links_first(links, &two));
	links_free(links);
}

/* Data keeps a file until it is taken away. */
static void test_data(void **state)
{
	struct links *links = links_new();
	struct stat st = file_stat(9, 3);
	struct links_file *file = links_lock(links, &st, 1);
	int data = 4;

	(void)state;
	file->data = &data;
	links_unlock(links, file);
	file = links_lock(links, &st, 2);
	assert_int_equal(file->seen, 3);
	assert_ptr_equal(file->data, &data);
	links_unlock(links, file);
	file = links_take(links);
	assert_ptr_equal(file->data, &data);
	free(file);
	assert_null(links_take(links));
	file = links_lock(links, &st, 1);
	assert_int_equal(file->seen, 1);
	assert_null(file->data);
	links_unlock(links, file);
	links_free(links);
}

struct crowd {
	struct links *links;
	atomic_uint firsts;
};

static void *crowd_run(void *arg)
{
	struct crowd *crowd = arg;

	for (ino_t ino = 1; ino <= 20000; ino++) {
		struct stat st = file_stat(ino, 4);

		if (links_first(crowd->links, &st))
			atomic_fetch_add(&crowd->firsts, 1);
	}
	return NULL;
}

/* Four threads meet one name each of many files: each file has one first name. */
static void test_threads(void **state)
{
	struct crowd crowd = { links_new(), 0 };
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &crowd), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&crowd.firsts), 20000);
	links_free(crowd.links);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
