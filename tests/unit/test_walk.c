#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tree/walk.h"

struct seen {
	atomic_ulong dirs, entries, left, failed, outside, unreadable;
	atomic_int last_code;
	const char *leave_out; /* enter says 1 for this name */
	bool check_pins;
	bool slow;              /* an entry takes a moment */
	atomic_ulong most_open; /* directories that were entered and not left */
};

static int seen_enter(void *ctx, struct walk_dir *dir, const struct stat *st, unsigned worker)
{
	struct seen *seen = ctx;
	unsigned long open, most;

	(void)worker;
	assert_true(S_ISDIR(st->st_mode));
	assert_true(!walk_dir_parent(dir) == !walk_dir_depth(dir));
	if (seen->leave_out && !strcmp(walk_dir_name(dir), seen->leave_out))
		return 1;
	open = atomic_fetch_add(&seen->dirs, 1) + 1 - atomic_load(&seen->left);
	for (most = atomic_load(&seen->most_open); open > most;)
		if (atomic_compare_exchange_weak(&seen->most_open, &most, open))
			break;
	return 0;
}

static void seen_entries(void *ctx, struct walk_dir *dir, const struct walk_entry *entries,
	unsigned count, unsigned worker)
{
	struct seen *seen = ctx;

	(void)worker;
	for (unsigned i = 0; i < count; i++) {
		assert_true(entries[i].type != DT_DIR);
		if (!strncmp(entries[i].name, "outside", 7))
			atomic_fetch_add(&seen->outside, 1);
	}
	atomic_fetch_add(&seen->entries, count);
	if (seen->slow)
		usleep(500 * count);
	if (seen->check_pins) {
		struct error err = ERROR_INIT;
		struct stat st;
		int fd = walk_dir_pin(dir, &err);

		if (fd < 0)
			return;
		assert_int_equal(fstatat(fd, entries[0].name, &st, AT_SYMLINK_NOFOLLOW), 0);
		walk_dir_unpin(dir);
	}
}

static void seen_leave(void *ctx, struct walk_dir *dir, unsigned worker)
{
	struct seen *seen = ctx;

	(void)worker;
	atomic_fetch_add(&seen->left, 1);
	if (seen->check_pins && walk_dir_parent(dir)) {
		struct error err = ERROR_INIT;
		int fd = walk_dir_pin(walk_dir_parent(dir), &err);

		assert_true(fd >= 0);
		walk_dir_unpin(walk_dir_parent(dir));
	}
}

static void seen_failed(
	void *ctx, struct walk_dir *dir, const char *name, const struct error *err, unsigned worker)
{
	struct seen *seen = ctx;

	(void)dir;
	(void)name;
	(void)worker;
	atomic_fetch_add(&seen->failed, 1);
	atomic_store(&seen->last_code, err->code);
}

static const struct walk_ops seen_ops = { .enter = seen_enter,
		.entries = seen_entries, .leave = seen_leave, .failed = seen_failed };

static int walk(int fd, unsigned width, const struct walk_options *options, struct seen *seen)
{
	struct error err = ERROR_INIT;
	struct pool *pool;
	int rc;

	assert_int_equal(pool_start(width, &pool, &err), 0);
	rc = walk_run(pool, fd, &seen_ops, seen, options, &err);
	pool_free(pool);
	assert_int_equal(atomic_load(&seen->dirs), atomic_load(&seen->left));
	return rc;
}

static char scratch[64];

static int make_scratch(void **state)
{
	int *fd = malloc(sizeof(*fd));

	strcpy(scratch,
		access("/dev/shm", W_OK) ? "/tmp/test_walk.XXXXXX" : "/dev/shm/test_walk.XXXXXX");
	if (!fd || !mkdtemp(scratch))
		return -1;
	*fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = fd;
	return *fd < 0 ? -1 : 0;
}

static int remove_scratch(void **state)
{
	pid_t child = fork();

	close(*(int *)*state);
	free(*state);
	if (!child) {
		execlp("rm", "rm", "-rf", "--", scratch, (char *)NULL);
		_exit(127);
	}
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static void make_file(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static int make_dir(int dirfd, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(dirfd, name, 0700), 0);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static long resident_peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void test_kinds(void **state)
{
	int fd = *(int *)*state;
	struct seen seen = { 0 };
	autoclose int sub = make_dir(fd, "sub");
	autoclose int skipped = make_dir(fd, "skipped");

	seen.leave_out = "skipped";
	seen.check_pins = true;
	make_file(fd, "a");
	make_file(sub, "b\n");
	make_file(skipped, "c");
	assert_int_equal(symlinkat("sub", fd, "link"), 0);
	assert_int_equal(mkfifoat(sub, "fifo", 0600), 0);
	assert_int_equal(walk(fd, 3, NULL, &seen), 0);
	assert_int_equal(atomic_load(&seen.dirs), 2);
	assert_int_equal(atomic_load(&seen.entries), 4);
	assert_int_equal(atomic_load(&seen.failed), 0);
}

struct paths {
	char *path[2];
};

static int path_enter(void *ctx, struct walk_dir *dir, const struct stat *st, unsigned worker)
{
	struct paths *paths = ctx;

	(void)st;
	(void)worker;
	if (walk_dir_depth(dir) == 2)
		paths->path[0] = walk_dir_path(dir, NULL);
	return 0;
}

static void path_entries(void *ctx, struct walk_dir *dir, const struct walk_entry *entries,
	unsigned count, unsigned worker)
{
	struct paths *paths = ctx;

	(void)count;
	(void)worker;
	paths->path[1] = walk_dir_path(dir, entries[0].name);
	if (!walk_dir_parent(dir)) {
		char *root = walk_dir_path(dir, NULL);

		assert_string_equal(root, "");
		free(root);
	}
}

static void path_leave(void *ctx, struct walk_dir *dir, unsigned worker)
{
	(void)ctx;
	(void)dir;
	(void)worker;
}

static void test_paths(void **state)
{
	static const struct walk_ops ops = { .enter = path_enter,
		.entries = path_entries, .leave = path_leave, .failed = seen_failed };
	struct paths paths = { { NULL } };
	struct error err = ERROR_INIT;
	struct pool *pool;
	autoclose int one = make_dir(*(int *)*state, "one");
	autoclose int two = make_dir(one, "two");

	assert_int_equal(pool_start(1, &pool, &err), 0);
	assert_int_equal(walk_run(pool, *(int *)*state, &ops, &paths, NULL, &err), 0);
	assert_string_equal(paths.path[0], "one/two");
	make_file(two, "x");
	free(paths.path[0]);
	assert_int_equal(walk_run(pool, *(int *)*state, &ops, &paths, NULL, &err), 0);
	assert_string_equal(paths.path[1], "one/two/x");
	free(paths.path[0]);
	free(paths.path[1]);
	pool_free(pool);
}

/* Far deeper than PATH_MAX, than the stack of a recursion, and than the number of fds. */
static void test_deep(void **state)
{
	enum { DEPTH = 20000 };
	struct rlimit limit, low;
	struct seen seen = { 0 };
	int fd = dup(*(int *)*state);

	for (int i = 0; i < DEPTH; i++) {
		int next = make_dir(fd, "directory");

		if (i % 1000 == 0)
			make_file(next, "file");
		close(fd);
		fd = next;
	}
	close(fd);
	getrlimit(RLIMIT_NOFILE, &limit);
	low = limit;
	low.rlim_cur = low.rlim_max = 2000;
	if (!fork()) {
		setrlimit(RLIMIT_NOFILE, &low);
		seen.check_pins = true;
		assert_int_equal(walk(*(int *)*state, 4, NULL, &seen), 0);
		assert_int_equal(atomic_load(&seen.dirs), DEPTH + 1);
		assert_int_equal(atomic_load(&seen.entries), DEPTH / 1000);
		assert_int_equal(atomic_load(&seen.failed), 0);
		_exit(0);
	} else {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	/* rm opens every level, so it would run out of fds: take the chain apart from above. */
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(renameat(*(int *)*state, "directory", *(int *)*state, "top"), 0);
		fd = openat(*(int *)*state, "top", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		unlinkat(fd, "file", 0);
		if (i < DEPTH - 1)
			assert_int_equal(renameat(fd, "directory", *(int *)*state, "directory"), 0);
		close(fd);
		assert_int_equal(unlinkat(*(int *)*state, "top", AT_REMOVEDIR), 0);
	}
}

/* A directory with very many entries is not held in memory: it grows by buffers, not entries. */
static void test_wide(void **state)
{
	enum { COUNT = 200000 };
	int fd = *(int *)*state;
	struct seen seen = { 0 };
	long before;

	make_file(fd, "first");
	for (int i = 1; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "entry-number-%d", i);
		if (linkat(fd, "first", fd, name, 0))
			make_file(fd, name);
	}
	before = resident_peak_kib();
	assert_int_equal(walk(fd, 4, NULL, &seen), 0);
	assert_int_equal(atomic_load(&seen.entries), COUNT);
	print_message("%d entries: peak %ld KiB, %ld KiB more than before\n", COUNT,
		resident_peak_kib(), resident_peak_kib() - before);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(resident_peak_kib() - before < 4 * 1024);
#endif
}

struct swapper {
	int fd;
	atomic_bool stop;
	atomic_ulong swaps;
};

/* Directories and symlinks to a place outside change names all the time. */
static void *swap_run(void *arg)
{
	struct swapper *swapper = arg;

	while (!atomic_load(&swapper->stop)) {
		for (int i = 0; i < 8; i++) {
			char dir[16], link[16];

			snprintf(dir, sizeof(dir), "d%d", i);
			snprintf(link, sizeof(link), "l%d", i);
			syscall(SYS_renameat2, swapper->fd, dir, swapper->fd, link,
				2 /* exchange */);
			atomic_fetch_add(&swapper->swaps, 1);
		}
	}
	return NULL;
}

static void test_races(void **state)
{
	int fd = *(int *)*state;
	autoclose int outside = make_dir(fd, "elsewhere");
	autoclose int tree = make_dir(fd, "tree");
	struct swapper swapper = { tree, false, 0 };
	struct seen seen = { 0 };
	pthread_t thread;

	make_file(outside, "outside-file");
	close(make_dir(outside, "outside-dir"));
	for (int i = 0; i < 8; i++) {
		char name[16];
		autoclose int sub = -1, below = -1;

		snprintf(name, sizeof(name), "d%d", i);
		sub = make_dir(tree, name);
		below = make_dir(sub, "below");
		make_file(below, "inside-file");
		snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(symlinkat("../elsewhere", tree, name), 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, swap_run, &swapper), 0);
	for (int round = 0; round < 400; round++) {
		seen.check_pins = false;
		assert_int_equal(walk(tree, 2, NULL, &seen), 0);
	}
	atomic_store(&swapper.stop, true);
	pthread_join(thread, NULL);
	print_message("%lu exchanges during the walks\n", atomic_load(&swapper.swaps));
	assert_true(atomic_load(&swapper.swaps) > 400);
	assert_int_equal(atomic_load(&seen.outside), 0);
	assert_true(atomic_load(&seen.entries) > 400 * 8);
}

static void test_unreadable(void **state)
{
	int fd = *(int *)*state;
	int status;

	close(make_dir(fd, "closed"));
	close(make_dir(fd, "left-out"));
	make_file(fd, "file");
	assert_int_equal(fchmodat(fd, "closed", 0, 0), 0);
	assert_int_equal(fchmodat(fd, "left-out", 0, 0), 0);
	assert_int_equal(fchmod(fd, 0755), 0);
	if (!fork()) {
		struct seen seen = { 0 };

		seen.leave_out = "left-out";
		if (!getuid())
			assert_int_equal(setresuid(65534, 65534, 65534), 0);
		assert_int_equal(walk(fd, 2, NULL, &seen), 0);
		assert_int_equal(atomic_load(&seen.dirs), 2);
		assert_int_equal(atomic_load(&seen.entries), 1);
		assert_int_equal(atomic_load(&seen.failed), 1);
		assert_int_equal(atomic_load(&seen.last_code), -EACCES);
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static void test_cancel(void **state)
{
	atomic_bool cancel = true;
	struct walk_options options = { .cancel = &cancel };
	struct seen seen = { 0 };

	make_file(*(int *)*state, "file");
	assert_int_equal(walk(*(int *)*state, 2, &options, &seen), -ECANCELED);
	assert_int_equal(atomic_load(&seen.entries), 0);
}

static void make_dirs(int fd, unsigned dirs, unsigned files)
{
	for (unsigned i = 0; i < dirs; i++) {
		char name[32];
		int dir;

		snprintf(name, sizeof(name), "dir%u", i);
		dir = make_dir(fd, name);
		for (unsigned j = 0; j < files; j++) {
			snprintf(name, sizeof(name), "file%u", j);
			make_file(dir, name);
		}
		close(dir);
	}
}

/* 32 workers share the few directories that are listed; otherwise each would have one of its own. */
static void test_gather(void **state)
{
	atomic_bool gather = true;
	struct walk_options options = { .gather = &gather, .batch = 1 };
	struct seen seen = { .slow = true };

	make_dirs(*(int *)*state, 60, 100);
	assert_int_equal(walk(*(int *)*state, 32, &options, &seen), 0);
	assert_int_equal(atomic_load(&seen.entries), 6000);
	assert_int_equal(atomic_load(&seen.dirs), 61);
	assert_true(atomic_load(&seen.most_open) <= 20);
}

struct flipper {
	pthread_t thread;
	atomic_bool flag, stop;
};

static void *flip(void *arg)
{
	struct flipper *flipper = arg;

	while (!atomic_load(&flipper->stop)) {
		atomic_store(&flipper->flag, !atomic_load(&flipper->flag));
		usleep(50);
	}
	return NULL;
}

/* Nothing is left out: directories without files, with few and with many, while the wish comes and goes. */
static void test_gather_whole(void **state)
{
	static const unsigned widths[] = { 1, 2, 16, 64 };
	int fd = *(int *)*state, many = make_dir(fd, "many");

	for (unsigned i = 0; i < 3000; i++) {
		char name[48];

		snprintf(name, sizeof(name), "file-with-a-name-of-some-length-%u", i);
		make_file(many, name);
	}
	make_dirs(many, 200, 0);
	make_dirs(fd, 300, 3);
	close(many);
	for (unsigned i = 0; i < 24; i++) {
		struct flipper flipper = { .flag = true };
		struct walk_options options = { .gather = &flipper.flag };
		struct seen seen = { 0 };

		assert_int_equal(pthread_create(&flipper.thread, NULL, flip, &flipper), 0);
		assert_int_equal(walk(fd, widths[i % 4], &options, &seen), 0);
		atomic_store(&flipper.stop, true);
		pthread_join(flipper.thread, NULL);
		assert_int_equal(atomic_load(&seen.entries), 3900);
		assert_int_equal(atomic_load(&seen.dirs), 502);
	}
}

struct sharing {
	struct seen seen;
	struct pool *pool;
	atomic_uint begun;
	bool helped; /* another one was handed over while the first one was at work */
};

static void sharing_entries(void *ctx, struct walk_dir *dir, const struct walk_entry *entries,
	unsigned count, unsigned worker)
{
	struct sharing *sharing = ctx;

	if (!atomic_fetch_add(&sharing->begun, 1)) {
		pool_grow(sharing->pool, 4);
		assert_true(walk_share(dir, worker));
		for (unsigned i = 0; i < 10000 && atomic_load(&sharing->begun) < 2; i++)
			usleep(1000);
		sharing->helped = atomic_load(&sharing->begun) >= 2;
	}
	seen_entries(&sharing->seen, dir, entries, count, worker);
}

static void test_share(void **state)
{
	struct walk_ops ops = { .enter = seen_enter,
		.entries = sharing_entries, .leave = seen_leave, .failed = seen_failed };
	struct sharing sharing = { .helped = false };
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < 5; i++) {
		char name[32];

		snprintf(name, sizeof(name), "file%u", i);
		make_file(*(int *)*state, name);
	}
	assert_int_equal(pool_start(1, &sharing.pool, &err), 0);
	assert_int_equal(walk_run(sharing.pool, *(int *)*state, &ops, &sharing, NULL, &err), 0);
	pool_free(sharing.pool);
	assert_true(sharing.helped);
	assert_int_equal(atomic_load(&sharing.seen.entries), 5);
}

static void test_one_filesystem(void **state)
{
	struct walk_options options = { .one_filesystem = 1 };
	int fd = *(int *)*state;
	int status;

	close(make_dir(fd, "mounted"));
	if (getuid()) {
		skip();
		return;
	}
	if (!fork()) {
		struct seen seen = { 0 };
		char path[96];

		snprintf(path, sizeof(path), "%s/mounted", scratch);
		if (unshare(CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) ||
			mount(scratch, path, NULL, MS_BIND, NULL))
			_exit(77);
		/* The old fd belongs to the old namespace, where nothing is mounted. */
		fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(walk(fd, 2, &options, &seen), 0);
		assert_int_equal(atomic_load(&seen.dirs), 1);
		assert_int_equal(atomic_load(&seen.failed), 1);
		assert_int_equal(atomic_load(&seen.last_code), -EXDEV);
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
#define tree_test(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
	const struct CMUnitTest tests[] = {
		tree_test(test_kinds),
		tree_test(test_paths),
		tree_test(test_deep),
		tree_test(test_races),
		tree_test(test_unreadable),
		tree_test(test_cancel),
		tree_test(test_share),
		tree_test(test_gather),
		tree_test(test_gather_whole),
		tree_test(test_one_filesystem),
		tree_test(test_wide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
