#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "spec/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define OTHER 65534

static char top[] = "/tmp/test_handoff.XXXXXX";
static char state_dir[sizeof(top) + 16];
static int topfd = -1;

static int setup(void **state)
{
	(void)state;
	umask(077);
	if (!mkdtemp(top) || chmod(top, 0755))
		return -1;
	snprintf(state_dir, sizeof(state_dir), "%s/var/state", top);
	topfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return topfd < 0 ? -1 : 0;
}

static int clean(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s/var", top);
	return system(command);
}

static int teardown(void **state)
{
	(void)state;
	close(topfd);
	return rmdir(top);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(topfd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static void put(const char *job_id, const char *dir, const char *tier, const char *failed)
{
	struct error err = ERROR_INIT;
	char buffers[3][256];
	struct handoff handoff = { .dir = NULL };
	char **fields[] = { &handoff.dir, &handoff.tier, &handoff.failed };
	const char *values[] = { dir, tier, failed };

	for (int i = 0; i < 3; i++) {
		if (values[i])
			*fields[i] = strcpy(buffers[i], values[i]);
	}
	if (handoff_write(state_dir, job_id, &handoff, &err))
		fail_msg("%s", err.text);
}

static void expect(const char *job_id, const char *dir, const char *tier, const char *failed)
{
	struct error err = ERROR_INIT;
	struct handoff handoff = { .dir = NULL };

	if (handoff_read(state_dir, job_id, &handoff, &err))
		fail_msg("%s", err.text);
	if (failed) {
		assert_string_equal(handoff.failed, failed);
		assert_null(handoff.dir);
		assert_null(handoff.tier);
	} else {
		assert_null(handoff.failed);
		assert_string_equal(handoff.dir, dir);
		assert_string_equal(handoff.tier, tier);
	}
	handoff_free(&handoff);
	assert_null(handoff.dir);
}

static void expect_error(const char *job_id, int rc, const char *says)
{
	struct error err = ERROR_INIT;
	struct handoff handoff = { .dir = NULL };
	int got = handoff_read(state_dir, job_id, &handoff, &err);

	if (got != rc || err.code != rc || !strstr(err.text, says))
		fail_msg("job %s: rc %d, \"%s\"; expected %d, \"%s\"", job_id, got, err.text, rc,
			says);
	assert_null(handoff.dir);
	assert_null(handoff.failed);
}

static void test_round(void **state)
{
	(void)state;
	expect_error("12", -ENOENT, "var/state");
	put("12", "/local/stage/12.0", "nvme", NULL);
	expect("12", "/local/stage/12.0", "nvme", NULL);
	expect_error("1", -ENOENT, "steps/1");
	put("1", NULL, NULL, "n1: stage-in /a: b\nc: No space left");
	expect("1", NULL, NULL, "n1: stage-in /a: b\\nc: No space left");
	/* anew, over what is there and over what a dead run left */
	assert_int_equal(symlinkat("/etc/passwd", topfd, "var/state/steps/12.tmp"), 0);
	put("12", "/local/a b:c/\xff%N/12.1", "pmem", NULL);
	expect("12", "/local/a b:c/\xff%N/12.1", "pmem", NULL);
	assert_int_equal(faccessat(topfd, "var/state/steps/12.tmp", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	/* whatever the umask is */
	assert_int_equal(mode_of("var/state"), 0711);
	assert_int_equal(mode_of("var/state/steps"), 0711);
	assert_int_equal(mode_of("var/state/steps/12"), 0644);
}

static void test_notice(void **state)
{
	char dir[] = "/a/12.0", tier[] = "nvme", failed[] = "no",
	     notice[] = "staged in 3\tfiles\r\nend";
	struct handoff cases[] = { { .dir = dir, .tier = tier, .notice = notice },
		{ .failed = failed, .notice = notice } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct handoff got = { .dir = NULL };
		struct error err = ERROR_INIT;

		assert_int_equal(handoff_write(state_dir, "12", &cases[i], &err), 0);
		expect("12", dir, tier, cases[i].failed);
		assert_int_equal(handoff_read(state_dir, "12", &got, &err), 0);
		assert_string_equal(got.notice, "staged in 3\\tfiles\\r\\nend");
		handoff_free(&got);
		assert_null(got.notice);
	}
	put("12", dir, tier, NULL);
	expect("12", dir, tier, NULL);
}

static void test_views(void **state)
{
	char dir[] = "/a/12.0", tier[] = "nvme", notice[] = "n", local[] = "in put/\xff", place[] = "/p q",
	     other[] = "x", there[] = "/y";
	struct handoff_view views[] = { { local, place, false }, { other, there, true } };
	struct handoff handoff = { .dir = dir, .tier = tier, .notice = notice, .views = views, .n_views = 2 };
	struct handoff got = { .dir = NULL };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(handoff_write(state_dir, "12", &handoff, &err), 0);
	assert_int_equal(handoff_read(state_dir, "12", &got, &err), 0);
	assert_int_equal(got.n_views, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(got.views[i].local, views[i].local);
		assert_string_equal(got.views[i].place, views[i].place);
		assert_int_equal(got.views[i].optional, views[i].optional);
	}
	assert_string_equal(got.notice, "n");
	handoff_free(&got);
	assert_int_equal(got.n_views, 0);
	strcpy(place, "/p\n");
	assert_int_equal(handoff_write(state_dir, "12", &handoff, &err), -EINVAL);
}

static void test_remove(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(handoff_remove(state_dir, "12", &err), 0);
	put("12", "/a", "b", NULL);
	put("13", "/a", "b", NULL);
	assert_int_equal(handoff_remove(state_dir, "12", &err), 0);
	assert_int_equal(handoff_remove(state_dir, "12", &err), 0);
	expect_error("12", -ENOENT, "steps/12");
	expect("13", "/a", "b", NULL);
	assert_int_equal(err.code, 0);
}

static void test_job_id(void **state)
{
	static const char *const ids[] = { "", "12.0", "../12", "/etc/passwd", "1 ", "-1", "1\n",
		"x", "123456789012345678901" };
	char dir[] = "/a", tier[] = "b";
	struct handoff handoff = { .dir = dir, .tier = tier };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct error err = ERROR_INIT;

		expect_error(ids[i], -EINVAL, "is not a job id");
		assert_int_equal(handoff_write(state_dir, ids[i], &handoff, &err), -EINVAL);
		assert_int_equal(handoff_remove(state_dir, ids[i], &err), -EINVAL);
	}
}

static void test_bad_stage(void **state)
{
	char absolute[] = "/a", relative[] = "a", newline[] = "/a\nfailed x", tier[] = "b",
	     bad_tier[] = "b\n";
	struct handoff bad[] = { { .dir = NULL }, { .dir = absolute }, { .tier = tier },
		{ .dir = relative, .tier = tier }, { .dir = newline, .tier = tier },
		{ .dir = absolute, .tier = bad_tier } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(handoff_write(state_dir, "12", &bad[i], &err), -EINVAL);
		assert_int_equal(faccessat(topfd, "var", F_OK, 0), -1);
	}
}

static void overwrite(const char *text, size_t size)
{
	int fd = openat(topfd, "var/state/steps/12", O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, text, size), size);
	assert_int_equal(close(fd), 0);
}

static void test_damaged(void **state)
{
	static const char whole[] = "stagetool-steps 1\ndir /a/b\ntier nvme\nend\n";
	static const char *const texts[] = { "stagetool-steps 2\ndir /a\ntier b\nend\n",
		"stagetool-steps 12\ndir /a\ntier b\nend\n", "stagetool-steps 1\nend\n",
		"stagetool-steps 1\ndir a\ntier b\nend\n",
		"stagetool-steps 1\ntier b\ndir /a\nend\n",
		"stagetool-steps 1\nfailed x\ndir /a\ntier b\nend\n",
		"stagetool-steps 1\nfailed x\ndir /a\nend\n",
		"stagetool-steps 1\ndir /a\ntier b\nend\nx",
		"stagetool-steps 1\nnotice x\ndir /a\ntier b\nend\n",
		"stagetool-steps 1\ndir /a\ntier b\nnotice x\nnotice y\nend\n",
		"stagetool-steps 1\ndir /a\x01\ntier b\nend\n",
		"stagetool-steps 1\ndir /a\ntier b\nview x\nend\n",
		"stagetool-steps 1\ndir /a\ntier b\nview x\nat y\nend\n",
		"stagetool-steps 1\ndir /a\ntier b\nat /y\nview x\nend\n",
		"stagetool-steps 1\ndir /a\ntier b\nview \nat /y\nend\n",
		"stagetool-steps 1\nfailed x\nview x\nat /y\nend\n",
		"stagetool-steps 1\nfailed a\tb\nend\n", "dir /a\ntier b\nend\n" };
	static const char more[] = "stagetool-steps 1\ndir /a\ntier b\nend\n\0x";

	(void)state;
	put("12", "/a/b", "nvme", NULL);
	overwrite(whole, sizeof(whole) - 1);
	expect("12", "/a/b", "nvme", NULL);
	for (size_t size = 0; size < sizeof(whole) - 1; size++) {
		overwrite(whole, size);
		expect_error("12", -EBADMSG, "is damaged");
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		overwrite(texts[i], strlen(texts[i]));
		expect_error("12", -EBADMSG, "is damaged");
	}
	overwrite(more, sizeof(more) - 1);
	expect_error("12", -EBADMSG, "is damaged");
}

/* A spec may be 64 KiB, and why it failed begins with it. */
static void test_long(void **state)
{
	static char text[100000];
	struct handoff handoff = { .failed = text, .notice = text }, read;
	struct error err = ERROR_INIT;

	(void)state;
	memset(text, '\n', sizeof(text) - 1);
	if (handoff_write(state_dir, "12", &handoff, &err) ||
		handoff_read(state_dir, "12", &read, &err))
		fail_msg("%s", err.text);
	assert_int_equal(strncmp(read.failed, "\\n\\n", 4), 0);
	assert_true(strlen(read.failed) > 10000 && strlen(read.notice) > 10000);
	handoff_free(&read);
}

/* What is in the place of the file or the directory is not believed. */
static void test_planted(void **state)
{
	(void)state;
	put("12", "/a/b", "nvme", NULL);
	assert_int_equal(fchmodat(topfd, "var/state/steps/12", 0664, 0), 0);
	expect_error("12", -EPERM, "others can write to it (mode 0664)");
	assert_int_equal(fchmodat(topfd, "var/state/steps/12", 0644, 0), 0);
	assert_int_equal(symlinkat("12", topfd, "var/state/steps/13"), 0);
	expect_error("13", -ELOOP, "steps/13");
	assert_int_equal(mkfifoat(topfd, "var/state/steps/14", 0644), 0);
	expect_error("14", -EPERM, "another type");
	assert_int_equal(mkdirat(topfd, "var/state/steps/15", 0700), 0);
	expect_error("15", -EPERM, "another type");
	assert_int_equal(fchmodat(topfd, "var/state/steps", 0733, 0), 0);
	expect_error("12", -EPERM, "state/steps: others can write to it");
	assert_int_equal(fchmodat(topfd, "var/state/steps", 0711, 0), 0);
	expect("12", "/a/b", "nvme", NULL);
	assert_int_equal(renameat(topfd, "var/state/steps", topfd, "var/state/real"), 0);
	assert_int_equal(symlinkat("real", topfd, "var/state/steps"), 0);
	expect_error("12", -ENOTDIR, "state/steps");
}

static void test_owner(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	put("12", "/a/b", "nvme", NULL);
	assert_int_equal(fchmodat(topfd, "var", 0711, 0), 0);
	/* a user reads what root wrote, and can not write there */
	pid = fork();
	if (!pid) {
		char dir[] = "/x", tier[] = "t";
		struct handoff handoff = { .dir = NULL }, other = { .dir = dir, .tier = tier };
		struct error err = ERROR_INIT;

		if (setgid(OTHER) || setuid(OTHER) || handoff_read(state_dir, "12", &handoff, &err))
			_exit(1);
		if (handoff_write(state_dir, "12", &other, &err) != -EACCES)
			_exit(2);
		if (handoff_remove(state_dir, "12", &err) != -EACCES)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect("12", "/a/b", "nvme", NULL);
	/* root does not believe what a user wrote */
	assert_int_equal(fchownat(topfd, "var/state/steps/12", OTHER, OTHER, 0), 0);
	expect_error("12", -EPERM, "belongs to uid 65534");
	assert_int_equal(fchownat(topfd, "var/state/steps/12", 0, 0, 0), 0);
	assert_int_equal(fchownat(topfd, "var/state/steps", OTHER, OTHER, 0), 0);
	expect_error("12", -EPERM, "belongs to uid 65534");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_round, clean),
		cmocka_unit_test_teardown(test_notice, clean),
		cmocka_unit_test_teardown(test_views, clean),
		cmocka_unit_test_teardown(test_remove, clean),
		cmocka_unit_test_teardown(test_job_id, clean),
		cmocka_unit_test_teardown(test_bad_stage, clean),
		cmocka_unit_test_teardown(test_damaged, clean),
		cmocka_unit_test_teardown(test_long, clean),
		cmocka_unit_test_teardown(test_planted, clean),
		cmocka_unit_test_teardown(test_owner, clean),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
