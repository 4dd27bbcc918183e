#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char top[] = "/tmp/test_path.XXXXXX";
static int topfd = -1;

static int setup(void **state)
{
	(void)state;
	umask(022);
	if (!mkdtemp(top))
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

static void expect_text(char *got, const char *want)
{
	assert_non_null(got);
	assert_string_equal(got, want);
	free(got);
}

static void test_join(void **state)
{
	(void)state;
	expect_text(path_join("a", "b"), "a/b");
	expect_text(path_join("a/", "b"), "a/b");
	expect_text(path_join("a//", "//b"), "a/b");
	expect_text(path_join("/", "b"), "/b");
	expect_text(path_join("", "b"), "b");
	expect_text(path_join("", "/b"), "/b");
	expect_text(path_join("a", ""), "a");
	expect_text(path_join("", ""), "");
}

static void test_clean(void **state)
{
	(void)state;
	expect_text(path_clean("a//b/./c/"), "a/b/c");
	expect_text(path_clean("./a"), "a");
	expect_text(path_clean("/"), "/");
	expect_text(path_clean("//a/."), "/a");
	expect_text(path_clean("/."), "/");
	expect_text(path_clean("./."), ".");
	expect_text(path_clean(""), ".");
	expect_text(path_clean("a/../b"), "a/../b");
	expect_text(path_clean(".a/..b/...c"), ".a/..b/...c");
	expect_text(path_clean("a\n/ b\xff"), "a\n/ b\xff");
}

static void test_dotdot_and_base(void **state)
{
	(void)state;
	assert_true(path_has_dotdot(".."));
	assert_true(path_has_dotdot("a/.."));
	assert_true(path_has_dotdot("/../a"));
	assert_true(path_has_dotdot("a/../b"));
	assert_false(path_has_dotdot("a..b/..c/d.."));
	assert_false(path_has_dotdot(""));
	assert_string_equal(path_base("/a/b"), "b");
	assert_string_equal(path_base("b"), "b");
	assert_string_equal(path_base("/"), "");
}

static void expect_open(int dirfd, const char *path, int flags, unsigned long long resolve)
{
	struct error err = ERROR_INIT;
	int fd = path_open_beneath(dirfd, path, flags, 0640, resolve, &err);

	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
}

static void expect_refused(int dirfd, const char *path, int flags, int code)
{
	struct error err = ERROR_INIT;

	assert_int_equal(path_open_beneath(dirfd, path, flags, 0, 0, &err), code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.text, path));
}

static void test_beneath(void **state)
{
	struct error err = ERROR_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(mkdirat(topfd, "dir", 0755), 0);
	expect_open(topfd, "dir/file", O_WRONLY | O_CREAT | O_EXCL, 0);
	assert_int_equal(fstatat(topfd, "dir/file", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(symlinkat("dir", topfd, "inside"), 0);
	assert_int_equal(symlinkat("/etc/passwd", topfd, "absolute"), 0);
	assert_int_equal(symlinkat("../..", topfd, "dir/up"), 0);
	expect_open(topfd, "inside/file", O_RDONLY, 0);
	expect_open(topfd, "dir/../dir/file", O_RDONLY, 0);
	expect_open(topfd, "", O_RDONLY | O_DIRECTORY, 0);
	expect_refused(topfd, "absolute", O_RDONLY, -EXDEV);
	expect_refused(topfd, "dir/up/passwd", O_RDONLY, -EXDEV);
	expect_refused(topfd, "../etc", O_RDONLY, -EXDEV);
	expect_refused(topfd, "/etc/passwd", O_RDONLY, -EXDEV);
	expect_refused(topfd, "missing", O_RDONLY, -ENOENT);
	assert_int_equal(
		path_open_beneath(topfd, "inside/file", O_RDONLY, 0, RESOLVE_NO_SYMLINKS, &err),
		-ELOOP);
}

/* A directory chain of 40 names of 200 bytes: 8 KB, twice PATH_MAX. */
static char *long_path(void)
{
	char *path = calloc(1, 40 * 201 + 1);

	assert_non_null(path);
	for (int i = 0; i < 40; i++) {
		memset(path + i * 201, 'x', 200);
		path[i * 201 + 200] = '/';
	}
	path[40 * 201 - 1] = '\0';
	return path;
}

static void test_long(void **state)
{
	autofree char *path = long_path(), *whole = path_join(top, path), *file = NULL;
	autofree char *component = calloc(1, 5000);
	struct error err = ERROR_INIT;
	struct stat st, again;
	int fd;

	(void)state;
	fd = path_make_dirs(topfd, path, 0755, &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	fd = path_make_dirs(AT_FDCWD, whole, 0755, &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &again), 0);
	assert_int_equal(st.st_ino, again.st_ino);
	close(fd);
	file = path_join(path, "file");
	expect_open(topfd, file, O_WRONLY | O_CREAT, 0);
	expect_open(topfd, file, O_RDONLY, RESOLVE_NO_SYMLINKS);
	free(file);
	file = path_join(whole, "file");
	assert_int_equal(open(file, O_RDONLY), -1);
	fd = path_open(file, O_RDONLY, &err);
	assert_true(fd >= 0);
	close(fd);
	memset(component, 'y', 4999);
	assert_int_equal(path_open(component, O_RDONLY, &err), -ENAMETOOLONG);
	assert_int_equal(path_open_beneath(topfd, component, O_RDONLY, 0, 0, &err), -ENAMETOOLONG);
}

static void test_make_dirs(void **state)
{
	struct error err = ERROR_INIT;
	struct stat st;
	int fd = path_make_dirs(topfd, "one//two/./three/", 0711, &err);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	close(fd);
	fd = openat(topfd, "one/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(path_make_dirs(topfd, "one/file/x", 0755, &err), -ENOTDIR);
	assert_int_equal(symlinkat("nowhere", topfd, "dangling"), 0);
	assert_int_equal(path_make_dirs(topfd, "dangling/x", 0755, &err), -ENOENT);
	assert_int_equal(faccessat(topfd, "nowhere", F_OK, 0), -1);
}

/* While another process exchanges a directory and a symlink that leads out, no open may arrive
 * outside: it finds the inner file or it fails. */
static void test_race(void **state)
{
	struct stat inner, st;
	int found = 0;
	pid_t child;

	(void)state;
	assert_int_equal(mkdirat(topfd, "race", 0755), 0);
	assert_int_equal(mkdirat(topfd, "race/a", 0755), 0);
	close(openat(topfd, "race/a/passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(fstatat(topfd, "race/a/passwd", &inner, 0), 0);
	assert_int_equal(symlinkat("/etc", topfd, "race/b"), 0);
	child = fork();
	if (!child)
		for (;;)
			syscall(SYS_renameat2, topfd, "race/a", topfd, "race/b", 2 /* EXCHANGE */);
	for (int i = 0; i < 20000; i++) {
		int fd = path_open_beneath(topfd, "race/a/passwd", O_RDONLY, 0, 0, NULL);

		if (fd < 0)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_ino, inner.st_ino);
		found++;
		close(fd);
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(found > 0);
}

/* In a child whose kernel has no openat2. */
static int without_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 1;
	if (path_open_beneath(topfd, "dir/file", O_RDONLY, 0, 0, NULL) < 0)
		return 2;
	if (path_open_beneath(topfd, "inside/file", O_RDONLY, 0, 0, NULL) != -ENOTDIR)
		return 3;
	if (path_open_beneath(topfd, "absolute", O_RDONLY, 0, 0, NULL) != -ELOOP)
		return 4;
	if (path_open_beneath(topfd, "dir/../../etc", O_RDONLY, 0, 0, NULL) != -EXDEV)
		return 5;
	if (path_open_beneath(topfd, "dir/file", O_RDONLY, 0, RESOLVE_NO_XDEV, NULL) != -ENOSYS)
		return 6;
	return 0;
}

static void test_old_kernel(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		_exit(without_openat2());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_dotdot_and_base),
		cmocka_unit_test(test_beneath),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_make_dirs),
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_old_kernel),
	};

	return cmocka_run_group_tests_name("path", tests, setup, teardown);
}
