#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tree/glob.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_RESULTS 8

static char top[] = "/tmp/test_glob.XXXXXX";
static int topfd = -1;

static void make(const char *path)
{
	int fd;

	if (path[strlen(path) - 1] == '/') {
		assert_int_equal(mkdirat(topfd, path, 0755), 0);
		return;
	}
	fd = openat(topfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static int setup(void **state)
{
	static const char *const paths[] = { "a/", "a/x.h5", "a/y.h5", "a/z.txt", "a/.hidden.h5",
		"b/", "b/x.h5", "b/deep/", "b/deep/x.h5", "c", "[1]", "1", "\xff\xfe", "q:*",
		"a.b/", "a.b/x.h5" };

	(void)state;
	umask(022);
	if (!mkdtemp(top))
		return -1;
	topfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		make(paths[i]);
	assert_int_equal(symlinkat("b", topfd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", topfd, "dangling"), 0);
	return chmod(top, 0755);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	close(topfd);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static const struct {
	const char *pattern;
	const char *results[MAX_RESULTS];
} cases[] = {
	{ "a/*.h5", { "a/x.h5", "a/y.h5" } },
	{ "a/.*", { "a/.hidden.h5" } },
	{ "a/*", { "a/x.h5", "a/y.h5", "a/z.txt" } },
	{ "a/?.h5", { "a/x.h5", "a/y.h5" } },
	{ "a/[x-y].h5", { "a/x.h5", "a/y.h5" } },
	{ "a/[!x].h5", { "a/y.h5" } },
	/* '.' sorts before '/' */
	{ "*/x.h5", { "a.b/x.h5", "a/x.h5", "b/x.h5", "link/x.h5" } },
	{ "*/*/x.h5", { "b/deep/x.h5", "link/deep/x.h5" } },
	{ "*/deep", { "b/deep", "link/deep" } },
	{ "link/*", { "link/deep", "link/x.h5" } },
	{ "b/*/x.*", { "b/deep/x.h5" } },
	{ "a/x.h5", { "a/x.h5" } },
	{ "dangl*", { "dangling" } },
	{ "dangling", { "dangling" } },
	{ "dangling/*", { NULL } },
	{ "nothing*", { NULL } },
	{ "nothing/*", { NULL } },
	{ "nothing", { NULL } },
	{ "c/*", { NULL } },
	{ "c/*/x", { NULL } },
	{ "*/nothing/*", { NULL } },
	{ "[1]", { "1" } },
	{ "[[]1]", { "[1]" } },
	{ "q:[*]", { "q:*" } },
	{ "\xff*", { "\xff\xfe" } },
	{ "a\\*", { NULL } },
	{ "a*/x.h5", { "a.b/x.h5", "a/x.h5" } },
};

static void check(int dirfd, const char *pattern, const char *prefix, const char *const *want)
{
	struct error err = ERROR_INIT;
	char **paths = NULL;
	size_t count = 4711, i;

	if (glob_expand(dirfd, pattern, &paths, &count, &err))
		fail_msg("\"%s\": %s", pattern, err.text);
	for (i = 0; i < count && i < MAX_RESULTS && want[i]; i++) {
		char full[256];

		snprintf(full, sizeof(full), "%s%s", prefix, want[i]);
		if (strcmp(paths[i], full))
			fail_msg("\"%s\": \"%s\", expected \"%s\"", pattern, paths[i], full);
	}
	if (i < count || (i < MAX_RESULTS && want[i]))
		fail_msg("\"%s\": %zu results, wrong from number %zu on", pattern, count, i);
	glob_free(paths, count);
}

static void test_relative(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(topfd, cases[i].pattern, "", cases[i].results);
}

static void test_absolute(void **state)
{
	char pattern[256], prefix[64];

	(void)state;
	snprintf(prefix, sizeof(prefix), "%s/", top);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(pattern, sizeof(pattern), "%s%s", prefix, cases[i].pattern);
		check(-1, pattern, prefix, cases[i].results);
	}
}

static void test_root(void **state)
{
	static const char *const want[] = { "/proc", NULL };

	(void)state;
	check(-1, "/[p]roc", "", want);
	check(-1, "/proc", "", want);
}

static void test_path_max(void **state)
{
	char name[201], *pattern = NULL, **paths = NULL;
	struct error err = ERROR_INIT;
	size_t count = 0;
	int at = dup(topfd);

	(void)state;
	memset(name, 'n', 200);
	name[200] = '\0';
	pattern = calloc(1, 30 * 201 + 3);
	for (int i = 0; i < 30; i++) {
		int next;

		assert_int_equal(mkdirat(at, name, 0755), 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
		strcat(strcat(pattern, name), "/");
	}
	assert_true(strlen(pattern) > PATH_MAX);
	assert_int_equal(mkdirat(at, "e", 0755), 0);
	close(at);
	strcat(pattern, "*");
	assert_int_equal(glob_expand(topfd, pattern, &paths, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_int_equal(strlen(paths[0]), strlen(pattern));
	glob_free(paths, count);
	/* and without a wildcard behind what is too long */
	pattern[0] = '?';
	pattern[strlen(pattern) - 1] = 'e';
	assert_int_equal(glob_expand(topfd, pattern, &paths, &count, &err), 0);
	assert_int_equal(count, 1);
	glob_free(paths, count);
	free(pattern);
}

/* What can not be read is an error, never "no match". As a user: root reads everything. */
static void test_unreadable(void **state)
{
	static const struct {
		const char *pattern;
		int rc;
	} tries[] = {
		{ "locked/*", -EACCES },
		{ "locked/*/x", -EACCES },
		{ "*/*.h5", -EACCES },
		{ "locked/x", -EACCES },
		{ "loc*", 0 },
	};
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdirat(topfd, "locked", 0), 0);
	pid = fork();
	if (!pid) {
		if (!geteuid() && (setgid(65534) || setuid(65534)))
			_exit(100);
		for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
			struct error err = ERROR_INIT;
			char **paths = NULL;
			size_t count = 0;
			int rc = glob_expand(topfd, tries[i].pattern, &paths, &count, &err);

			if (rc != tries[i].rc || (rc && !strstr(err.text, "locked")))
				_exit((int)i + 1);
			if (!rc)
				glob_free(paths, count);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(unlinkat(topfd, "locked", AT_REMOVEDIR), 0);
}

static void test_bad_fd(void **state)
{
	struct error err = ERROR_INIT;
	char **paths = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(glob_expand(-1, "a*", &paths, &count, &err), -EBADF);
	assert_int_equal(err.code, -EBADF);
	assert_null(paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_absolute),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_path_max),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_bad_fd),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
