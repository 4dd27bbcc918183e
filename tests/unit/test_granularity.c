#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "copy/granularity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SECOND 1000000000ULL

static void test_same(void **state)
{
	static const struct {
		struct timespec wanted, kept;
		uint64_t step;
		bool same;
	} cases[] = {
		{ { 5, 123456789 }, { 5, 123456789 }, 1, true },
		{ { 5, 123456789 }, { 5, 123456788 }, 1, false },
		{ { 5, 123456789 }, { 5, 123456700 }, 100, true },
		{ { 5, 123456789 }, { 5, 123456800 }, 100, false },
		{ { 5, 123456789 }, { 5, 123456000 }, 1000, true },
		{ { 5, 123456789 }, { 5, 0 }, 1000, false },
		{ { 5, 123456789 }, { 5, 0 }, SECOND, true },
		{ { 5, 999999999 }, { 6, 0 }, SECOND, false },
		{ { 5, 0 }, { 5, 0 }, SECOND, true },
		{ { 5, 123456789 }, { 4, 0 }, 2 * SECOND, true },
		{ { 4, 123456789 }, { 4, 0 }, 2 * SECOND, true },
		{ { 6, 0 }, { 4, 0 }, 2 * SECOND, false },
		{ { -1, 500000000 }, { -1, 0 }, SECOND, true },
		{ { -1, 500000000 }, { -2, 0 }, 2 * SECOND, true },
		{ { -1, 500000000 }, { 0, 0 }, 2 * SECOND, false },
		{ { -4, 0 }, { -4, 0 }, 2 * SECOND, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (granularity_same(&cases[i].wanted, &cases[i].kept, cases[i].step) !=
			cases[i].same)
			fail_msg("case %zu", i);
	}
}

static void test_probe_leaves_nothing(void **state)
{
	const struct timespec times[2] = { { 1000, 0 }, { 2000, 0 } };
	char dir[] = "granularity.XXXXXX";
	struct stat st;
	uint64_t step = 0;
	dev_t dev = 0;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(granularity_probe(fd, &step, &dev, NULL), 0);
	assert_true(step >= 1 && step <= 2 * SECOND);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_dev == dev);
	assert_int_equal(st.st_mtim.tv_sec, 2000);
	close(fd);
	assert_int_equal(rmdir(dir), 0); /* it is empty */
}

static void test_probe_where_nothing_can_be_made(void **state)
{
	struct error err = ERROR_INIT;
	int fd = open("/proc", O_RDONLY | O_DIRECTORY);
	uint64_t step;
	dev_t dev;

	(void)state;
	assert_true(fd >= 0);
	assert_true(granularity_probe(fd, &step, &dev, &err) < 0);
	assert_true(err.code < 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_probe_leaves_nothing),
		cmocka_unit_test(test_probe_where_nothing_can_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
