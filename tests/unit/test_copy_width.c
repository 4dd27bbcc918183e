#include "copy/engine.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <cmocka.h>

#define FILES 600

static char path[256];
static int dirfd_of_test;

/* A side that is slow to open a file (what is opened with O_NOATIME is of the source, what is made
 * of the destination), and how many threads have met it. */
static int slow_flag;
static bool slow_by_work; /* not asleep, but at work: a busy node looks like this */
static atomic_int threads;
static _Thread_local bool counted;

static void work_for(const struct timespec *time)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < time->tv_nsec);
}

int openat(int dir, const char *name, int flags, ...)
{
	const struct timespec pause = { .tv_nsec = 2 * 1000 * 1000 };
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (slow_flag && (flags & slow_flag) == slow_flag) {
		if (!counted)
			atomic_fetch_add(&threads, 1);
		counted = true;
		if (slow_by_work)
			work_for(&pause);
		else
			nanosleep(&pause, NULL);
	}
	return (int)syscall(SYS_openat, dir, name, flags, mode);
}

/* A side that is slow for each large request. */
enum { QUICK, SLOW_READS, SLOW_WRITES };
static int large;

static void wait_for_large(int kind, size_t size)
{
	const struct timespec pause = { .tv_nsec = 2 * 1000 * 1000 };

	if (large != kind || size < 512 << 10)
		return;
	if (!counted)
		atomic_fetch_add(&threads, 1);
	counted = true;
	nanosleep(&pause, NULL);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	wait_for_large(SLOW_READS, size);
	return syscall(SYS_pread64, fd, buffer, size, offset);
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
	wait_for_large(SLOW_WRITES, size);
	return syscall(SYS_pwrite64, fd, buffer, size, offset);
}

static int setup(void **state)
{
	char name[32];

	(void)state;
	snprintf(path, sizeof(path), "%s/test_copy_width.XXXXXX",
		getenv("TEST_DIR")                  ? getenv("TEST_DIR")
			: access("/dev/shm", W_OK) == 0 ? "/dev/shm" /* never waits for a disk */
							: "/tmp");
	assert_non_null(mkdtemp(path));
	dirfd_of_test = open(path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(dirfd_of_test, "s", 0700), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "s/%d", i / 20);
		if (i % 20 == 0)
			assert_int_equal(mkdirat(dirfd_of_test, name, 0700), 0);
		snprintf(name, sizeof(name), "s/%d/%d", i / 20, i);
		close(openat(dirfd_of_test, name, O_WRONLY | O_CREAT, 0600));
	}
	return 0;
}

static int teardown(void **state)
{
	char command[300];

	(void)state;
	slow_flag = 0;
	slow_by_work = false;
	close(dirfd_of_test);
	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	return system(command);
}

static enum copy_answer decide(void *ctx, const struct copy_item *item, const struct stat *dst,
	struct copy_expect *expect, struct copy_tag *tag)
{
	(void)ctx;
	(void)item;
	(void)dst;
	(void)expect;
	(void)tag;
	return COPY_SEND;
}

static int copy_of(const char *from, uint64_t files, const struct copy_options *options,
	const struct copy_hooks *hooks)
{
	struct copy *copy = NULL;
	struct copy_counts counts;

	atomic_store(&threads, 0);
	assert_int_equal(copy_new(dirfd_of_test, from, dirfd_of_test, "d", options, hooks, &copy, NULL),
		0);
	assert_int_equal(copy_run(copy, NULL), 0);
	copy_counts(copy, &counts);
	copy_free(copy);
	assert_int_equal(counts.files, files);
	return atomic_load(&threads);
}

/* How many threads had something to do with the slow side. */
static int threads_used(int flag, unsigned asked, bool with_decide)
{
	const struct copy_options options = { .threads = asked };
	const struct copy_hooks hooks = { .decide = with_decide ? decide : NULL };

	slow_flag = flag;
	return copy_of("s", FILES, &options, &hooks);
}

static void test_slow_source_gets_more_threads(void **state)
{
	(void)state;
	assert_true(threads_used(O_NOATIME, 0, false) >= 16);
}

/* With decide each file is looked at before: that it was quick does not count for its open. */
static void test_slow_source_gets_more_threads_with_decide(void **state)
{
	(void)state;
	assert_true(threads_used(O_NOATIME, 0, true) >= 16);
}

static void test_slow_destination_gets_more_threads(void **state)
{
	(void)state;
	assert_true(threads_used(O_CREAT | O_EXCL, 0, true) >= 16);
}

/* What takes long because processors are busy does not get faster by more threads. */
static void test_busy_processors_get_no_more_threads(void **state)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	(void)state;
	slow_by_work = true;
	assert_true(threads_used(O_NOATIME, 0, true) <= (processors < 2 ? 2 : processors));
}

static void test_asked_for_is_what_it_is(void **state)
{
	(void)state;
	assert_true(threads_used(O_NOATIME, 3, true) <= 3);
}

/* 3 files of 64 MiB, with one stream for each file or several. */
static void test_large_files_get_more_threads(void **state)
{
	const struct copy_options options = { .engine = "readwrite" };
	const struct copy_hooks hooks = { .decide = NULL };
	autofree char *data = malloc(1 << 20);

	(void)state;
	memset(data, 'x', 1 << 20);
	assert_int_equal(mkdirat(dirfd_of_test, "large", 0700), 0);
	for (int i = 0; i < 3; i++) {
		char name[32];
		int fd;

		snprintf(name, sizeof(name), "large/%d", i);
		fd = openat(dirfd_of_test, name, O_WRONLY | O_CREAT, 0600);
		for (int j = 0; j < 64; j++)
			assert_int_equal(write(fd, data, 1 << 20), 1 << 20);
		close(fd);
	}
	for (large = SLOW_READS; large <= SLOW_WRITES; large++)
		assert_true(copy_of("large", 3, &options, &hooks) >= 6);
	large = QUICK;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slow_source_gets_more_threads),
		TEST(test_slow_source_gets_more_threads_with_decide),
		TEST(test_slow_destination_gets_more_threads),
		TEST(test_busy_processors_get_no_more_threads),
		TEST(test_large_files_get_more_threads),
		TEST(test_asked_for_is_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
