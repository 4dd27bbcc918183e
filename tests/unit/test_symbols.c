#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "spec/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct symbols values = {
	.job_id = "42",
	.array_job_id = "40",
	.array_task_id = "2",
	.job_name = "run",
	.user = "me",
	.node = "n7",
	.node_index = "0",
};

static void test_check(void **state)
{
	static const struct {
		const char *text;
		unsigned column; /* 0: it is right */
	} cases[] = {
		{ "", 0 },
		{ "/plain", 0 },
		{ "%j%A%a%x%u%N%n%%", 0 },
		{ "%%q", 0 },
		{ "%%%j", 0 },
		{ "%", 1 },
		{ "a%", 2 },
		{ "%%%", 3 },
		{ "ab%qc", 3 },
		{ "%J", 1 },
		{ "%5j", 1 },
		{ "%j/%", 4 },
		{ "%\xc3\xa9", 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		unsigned column = 0;
		int rc = symbols_check(cases[i].text, &column, &err);

		if (rc != (cases[i].column ? -EINVAL : 0) || column != cases[i].column)
			fail_msg("\"%s\": rc %d, column %u, \"%s\"", cases[i].text, rc, column,
				err.text);
		assert_int_equal(symbols_check(cases[i].text, NULL, NULL), rc);
	}
}

static void test_has_node(void **state)
{
	(void)state;
	assert_true(symbols_has_node("%N"));
	assert_true(symbols_has_node("a/%n.log"));
	assert_true(symbols_has_node("%%%N"));
	assert_false(symbols_has_node(""));
	assert_false(symbols_has_node("%%N"));
	assert_false(symbols_has_node("%j/N/n"));
	assert_false(symbols_has_node("N%"));
}

static void test_expand(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "/", "/" },
		{ "/proj/data", "/proj/data" },
		{ "/proj/%u/%x.%j", "/proj/me/run.42" },
		{ "%A_%a", "40_2" },
		{ "%N/%n", "n7/0" },
		{ "100%%", "100%" },
		{ "%%j", "%j" },
		{ "../x/..", "../x/.." },
		{ "a//b/", "a//b/" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		char *out = NULL;

		assert_int_equal(symbols_expand(cases[i][0], &values, &out, &err), 0);
		assert_string_equal(out, cases[i][1]);
		free(out);
	}
}

/* What a user may have called a job must not lead anywhere. */
static void test_values(void **state)
{
	static const struct {
		const char *name, *text, *plain, *pattern;
	} cases[] = {
		{ "a/b", "%x", "a_b", "a_b" },
		{ "../../etc", "%x/f", ".._.._etc/f", ".._.._etc/f" },
		{ "a\nb\x7f", "%x", "a_b_", "a_b_" },
		{ "50%j", "%x", "50%j", "50%j" },
		{ "a*?[b]", "%x", "a*?[b]", "a[*][?][[]b]" },
		{ "\xff\xc3\xa9", "%x", "\xff\xc3\xa9", "\xff\xc3\xa9" },
		{ "..", "/p/x%x", "/p/x..", "/p/x.." },
		{ "", "x%x", "x", "x" },
		{ "..", "/p/%x/y", NULL, NULL },
		{ ".", "/p/%x", NULL, NULL },
		{ ".", "/p/.%x/y", NULL, NULL },
		{ "", "/p/%x/y", NULL, NULL },
		{ "", "%x", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct symbols odd = values;
		struct error err = ERROR_INIT;
		char *out = NULL;

		odd.job_name = cases[i].name;
		if (!cases[i].plain) {
			assert_int_equal(symbols_expand(cases[i].text, &odd, &out, &err), -EINVAL);
			assert_non_null(strstr(err.text, "which is no name"));
			assert_int_equal(
				symbols_expand_pattern(cases[i].text, &odd, &out, &err), -EINVAL);
			assert_null(out);
			continue;
		}
		assert_int_equal(symbols_expand(cases[i].text, &odd, &out, &err), 0);
		assert_string_equal(out, cases[i].plain);
		free(out);
		assert_int_equal(symbols_expand_pattern(cases[i].text, &odd, &out, &err), 0);
		assert_string_equal(out, cases[i].pattern);
		free(out);
	}
}

static void test_unknown(void **state)
{
	struct symbols few = values;
	struct error err = ERROR_INIT;
	char *out = NULL;

	(void)state;
	few.job_id = NULL;
	assert_int_equal(symbols_expand("a/%u.%j", &few, &out, &err), -EINVAL);
	assert_string_equal(err.text, "%j is not known here");
	assert_int_equal(symbols_expand("%u", &few, &out, &err), 0);
	free(out);
	out = NULL;
	assert_int_equal(symbols_expand("%q", &values, &out, &err), -EINVAL);
	assert_int_equal(symbols_expand("a%", &values, &out, &err), -EINVAL);
	assert_null(out);
}

static void test_long(void **state)
{
	enum { TIMES = 5000 };
	char *text = malloc(3 * TIMES + 1), *out = NULL;
	struct error err = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < TIMES; i++)
		memcpy(text + 3 * i, "%j/", 4);
	assert_int_equal(symbols_expand(text, &values, &out, &err), 0);
	assert_int_equal(strlen(out), 3 * TIMES);
	assert_string_equal(out + 3 * (TIMES - 2), "42/42/");
	free(out);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_has_node),
		cmocka_unit_test(test_expand),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
