#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tree/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NOBODY 65534

static char top[] = "/dev/shm/test_remove.XXXXXX";
static int topfd = -1;

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(top) || chmod(top, 0777))
		return -1;
	topfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return topfd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	close(topfd);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static int run(int (*body)(void))
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(body());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool is_there(const char *name)
{
	struct stat st;

	return fstatat(topfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int make_file(const char *name)
{
	int fd = openat(topfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : close(fd);
}

/* Every kind of entry, and directories that their owner may not enter or change. */
static int make_tree(void)
{
	return mkdirat(topfd, "t", 0755) || mkdirat(topfd, "t/a", 0755) ||
	       mkdirat(topfd, "t/a/b", 0755) || make_file("t/a/b/f") || make_file("t/a/f") ||
	       mkfifoat(topfd, "t/fifo", 0600) || symlinkat("/etc", topfd, "t/a/link") ||
	       symlinkat("nowhere", topfd, "t/dangling") || mkdirat(topfd, "t/none", 0755) ||
	       make_file("t/none/f") || fchmodat(topfd, "t/none", 0, 0) ||
	       fchmodat(topfd, "t/a/b", 0555, 0) || fchmodat(topfd, "t/a", 0555, 0);
}

static int body_make_as_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	return make_tree() ? 2 : 0;
}

static int body_make_and_remove_as_nobody(void)
{
	int code = body_make_as_nobody();

	return code ? code : remove_tree(topfd, "t", NULL) ? 3 : 0;
}

static void test_users_tree(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(run(body_make_as_nobody), 0);
	assert_int_equal(remove_tree(topfd, "t", &err), 0);
	assert_false(is_there("t"));
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	assert_int_equal(run(body_make_and_remove_as_nobody), 0);
	assert_false(is_there("t"));
}

static void test_single(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(remove_tree(topfd, "missing", &err), 0);
	assert_int_equal(make_file("single"), 0);
	assert_int_equal(remove_tree(topfd, "single", &err), 0);
	assert_false(is_there("single"));
	assert_int_equal(mkdirat(topfd, "target", 0755), 0);
	assert_int_equal(make_file("target/f"), 0);
	assert_int_equal(symlinkat("target", topfd, "link"), 0);
	assert_int_equal(remove_tree(topfd, "link", &err), 0);
	assert_false(is_there("link"));
	assert_true(is_there("target/f"));
}

/* Deeper than the remover goes down at once, with names that it would like to use. */
static void test_deep(void **state)
{
	struct error err = ERROR_INIT;
	autoclose int at = dup(topfd);

	(void)state;
	for (int i = 0; i < 400; i++) {
		int below;

		assert_int_equal(mkdirat(at, "deeper", 0755), 0);
		below = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(below >= 0);
		close(at);
		at = below;
		close(openat(at, ".stagetool-remove.0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	if (remove_tree(topfd, "deeper", &err))
		fail_msg("%s", err.text);
	assert_false(is_there("deeper"));
}

static void test_many(void **state)
{
	struct error err = ERROR_INIT;
	char name[64];

	(void)state;
	assert_int_equal(mkdirat(topfd, "many", 0755), 0);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		assert_int_equal(make_file(name), 0);
	}
	assert_int_equal(remove_tree(topfd, "many", &err), 0);
	assert_false(is_there("many"));
}

static int body_mount(void)
{
	struct error err = ERROR_INIT;
	char source[128], target[128];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 77;
	topfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* in this namespace */
	if (mkdirat(topfd, "other", 0755) || make_file("other/precious") ||
		mkdirat(topfd, "m", 0755) || mkdirat(topfd, "m/in", 0755) || make_file("m/f"))
		return 1;
	snprintf(source, sizeof(source), "%s/other", top);
	snprintf(target, sizeof(target), "%s/m/in", top);
	if (mount(source, target, NULL, MS_BIND, NULL))
		return 77;
	if (remove_tree(topfd, "m", &err) != -EXDEV ||
		!strstr(err.text, "in: something is mounted"))
		return 2;
	if (!is_there("other/precious") || is_there("m/f"))
		return 3;
	if (umount(target) || remove_tree(topfd, "m", &err) || is_there("m"))
		return 4;
	return is_there("other/precious") ? 0 : 5;
}

static void test_mount(void **state)
{
	int code;

	(void)state;
	code = geteuid() == 0 ? run(body_mount) : 77;
	if (code == 77)
		skip();
	assert_int_equal(code, 0);
}

/* While a directory and a symlink to an outer one change places, the outer one stays whole. */
static void test_race(void **state)
{
	char outer[128];
	pid_t child;

	(void)state;
	assert_int_equal(mkdirat(topfd, "outer", 0755), 0);
	assert_int_equal(make_file("outer/precious"), 0);
	snprintf(outer, sizeof(outer), "%s/outer", top);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(mkdirat(topfd, "r", 0755), 0);
		assert_int_equal(mkdirat(topfd, "r/a", 0755), 0);
		assert_int_equal(make_file("r/a/precious"), 0);
		assert_int_equal(symlinkat(outer, topfd, "r/b"), 0);
		child = fork();
		if (!child)
			for (;;)
				syscall(SYS_renameat2, topfd, "r/a", topfd, "r/b",
					2 /* EXCHANGE */);
		remove_tree(topfd, "r", NULL);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_true(is_there("outer/precious"));
		assert_int_equal(remove_tree(topfd, "r", NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users_tree),
		cmocka_unit_test(test_single),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_race),
	};

	return cmocka_run_group_tests_name("remove", tests, setup, teardown);
}
