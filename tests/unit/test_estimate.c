#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stage/estimate.h"

static const struct plan many = { .inodes = 15000, .bytes = 120000000 };
static const struct plan large = { .inodes = 8, .bytes = 8000000000 };

/* Half a millisecond an operation: five of them a file. */
static void far_small_files_pay_at_once(void **state)
{
	struct estimate estimate = { .files = 10, .file_seconds = 2.5e-3 };

	(void)state;
	estimate_judge(&many, 0, &estimate);
	assert_true(estimate.pass_seconds > 37 && estimate.pass_seconds < 38);
	assert_true(estimate.seconds > 0.5 && estimate.seconds < 0.7);
	assert_true(estimate.passes > 0 && estimate.passes < 0.1);
}

static void one_thread_has_no_advantage(void **state)
{
	struct estimate estimate = { .files = 10, .file_seconds = 2.5e-3 };

	(void)state;
	estimate_judge(&many, 1, &estimate);
	assert_true(estimate.seconds > 37);
	assert_true(estimate.passes > 1);
}

static void what_is_as_fast_as_local_never_pays(void **state)
{
	struct estimate estimate = { .files = 10, .file_seconds = 15e-6 };

	(void)state;
	estimate_judge(&many, 0, &estimate);
	assert_true(estimate.passes == 0);
}

static void large_files_pay_by_their_rate(void **state)
{
	struct estimate slow = { .files = 8, .file_seconds = 1e-3, .bytes_second = 100e6 };
	struct estimate fast = { .files = 8, .file_seconds = 1e-5, .bytes_second = 2.1e9 };

	(void)state;
	estimate_judge(&large, 0, &slow);
	assert_true(slow.pass_seconds > 80);
	assert_true(slow.passes > 0 && slow.passes < 1);
	estimate_judge(&large, 0, &fast);
	assert_true(fast.passes == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_small_files_pay_at_once),
		cmocka_unit_test(one_thread_has_no_advantage),
		cmocka_unit_test(what_is_as_fast_as_local_never_pays),
		cmocka_unit_test(large_files_pay_by_their_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
