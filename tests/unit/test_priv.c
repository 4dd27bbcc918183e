#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

/* Runs body in a child; it returns 0 or a number that says where it went wrong. */
static int in_child(int (*body)(void))
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(body());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int drop_to_nobody(void)
{
	gid_t groups[] = { NOBODY, 12345 };
	struct priv_user user = { NOBODY, NOBODY, NULL, groups, 2 };

	return priv_drop(&user, NULL);
}

static int body_drop(void)
{
	gid_t groups[8];
	struct stat st;
	int fd;

	if (drop_to_nobody())
		return 1;
	if (getuid() != NOBODY || geteuid() != NOBODY || getgid() != NOBODY)
		return 2;
	if (getgroups(8, groups) != 2 || groups[1] + groups[0] != NOBODY + 12345)
		return 3;
	if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0 || setgroups(0, NULL) == 0)
		return 4;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 5;
	if (open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0)
		return 6;
	unlink("/tmp/test_priv_file");
	fd = open("/tmp/test_priv_file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 || fstat(fd, &st) || (st.st_mode & 0777) != 0600 || st.st_uid != NOBODY)
		return 7;
	unlink("/tmp/test_priv_file");
	return drop_to_nobody() ? 8 : 0; /* once more is harmless */
}

static void test_drop(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(in_child(body_drop), 0);
}

/* Under these securebits setuid() alone leaves a process with all of root's capabilities. */
static int body_securebits(void)
{
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0))
		return 1;
	if (drop_to_nobody())
		return 2;
	return open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0 ? 3 : 0;
}

static void test_securebits(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(in_child(body_securebits), 0);
}

/* An ordinary process can not become somebody else, and one with a way back is found out. */
static int body_not_root(void)
{
	gid_t group = 4242;
	struct priv_user other = { 4242, 4242, NULL, &group, 1 };

	if (setresuid(NOBODY, NOBODY, 0))
		return 1;
	if (drop_to_nobody() != -EPERM)
		return 2;
	if (setresuid(NOBODY, NOBODY, NOBODY))
		return 3;
	if (priv_drop(&other, NULL) != -EPERM)
		return 4;
	return 0;
}

static void test_not_root(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(in_child(body_not_root), 0);
}

static void test_lookup(void **state)
{
	struct error err = ERROR_INIT;
	struct priv_user user;
	bool found = false;

	(void)state;
	assert_int_equal(priv_user_get(0, 0, &user, &err), 0);
	assert_string_equal(user.name, "root");
	for (int i = 0; i < user.n_groups; i++)
		found |= user.groups[i] == 0;
	assert_true(found);
	priv_user_free(&user);
	assert_int_equal(priv_user_get(3123456, 3123457, &user, &err), 0);
	assert_null(user.name);
	assert_int_equal(user.n_groups, 1);
	assert_int_equal(user.groups[0], 3123457);
	priv_user_free(&user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_securebits),
		cmocka_unit_test(test_not_root),
		cmocka_unit_test(test_lookup),
	};

	return cmocka_run_group_tests_name("priv", tests, NULL, NULL);
}
