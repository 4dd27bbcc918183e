#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "report/numbers.h"
#include "report/summary.h"

#include <stdio.h>
#include <string.h>

static void test_numbers(void **state)
{
	static const struct {
		uint64_t number;
		const char *text;
	} cases[] = {
		{ 0, "0" }, { 7, "7" }, { 999, "999" }, { 1000, "1,000" }, { 12345, "12,345" },
		{ 123456, "123,456" }, { 1000000, "1,000,000" },
		{ UINT64_MAX, "18,446,744,073,709,551,615" },
	};
	char text[NUMBERS_SIZE], count[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(numbers_format(cases[i].number, text), cases[i].text);
	assert_string_equal(numbers_count(1, "file", "files", count, sizeof(count)), "1 file");
	assert_string_equal(numbers_count(0, "file", "files", count, sizeof(count)), "0 files");
	assert_string_equal(numbers_count(2000, "file", "files", count, 8), "2,000 f");
}

static void check_line(const struct summary *summary, const char *expected)
{
	autofree char *line = summary_line(summary);

	assert_non_null(line);
	assert_string_equal(line, expected);
}

static void test_line_plain(void **state)
{
	struct summary summary = { .verb = "staged in", .seconds = 2 };

	(void)state;
	check_line(&summary, "staged in 0 files, 0 B in 2.0 s");
	summary.counts.files = 1;
	summary.counts.bytes = 4 * 1024 * 1024;
	check_line(&summary, "staged in 1 file, 4.0 MiB in 2.0 s (2.0 MiB/s)");
	summary.counts.files = 12000;
	summary.counts.symlinks = 344;
	summary.counts.others = 1;
	check_line(&summary, "staged in 12,345 files, 4.0 MiB in 2.0 s (2.0 MiB/s)");
	summary.seconds = 0; /* no rate from a time that was not measured */
	check_line(&summary, "staged in 12,345 files, 4.0 MiB in 0.00 s");
	summary.seconds = 1e-300; /* nor one that is no number of bytes */
	check_line(&summary, "staged in 12,345 files, 4.0 MiB in 0.00 s");
}

static void test_line_names_everything_odd(void **state)
{
	struct summary summary = {
		.verb = "copied",
		.seconds = 1,
		.removed = 2,
		.counts = { .unchanged = 3, .failed = 4, .conflicts = 1, .changed = 5, .vanished = 6,
			.attributes = 7, .dropped = 8, .special = 9 },
	};

	(void)state;
	check_line(&summary,
		"copied 0 files, 0 B in 1.0 s, 3 unchanged, 2 removed, 4 failed, 1 conflict, "
		"5 changed while being read, 6 vanished, 7 attributes not set, "
		"8 without their special bits, 9 sockets or devices skipped");
}

static void test_status(void **state)
{
	struct summary summary = { .verb = "copied" };
	uint64_t *const incomplete[] = { &summary.counts.failed, &summary.counts.vanished,
		&summary.counts.changed, &summary.counts.attributes };
	uint64_t *const fine[] = { &summary.counts.dropped, &summary.counts.special,
		&summary.counts.unchanged, &summary.removed, &summary.counts.files };

	(void)state;
	assert_int_equal(summary_status(&summary), 0);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		*fine[i] = 1;
		assert_int_equal(summary_status(&summary), 0);
	}
	summary.counts.conflicts = 1;
	assert_int_equal(summary_status(&summary), 5);
	for (size_t i = 0; i < sizeof(incomplete) / sizeof(incomplete[0]); i++) {
		*incomplete[i] = 1;
		assert_int_equal(summary_status(&summary), 3);
		*incomplete[i] = 0;
	}
	assert_int_equal(summary_status(&summary), 5);
}

static void test_problems_have_a_limit(void **state)
{
	struct summary summary = { .verb = "copied" }, total = { .verb = "copied" };
	char path[32];

	(void)state;
	for (int i = 0; i < SUMMARY_MAX_NAMED + 7; i++) {
		snprintf(path, sizeof(path), "f%d", i);
		summary_add_problem(&summary, path, "failed", "no reason");
		path[0] = 'x'; /* strings are copied */
	}
	assert_int_equal(summary.n_problems, SUMMARY_MAX_NAMED);
	assert_int_equal(summary.n_unnamed, 7);
	assert_string_equal(summary.problems[0].path, "f0");
	summary_add_problem(&total, "first", "vanished", "gone");
	summary.counts.files = 2;
	summary.seconds = 1.5;
	total.counts.files = 1;
	total.seconds = 1;
	summary_merge(&total, &summary);
	assert_int_equal(total.n_problems, SUMMARY_MAX_NAMED);
	assert_int_equal(total.n_unnamed, 8);
	assert_string_equal(total.problems[1].path, "f0");
	assert_int_equal(total.counts.files, 3);
	assert_true(total.seconds > 2.4 && total.seconds < 2.6);
	summary_free(&summary);
	summary_free(&total);
}

static void test_merge_takes_every_count(void **state)
{
	struct summary item = { .verb = "copied" }, total = { .verb = "copied" };
	uint64_t *counts = (uint64_t *)&item.counts, *totals = (uint64_t *)&total.counts;
	size_t n = sizeof(item.counts) / sizeof(*counts);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		counts[i] = i + 1;
		totals[i] = 100;
	}
	item.removed = 5;
	summary_merge(&total, &item);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(totals[i], 101 + i);
	assert_int_equal(total.removed, 5);
}

static void check_bytes(const char *bytes, const char *expected)
{
	json_t *string = summary_json_bytes(bytes);

	assert_non_null(string);
	assert_string_equal(json_string_value(string), expected);
	json_decref(string);
}

static void test_json_bytes(void **state)
{
	(void)state;
	check_bytes("", "");
	check_bytes("plain \"quoted\" \\", "plain \"quoted\" \\");
	check_bytes("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
	check_bytes("a\nb\x7f\x1b", "a\\x0ab\\x7f\\x1b");
	check_bytes("\xff\xfe", "\\xff\\xfe");
	check_bytes("\xc3", "\\xc3"); /* cut short */
	check_bytes("\xe2\x82", "\\xe2\\x82");
	check_bytes("\xc0\xaf", "\\xc0\\xaf"); /* over-long */
	check_bytes("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half a surrogate pair */
	check_bytes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond the last character */
	check_bytes("\x80" "a", "\\x80" "a");
}

static void test_json(void **state)
{
	struct summary summary = { .verb = "copied", .seconds = 1.5, .removed = 3,
		.counts = { .files = 1, .bytes = 1ULL << 40 } };
	json_t *object, *problem;

	(void)state;
	summary_add_problem(&summary, "a\xff", "failed", "open: \xfe");
	summary_add_problem(&summary, "b", "vanished", "gone");
	object = summary_json(&summary);
	assert_int_equal(json_integer_value(json_object_get(object, "files")), 1);
	assert_int_equal(json_integer_value(json_object_get(object, "bytes")), 1LL << 40);
	assert_int_equal(json_integer_value(json_object_get(object, "removed")), 3);
	assert_int_equal(json_integer_value(json_object_get(object, "problems_unnamed")), 0);
	assert_int_equal(json_array_size(json_object_get(object, "problems")), 2);
	problem = json_array_get(json_object_get(object, "problems"), 0);
	assert_string_equal(json_string_value(json_object_get(problem, "path")), "a\\xff");
	assert_string_equal(json_string_value(json_object_get(problem, "path_hex")), "61ff");
	assert_string_equal(json_string_value(json_object_get(problem, "kind")), "failed");
	assert_string_equal(json_string_value(json_object_get(problem, "text")), "open: \\xfe");
	problem = json_array_get(json_object_get(object, "problems"), 1);
	assert_null(json_object_get(problem, "path_hex"));
	json_decref(object);
	summary_free(&summary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_line_plain),
		cmocka_unit_test(test_line_names_everything_odd),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_problems_have_a_limit),
		cmocka_unit_test(test_merge_takes_every_count),
		cmocka_unit_test(test_json_bytes),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
