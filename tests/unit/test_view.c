#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "spank/view.h"

/* Below /tmp: most other places are protected. stage/in/f says "staged", place/f says "place". */
static char top[64];
static const struct view_user nobody = { .uid = 65534, .gid = 65534 };

static void make(const char *name, const char *text)
{
	autofree char *path = path_join(top, name);

	if (!text) {
		assert_int_equal(mkdir(path, 0755), 0);
	} else {
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

		assert_int_equal(write(fd, text, strlen(text)), strlen(text));
		close(fd);
	}
}

static int setup(void **state)
{
	(void)state;
	strcpy(top, "/tmp/test_view.XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(chmod(top, 0755), 0);
	make("stage", NULL);
	make("stage/in", NULL);
	make("stage/in/f", "staged");
	make("place", NULL);
	make("place/f", "place");
	return 0;
}

static int teardown(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf --one-file-system '%s'", top);
	return system(command);
}

/* What the file f of a place says here. */
static bool says(const char *place, const char *text)
{
	autofree char *dir = path_join(top, place), *path = path_join(dir, "f");
	char read_back[16] = "";
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, read_back, sizeof(read_back) - 1) >= 0 &&
	       !strcmp(read_back, text);
}

static int show(const char *local, const char *place, struct error *err)
{
	autofree char *stage = path_join(top, "stage"), *at = path_join(top, place);
	struct handoff_view view = { .local = (char *)(uintptr_t)local, .place = at };
	const struct handoff handoff = { .dir = stage, .views = &view, .n_views = 1 };
	const struct conf conf = { .state_dir = (char *)(uintptr_t)"/var/lib/stagetool" };

	return view_show(&handoff, &conf, &nobody, err);
}

/* body in a process of its own; its exit status. 77: there is no mount namespace to be had. */
static int in_child(int (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int task(void)
{
	struct error err = ERROR_INIT;

	if (show("in", "place", &err)) {
		print_error("%s\n", err.text);
		return 1;
	}
	return geteuid() == 0 && says("place", "staged") ? 0 : 2;
}

/* The node: its / is shared, as systemd makes it. */
static int shared_node(void)
{
	int rc;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL))
		return 77;
	rc = in_child(task);
	return rc ? rc : says("place", "place") ? 0 : 3;
}

static int private_node(void)
{
	int rc;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 77;
	rc = in_child(task);
	return rc ? rc : says("place", "place") ? 0 : 3;
}

static void expect_shown(int (*body)(void))
{
	int rc = getuid() ? 77 : in_child(body);

	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
}

static void test_seen_by_the_task_alone(void **state)
{
	(void)state;
	expect_shown(private_node);
	expect_shown(shared_node);
}

static int refused_code;
static const char *refused_local, *refused_place;

static int refused(void)
{
	struct error err = ERROR_INIT;
	int rc = show(refused_local, refused_place, &err);

	if (rc != refused_code || geteuid() || getegid())
		print_error("%d instead of %d: %s\n", rc, refused_code, err.text);
	return rc == refused_code && !geteuid() && !getegid() && says("place", "place") ? 0 : 1;
}

static void expect_refused(const char *local, const char *place, int code)
{
	refused_local = local;
	refused_place = place;
	refused_code = code;
	assert_int_equal(in_child(refused), 0);
}

static void test_what_is_refused(void **state)
{
	autofree char *link = path_join(top, "stage/link"), *leads = path_join(top, "leads");
	autofree char *closed = path_join(top, "closed");

	(void)state;
	if (getuid()) {
		skip();
		return;
	}
	if (in_child(private_node) == 77)
		skip();
	assert_int_equal(symlink("/etc", link), 0);
	assert_int_equal(symlink("/etc", leads), 0);
	make("closed", NULL);
	make("closed/place", NULL);
	assert_int_equal(chmod(closed, 0700), 0);
	expect_refused("link", "place", -EINVAL);
	expect_refused("link/ssl", "place", -ELOOP);
	expect_refused("../place", "place", -EXDEV);
	expect_refused("in", "leads", -EPERM);
	expect_refused("in", "leads/ssl", -EPERM);
	expect_refused("in", "none", -ENOENT);
	expect_refused("in", "place/f", -EINVAL);
	expect_refused("none", "place", -ENOENT);
	/* Root could. */
	expect_refused("in", "closed/place", -EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_seen_by_the_task_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
