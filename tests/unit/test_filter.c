#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tree/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_PATTERNS 8
#define MAX_ENTRIES 16

/*
 * Patterns as "+GLOB" (include) or "-GLOB" (exclude), and what they say of some paths; one that
 * ends in '/' is a directory. 'y' takes part, 'n' does not, 'e' is entered to look inside.
 */
struct filter_case {
	const char *patterns[MAX_PATTERNS];
	struct {
		char answer;
		const char *path;
	} entries[MAX_ENTRIES];
};

static const struct filter_case cases[] = {
	/* names, at any depth */
	{ { "-*.o" }, { { 'y', "a" }, { 'n', "a.o" }, { 'n', "d/e/a.o" }, { 'y', "d/" },
			      { 'n', "d.o/" }, { 'n', "d.o/x" }, { 'n', ".o" }, { 'y', "a.oo" } } },
	{ { "-.*" }, { { 'n', ".git/" }, { 'n', "a/.x" }, { 'y', "a.b" } } },
	{ { "-*" }, { { 'n', "a" }, { 'n', ".a" }, { 'n', "d/" } } },
	{ { "-core.?", "-[0-9]*" }, { { 'n', "core.1" }, { 'y', "core.12" }, { 'n', "7z" },
					    { 'n', "x/0" }, { 'y', "x0" } } },
	/* directories only */
	{ { "-tmp/" }, { { 'n', "tmp/" }, { 'y', "tmp" }, { 'n', "a/tmp/" }, { 'n', "tmp/x" },
			       { 'n', "a/tmp/b/c" }, { 'y', "tmpx/" } } },
	/* paths */
	{ { "-/a" },
		{ { 'n', "a" }, { 'n', "a/" }, { 'y', "b/a" }, { 'n', "a/b" }, { 'y', "ab" } } },
	{ { "-/a/" }, { { 'y', "a" }, { 'n', "a/" }, { 'n', "a/b" }, { 'y', "b/a/" } } },
	{ { "-a/b" }, { { 'y', "a/" }, { 'n', "a/b" }, { 'n', "a/b/" }, { 'n', "a/b/c" },
			      { 'y', "x/a/b" }, { 'y', "a/c/b" }, { 'y', "a" } } },
	{ { "-a/*/c" }, { { 'n', "a/b/c" }, { 'y', "a/c" }, { 'y', "a/b/b/c" }, { 'y', "a/b/" },
				{ 'n', "a/.b/c" } } },
	{ { "-a*b" }, { { 'n', "axxb" }, { 'y', "ax/xb" } } },
	{ { "-/*.o" }, { { 'n', "x.o" }, { 'y', "d/x.o" } } },
	{ { "-a//b/" }, { { 'n', "a/b/" }, { 'y', "a/b" } } },
	/* crossing directories */
	{ { "-**/x" }, { { 'n', "x" }, { 'n', "a/x" }, { 'n', "a/b/x" }, { 'y', "a/b/xx" } } },
	{ { "-a/**" }, { { 'y', "a/" }, { 'n', "a/b" }, { 'n', "a/b/c" }, { 'y', "b/a/c" },
			       { 'y', "a" } } },
	{ { "-a/**/" }, { { 'y', "a/b" }, { 'n', "a/b/" }, { 'n', "a/b/c" } } },
	{ { "-a/**/z" }, { { 'n', "a/z" }, { 'n', "a/b/z" }, { 'n', "a/b/c/z" }, { 'y', "z" },
				 { 'y', "b/z" }, { 'n', "a/z/y" } } },
	{ { "-a/**/**/b/**/c" }, { { 'n', "a/b/c" }, { 'n', "a/x/b/y/z/c" }, { 'y', "a/c" } } },
	{ { "-**" }, { { 'n', "a" }, { 'n', "d/" } } },
	/* an include first: only what is included */
	{ { "+*.h5" },
		{ { 'y', "a.h5" }, { 'n', "a" }, { 'e', "d/" }, { 'y', "d/a.h5" }, { 'n', "d/a" },
			{ 'y', "x.h5/" }, { 'y', "x.h5/any" }, { 'y', "x.h5/any/" } } },
	{ { "+results" }, { { 'y', "results/" }, { 'y', "results/a/b" }, { 'e', "x/" },
				  { 'y', "x/results" }, { 'n', "x/y" } } },
	{ { "+results/" }, { { 'y', "results/" }, { 'n', "results" }, { 'y', "results/a" } } },
	{ { "+/a/b" }, { { 'e', "a/" }, { 'y', "a/b" }, { 'y', "a/b/c" }, { 'n', "b/" },
			       { 'n', "a/c/" }, { 'n', "a" } } },
	{ { "+a/**/z" }, { { 'e', "a/" }, { 'e', "a/b/" }, { 'n', "b/" }, { 'y', "a/b/z" },
				 { 'n', "a/b/y" } } },
	{ { "+a/**" }, { { 'e', "a/" }, { 'y', "a/b/" }, { 'y', "a/b" }, { 'n', "b/" } } },
	{ { "+*/x" }, { { 'e', "q/" }, { 'y', "q/x" }, { 'n', "x" }, { 'n', "q/r/" } } },
	{ { "+*.c", "+*.h" }, { { 'y', "a.c" }, { 'y', "a.h" }, { 'n', "a.o" }, { 'e', "d/" } } },
	/* the last match wins */
	{ { "-*.o", "+keep.o" }, { { 'n', "a.o" }, { 'y', "keep.o" }, { 'y', "d/keep.o" },
					 { 'y', "x" }, { 'y', "d/" } } },
	{ { "+*.o", "-bad.o" }, { { 'y', "a.o" }, { 'n', "bad.o" }, { 'n', "x" }, { 'e', "d/" } } },
	{ { "+results", "-*.tmp" }, { { 'y', "results/a" }, { 'n', "results/a.tmp" },
					    { 'n', "other" }, { 'n', "d.tmp/" } } },
	{ { "-*", "+*.h5" }, { { 'y', "a.h5" }, { 'n', "a" }, { 'e', "d/" }, { 'y', "d/a.h5" },
				     { 'n', "d/a" }, { 'e', "d/e/" } } },
	{ { "+*.h5", "-tmp/" }, { { 'y', "a.h5" }, { 'n', "tmp/" }, { 'n', "tmp/a.h5" },
					{ 'n', "x/tmp/a.h5" }, { 'e', "x/" } } },
	{ { "-tmp/", "+tmp/keep" },
		{ { 'e', "tmp/" }, { 'y', "tmp/keep" }, { 'y', "tmp/keep/x" }, { 'n', "tmp/x" },
			{ 'n', "tmp/x/" }, { 'n', "a/tmp/" }, { 'n', "a/tmp/keep" } } },
	{ { "-a", "+b", "-c" }, { { 'e', "a/" }, { 'y', "a/b" }, { 'n', "a/b/c" }, { 'n', "a/c/" },
					{ 'n', "c/" }, { 'y', "x" } } },
	/* bytes */
	{ { "-\xff*" }, { { 'n', "\xff\xfe" }, { 'y', "\xfe\xff" } } },
	{ { "-?" }, { { 'n', "\xe4" }, { 'y', "\xc3\xa4" }, { 'n', "\n" } } },
	{ { "-a\\*" }, { { 'n', "a\\b" }, { 'y', "a*" } } },
	{ { "-[" }, { { 'n', "[" }, { 'y', "x" } } },
	{ { "-[!a]" }, { { 'n', "b" }, { 'y', "a" } } },
};

static struct filter *make(const char *const *patterns)
{
	struct filter_pattern made[MAX_PATTERNS];
	struct error err = ERROR_INIT;
	struct filter *filter = NULL;
	size_t n = 0;

	for (; n < MAX_PATTERNS && patterns[n]; n++) {
		made[n].include = *patterns[n] == '+';
		made[n].glob = patterns[n] + 1;
	}
	if (filter_new(made, n, &filter, &err))
		fail_msg("%s", err.text);
	return filter;
}

static char ask(const struct filter *filter, const char *path)
{
	char dir[8192], *name;
	size_t length = strlen(path);
	bool is_dir = path[length - 1] == '/';

	memcpy(dir, path, length + 1);
	if (is_dir)
		dir[length - 1] = '\0';
	name = strrchr(dir, '/');
	if (name)
		*name++ = '\0';
	switch (filter_match(filter, name ? dir : "", name ? name : dir, is_dir)) {
	case FILTER_OUT:
		return 'n';
	case FILTER_IN:
		return 'y';
	case FILTER_ENTER:
		return is_dir ? 'e' : '?';
	}
	return '?';
}

static void test_match(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct filter *filter = make(cases[i].patterns);

		for (size_t j = 0; j < MAX_ENTRIES && cases[i].entries[j].path; j++) {
			char answer = ask(filter, cases[i].entries[j].path);

			if (answer != cases[i].entries[j].answer)
				fail_msg("case %zu (%s ...), \"%s\": %c, expected %c", i,
					cases[i].patterns[0], cases[i].entries[j].path, answer,
					cases[i].entries[j].answer);
		}
		filter_free(filter);
	}
}

/* A walk that trusts the answers must find every file that takes part: its directories are y or e.
 */
static void test_reachable(void **state)
{
	static const char *const names[] = { "a", "b", "c.x", "d" };
	static const char *const globs[] = { "a", "b/", "*.x", "/a/b", "a/**", "**/d", "b/*/d", "*",
		"/b", "a/**/c.x" };
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		char patterns[4][16], path[64] = "";
		const char *list[MAX_PATTERNS] = { NULL };
		struct filter *filter;
		int n = 1 + rand_r(&seed) % 4, depth = 1 + rand_r(&seed) % 4;
		bool cut = false;

		for (int i = 0; i < n; i++) {
			snprintf(patterns[i], sizeof(patterns[i]), "%c%s",
				rand_r(&seed) & 256 ? '+' : '-',
				globs[(size_t)rand_r(&seed) % ARRAY_SIZE(globs)]);
			list[i] = patterns[i];
		}
		filter = make(list);
		for (int i = 0; i < depth; i++) {
			size_t used = strlen(path);
			char answer;

			snprintf(path + used, sizeof(path) - used, "%s%s",
				names[(size_t)rand_r(&seed) % ARRAY_SIZE(names)],
				i + 1 < depth ? "/" : "");
			answer = ask(filter, path);
			if (cut && answer == 'y')
				fail_msg("\"%s\" takes part in a directory that does not (%s ...)",
					path, list[0]);
			cut = cut || answer == 'n';
		}
		filter_free(filter);
	}
}

/* Each "**" could stand for many numbers of directories: they are not all tried, and not each has a
 * frame on the stack. */
static void test_many_any(void **state)
{
	enum { DEPTH = 2000 };
	static char path[2 * DEPTH + 2] = "", glob[5 * DEPTH + 4] = "-";
	const char *list[MAX_PATTERNS] = { glob };
	struct filter *filter;

	(void)state;
	for (int i = 0; i < DEPTH; i++) {
		strcpy(path + 2 * i, "a/");
		strcpy(glob + 1 + 5 * i, "**/a/");
	}
	filter = make(list);
	assert_int_equal(ask(filter, path), 'n');
	filter_free(filter);
	strcat(glob, "c");
	filter = make(list);
	strcat(path, "b");
	assert_int_equal(ask(filter, path), 'y');
	path[sizeof(path) - 2] = 'c';
	assert_int_equal(ask(filter, path), 'n');
	filter_free(filter);
}

static void test_none(void **state)
{
	struct error err = ERROR_INIT;
	struct filter *filter = (struct filter *)&err;

	(void)state;
	assert_int_equal(filter_new(NULL, 0, &filter, &err), 0);
	assert_null(filter);
	assert_int_equal(filter_match(NULL, "", "a", false), FILTER_IN);
	assert_int_equal(filter_match(NULL, "a/b", "c", true), FILTER_IN);
	filter_free(NULL);
}

static void test_bad(void **state)
{
	static const char *const globs[] = { "", "/", "//", "a/../b", "./a", "..", "." };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(globs); i++) {
		struct filter_pattern patterns[2] = { { true, "fine" }, { false, globs[i] } };
		struct error err = ERROR_INIT;
		struct filter *filter = NULL;

		if (filter_new(patterns, 2, &filter, &err) != -EINVAL)
			fail_msg("\"%s\" is taken", globs[i]);
		assert_null(filter);
		assert_non_null(strstr(err.text, "expected names and wildcards"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_reachable),
		cmocka_unit_test(test_many_any),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
