#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/parse.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define KIB 1024ULL

/* text is parsed by one of the functions that give a number. */
struct number_case {
	const char *text;
	int rc;
	uint64_t value;
};

static void check_cases(int (*parse)(const char *, uint64_t *, struct error *),
	const struct number_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct error err = ERROR_INIT;
		uint64_t value = 4711;
		int rc = parse(cases[i].text, &value, &err);

		if (rc != cases[i].rc || value != (rc ? 4711 : cases[i].value) || err.code != rc)
			fail_msg("\"%s\": rc %d, value %llu, \"%s\"", cases[i].text, rc,
				(unsigned long long)value, err.text);
		if (rc && *cases[i].text)
			assert_non_null(strstr(err.text, cases[i].text));
		assert_int_equal(parse(cases[i].text, &value, NULL), rc);
	}
}

static void test_size(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "1", 0, 1 },
		{ "12B", 0, 12 },
		{ "4k", 0, 4 * KIB },
		{ "4K", 0, 4 * KIB },
		{ "4KB", 0, 4 * KIB },
		{ "4KiB", 0, 4 * KIB },
		{ "4kib", 0, 4 * KIB },
		{ "3M", 0, 3 * KIB * KIB },
		{ "500G", 0, 500 * KIB * KIB * KIB },
		{ "2T", 0, 2 * KIB * KIB * KIB * KIB },
		{ "2P", 0, 2 * KIB * KIB * KIB * KIB * KIB },
		{ "1.5K", 0, 1536 },
		{ "0.5G", 0, 512 * KIB * KIB },
		{ "0.1K", 0, 102 },
		{ "1.000000000000000001K", 0, 1024 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "16383.999999P", 0, 18446744072583651709ULL },
		{ "16384P", -ERANGE, 0 },
		{ "99999999999999999999999999P", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "G", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 G", -EINVAL, 0 },
		{ "1G ", -EINVAL, 0 },
		{ "1.5", -EINVAL, 0 },
		{ "1.5B", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ "1.G", -EINVAL, 0 },
		{ ".5G", -EINVAL, 0 },
		{ "1,5G", -EINVAL, 0 },
		{ "1.0000000000000000001K", -EINVAL, 0 },
		{ "1E", -EINVAL, 0 },
		{ "1X", -EINVAL, 0 },
		{ "1GG", -EINVAL, 0 },
		{ "1Gi", -EINVAL, 0 },
		{ "1BB", -EINVAL, 0 },
		{ "1BiB", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "5%", -EINVAL, 0 },
	};

	(void)state;
	check_cases(parse_size, cases, ARRAY_SIZE(cases));
}

static void test_duration(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "90", 0, 90 },
		{ "90s", 0, 90 },
		{ "5m", 0, 300 },
		{ "2h", 0, 7200 },
		{ "7d", 0, 604800 },
		{ "7D", 0, 604800 },
		{ "2w", 0, 1209600 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "18446744073709551615w", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "d", -EINVAL, 0 },
		{ "-1d", -EINVAL, 0 },
		{ "1.5h", -EINVAL, 0 },
		{ "1d12h", -EINVAL, 0 },
		{ "7 d", -EINVAL, 0 },
		{ "7y", -EINVAL, 0 },
		{ "7days", -EINVAL, 0 },
	};

	(void)state;
	check_cases(parse_duration, cases, ARRAY_SIZE(cases));
}

static void test_share(void **state)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t bytes;
		double percent;
	} cases[] = {
		{ "5%", 0, 0, 5 },
		{ "0%", 0, 0, 0 },
		{ "100%", 0, 0, 100 },
		{ "2.5%", 0, 0, 2.5 },
		{ "10G", 0, 10 * KIB * KIB * KIB, -1 },
		{ "0", 0, 0, -1 },
		{ "100.1%", -ERANGE, 0, 0 },
		{ "101%", -ERANGE, 0, 0 },
		{ "-1%", -EINVAL, 0, 0 },
		{ "%", -EINVAL, 0, 0 },
		{ "5%%", -EINVAL, 0, 0 },
		{ "5 %", -EINVAL, 0, 0 },
		{ "5G%", -EINVAL, 0, 0 },
		{ "1e1%", -EINVAL, 0, 0 },
		{ "99999999999999999999%", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
		{ "five", -EINVAL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		uint64_t bytes = 4711;
		double percent = 4711;
		int rc = parse_share(cases[i].text, &bytes, &percent, &err);

		if (rc != cases[i].rc)
			fail_msg("\"%s\": rc %d, \"%s\"", cases[i].text, rc, err.text);
		if (rc) {
			assert_int_equal(bytes, 4711);
			assert_true(fabs(percent - 4711) < DBL_EPSILON);
			continue;
		}
		assert_int_equal(bytes, cases[i].bytes);
		assert_true(fabs(percent - cases[i].percent) < 1e-9);
	}
}

static void test_number(void **state)
{
	struct error err = ERROR_INIT;
	uint64_t value = 0;

	(void)state;
	assert_int_equal(parse_number("0", 0, 10, &value, &err), 0);
	assert_int_equal(value, 0);
	assert_int_equal(parse_number("10", 0, 10, &value, &err), 0);
	assert_int_equal(value, 10);
	assert_int_equal(parse_number("18446744073709551615", 0, UINT64_MAX, &value, &err), 0);
	assert_true(value == UINT64_MAX);
	value = 3;
	assert_int_equal(parse_number("11", 0, 10, &value, &err), -ERANGE);
	assert_string_equal(err.text, "11 is out of range: expected 0 to 10");
	assert_int_equal(parse_number("0", 1, 10, &value, &err), -ERANGE);
	assert_int_equal(
		parse_number("18446744073709551616", 0, UINT64_MAX, &value, &err), -ERANGE);
	assert_int_equal(parse_number("", 0, 10, &value, &err), -EINVAL);
	assert_int_equal(parse_number("x", 0, 10, &value, &err), -EINVAL);
	assert_string_equal(err.text, "\"x\" is not a whole number: expected one from 0 to 10");
	assert_int_equal(parse_number("1x", 0, 10, &value, &err), -EINVAL);
	assert_int_equal(parse_number("-1", 0, 10, &value, &err), -EINVAL);
	assert_int_equal(parse_number(" 1", 0, 10, &value, &err), -EINVAL);
	assert_int_equal(parse_number("1.0", 0, 10, &value, &err), -EINVAL);
	assert_int_equal(value, 3);
}

static void test_bool(void **state)
{
	static const char *const yes[] = { "yes", "true", "on", "1", "Yes", "TRUE" };
	static const char *const no[] = { "no", "false", "off", "0", "No", "OFF" };
	static const char *const neither[] = { "", "y", "2", "yes ", " no", "maybe" };
	struct error err = ERROR_INIT;
	bool value = false;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		value = false;
		assert_int_equal(parse_bool(yes[i], &value, &err), 0);
		assert_true(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		value = true;
		assert_int_equal(parse_bool(no[i], &value, &err), 0);
		assert_false(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(neither); i++)
		assert_int_equal(parse_bool(neither[i], &value, &err), -EINVAL);
	assert_string_equal(err.text, "\"maybe\" is neither yes nor no");
}

static void test_format_size(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 12, "12 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ KIB * KIB - 1, "1.0 MiB" },
		{ 1572864, "1.5 MiB" },
		{ 3 * KIB * KIB * KIB / 2, "1.5 GiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};
	char buffer[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(
			parse_format_size(cases[i].bytes, buffer, sizeof(buffer)), cases[i].text);
	assert_string_equal(parse_format_size(1536, buffer, 4), "1.5");
}

static void test_format_duration(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {
		{ -3, "0.00 s" },
		{ 0, "0.00 s" },
		{ 0.034, "0.03 s" },
		{ 0.999, "1.0 s" },
		{ 3.21, "3.2 s" },
		{ 59.94, "59.9 s" },
		{ 59.97, "1 min 0 s" },
		{ 250, "4 min 10 s" },
		{ 3599.4, "59 min 59 s" },
		{ 3599.6, "1 h 0 min" },
		{ 7500, "2 h 5 min" },
		{ 86400, "1 d 0 h" },
		{ 183600, "2 d 3 h" },
		{ INFINITY, "unknown" },
		{ NAN, "unknown" },
		{ DBL_MAX, "unknown" },
	};
	char buffer[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(parse_format_duration(cases[i].seconds, buffer, sizeof(buffer)),
			cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_bool),
		cmocka_unit_test(test_format_size),
		cmocka_unit_test(test_format_duration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
