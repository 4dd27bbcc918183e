#include "copy/engine.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <cmocka.h>

static struct {
	char path[256];
	int fd;
} dir;

/* Called once, when the first byte of a file is read, with the name (below dir) that was opened. */
static void (*before_read)(const char *name);
static char first[300];

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	void (*before)(const char *name) = before_read;
	char link[64], path[300] = "";

	before_read = NULL;
	if (before) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		assert_true(readlink(link, path, sizeof(path) - 1) > 0);
		snprintf(first, sizeof(first), "s/%s", strrchr(path, '/') + 1);
		before(first);
	}
	return syscall(SYS_pread64, fd, data, size, offset);
}

static int setup(void **state)
{
	(void)state;
	before_read = NULL;
	snprintf(dir.path, sizeof(dir.path), "%s/test_copy_links.XXXXXX",
		getenv("TEST_DIR") ? getenv("TEST_DIR") : "/tmp");
	assert_non_null(mkdtemp(dir.path));
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(dir.fd, "s", 0700), 0);
	alarm(60); /* a name that waits for ever is a failure, not a hang */
	return 0;
}

static int teardown(void **state)
{
	char command[300];

	(void)state;
	alarm(0);
	close(dir.fd);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir.path);
	return system(command);
}

static void put(const char *name, const char *text)
{
	autoclose int fd = openat(dir.fd, name, O_WRONLY | O_CREAT | O_APPEND, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void assert_text(const char *name, const char *text)
{
	autoclose int fd = openat(dir.fd, name, O_RDONLY | O_NOFOLLOW);
	char buffer[256];
	ssize_t n = read(fd, buffer, sizeof(buffer) - 1);

	assert_true(n >= 0);
	buffer[n] = '\0';
	assert_string_equal(buffer, text);
}

static struct stat stat_of(const char *name)
{
	struct stat st = { 0 };

	assert_int_equal(fstatat(dir.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static struct copy_counts copy_with(
	const struct copy_options *options, const struct copy_hooks *hooks)
{
	struct copy_counts counts;
	struct copy *copy = NULL;

	assert_int_equal(copy_new(dir.fd, "s", dir.fd, "d", options, hooks, &copy, NULL), 0);
	assert_int_equal(copy_run(copy, NULL), 0);
	copy_counts(copy, &counts);
	copy_free(copy);
	return counts;
}

static struct copy_counts copy_tree(void)
{
	const struct copy_options options = { .threads = 2, .publish = true };
	const struct copy_hooks hooks = { .ctx = NULL };

	return copy_with(&options, &hooks);
}

static const char *const names[] = { "s/a", "s/b", "s/c" };

static void make_links(void)
{
	put("s/a", "one");
	assert_int_equal(linkat(dir.fd, "s/a", dir.fd, "s/b", 0), 0);
	assert_int_equal(linkat(dir.fd, "s/a", dir.fd, "s/c", 0), 0);
	put("other", "other");
}

static void append_and_exchange(const char *name)
{
	put("s/b", ", two");
	assert_int_equal(renameat(dir.fd, "other", dir.fd, name), 0);
}

static void append_and_make_symlink(const char *name)
{
	put("s/b", ", two");
	assert_int_equal(unlinkat(dir.fd, name, 0), 0);
	assert_int_equal(symlinkat("to", dir.fd, name), 0);
}

static void append_and_remove(const char *name)
{
	put("s/b", ", two");
	assert_int_equal(unlinkat(dir.fd, name, 0), 0);
}

/* The two names that are left are one file, with what it has now. */
static void assert_others_are_linked(void)
{
	char name[300];
	ino_t inode = 0;

	for (size_t i = 0; i < 3; i++) {
		if (strcmp(names[i], first) == 0)
			continue;
		snprintf(name, sizeof(name), "d/%s", names[i] + 2);
		assert_text(name, "one, two");
		assert_int_equal(stat_of(name).st_nlink, 2);
		assert_true(!inode || stat_of(name).st_ino == inode);
		inode = stat_of(name).st_ino;
	}
}

/* The name whose turn it is turns into something else while it is read: the other names go on. */
static void test_first_name_becomes_another_file(void **state)
{
	char name[300];

	(void)state;
	make_links();
	before_read = append_and_exchange;
	assert_int_equal(copy_tree().files, 3);
	snprintf(name, sizeof(name), "d/%s", first + 2);
	assert_text(name, "other");
	assert_others_are_linked();
}

static void test_first_name_becomes_a_symlink(void **state)
{
	struct copy_counts counts;

	(void)state;
	make_links();
	before_read = append_and_make_symlink;
	counts = copy_tree();
	assert_int_equal(counts.files, 2);
	assert_int_equal(counts.symlinks, 1);
	assert_others_are_linked();
}

static void test_first_name_vanishes(void **state)
{
	struct copy_counts counts;

	(void)state;
	make_links();
	before_read = append_and_remove;
	counts = copy_tree();
	assert_int_equal(counts.files, 2);
	assert_int_equal(counts.vanished, 1);
	assert_others_are_linked();
}

static void test_symlinks_and_fifos_stay_linked(void **state)
{
	struct copy_counts counts;

	(void)state;
	assert_int_equal(symlinkat("nowhere", dir.fd, "s/l"), 0);
	assert_int_equal(linkat(dir.fd, "s/l", dir.fd, "s/m", 0), 0);
	assert_int_equal(mkfifoat(dir.fd, "s/p", 0600), 0);
	assert_int_equal(linkat(dir.fd, "s/p", dir.fd, "s/q", 0), 0);
	counts = copy_tree();
	assert_int_equal(counts.symlinks, 2);
	assert_int_equal(counts.others, 2);
	assert_int_equal(stat_of("d/l").st_ino, stat_of("d/m").st_ino);
	assert_true(S_ISLNK(stat_of("d/l").st_mode));
	assert_int_equal(stat_of("d/p").st_ino, stat_of("d/q").st_ino);
	assert_true(S_ISFIFO(stat_of("d/p").st_mode));
}

static enum copy_answer skip_what_is_there(void *ctx, const struct copy_item *item,
	const struct stat *dst, struct copy_expect *expect, struct copy_tag *tag)
{
	(void)ctx;
	(void)item;
	(void)expect;
	(void)tag;
	return dst && S_ISREG(dst->st_mode) ? COPY_SKIP : COPY_SEND;
}

/* What an interrupted run leaves: some names are there, equal, but as files of their own. */
static void test_equal_files_become_links(void **state)
{
	const struct copy_options options = { .threads = 2, .publish = true, .look = true };
	const struct copy_hooks hooks = { .decide = skip_what_is_there };
	struct timespec times[2] = { { 1, 0 }, { 1600000000, 5 } };
	struct copy_counts counts;

	(void)state;
	make_links();
	assert_int_equal(mkdirat(dir.fd, "d", 0700), 0);
	put("d/a", "one");
	put("d/c", "one");
	utimensat(dir.fd, "s/a", times, 0);
	utimensat(dir.fd, "d/a", times, 0);
	utimensat(dir.fd, "d/c", times, 0);
	counts = copy_with(&options, &hooks);
	assert_int_equal(counts.attributes + counts.failed + counts.conflicts, 0);
	assert_int_equal(stat_of("d/a").st_nlink, 3);
	assert_int_equal(stat_of("d/a").st_ino, stat_of("d/b").st_ino);
	assert_int_equal(stat_of("d/a").st_ino, stat_of("d/c").st_ino);
	counts = copy_with(&options, &hooks);
	assert_int_equal(counts.unchanged, 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_name_becomes_another_file),
		TEST(test_first_name_becomes_a_symlink),
		TEST(test_first_name_vanishes),
		TEST(test_symlinks_and_fifos_stay_linked),
		TEST(test_equal_files_become_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
