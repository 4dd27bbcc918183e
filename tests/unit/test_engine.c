#include "scratch.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "copy/engine.h"

/* What was told of the entries, and what the test wants. */
struct told {
	atomic_uint outcomes[COPY_SPECIAL + 1];
	enum copy_answer (*decide)(const char *path, const struct copy_item *item);
	char last_error[256];
	pthread_mutex_t lock;
};

static enum copy_answer told_decide(void *ctx, const struct copy_item *item, const struct stat *dst,
	struct copy_expect *expect, struct copy_tag *tag)
{
	struct told *told = ctx;
	char *path = copy_item_path(item);
	enum copy_answer answer = told->decide(path, item);

	(void)dst;
	(void)expect;
	if (item->parent)
		assert_int_equal(item->parent->other, 77);
	else
		assert_string_equal(path, "");
	tag->other = 77;
	free(path);
	return answer;
}

static void told_outcome(void *ctx, const struct copy_item *item, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err)
{
	struct told *told = ctx;

	(void)item;
	assert_true(!err == (outcome == COPY_DONE || outcome == COPY_UNCHANGED));
	if (outcome == COPY_DONE && (S_ISREG(item->src->st_mode) || S_ISDIR(item->src->st_mode)))
		assert_non_null(dst);
	atomic_fetch_add(&told->outcomes[outcome], 1);
	if (err) {
		pthread_mutex_lock(&told->lock);
		snprintf(told->last_error, sizeof(told->last_error), "%.250s", err->text);
		pthread_mutex_unlock(&told->lock);
	}
}

/* The directory of a path below the scratch directory, and the name in it. */
static int open_parent(const char *path, const char **name)
{
	char dir[128] = ".";
	int fd;

	*name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (*name != path)
		snprintf(dir, sizeof(dir), "%.*s", (int)(*name - path), path);
	fd = openat(scratch_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* from and to: paths below the scratch directory; their last components are the names. */
static int run(const char *from, const char *to, const struct copy_options *options,
	struct told *told, struct copy_counts *counts)
{
	static const struct copy_options plain = { .keep_owner = true };
	struct copy_hooks hooks = {
		.ctx = told,
		.decide = told && told->decide ? told_decide : NULL,
		.outcome = told ? told_outcome : NULL,
	};
	struct error err = ERROR_INIT;
	struct copy *copy;
	const char *to_name;
	int rc, fd;

	if (told)
		pthread_mutex_init(&told->lock, NULL);
	memset(counts, 0, sizeof(*counts));
	fd = open_parent(to, &to_name);
	rc = copy_new(
		scratch_fd, from, fd, to_name, options ? options : &plain, &hooks, &copy, &err);
	if (rc) {
		assert_int_equal(rc, err.code);
		close(fd);
		return rc;
	}
	rc = copy_run(copy, &err);
	copy_counts(copy, counts);
	copy_free(copy);
	close(fd);
	if (rc) {
		assert_int_equal(rc, err.code);
		if (told)
			snprintf(told->last_error, sizeof(told->last_error), "%.250s", err.text);
	}
	return rc;
}

/* Runs a test's part in a child: as an ordinary user, in namespaces, with other limits. Exit status
 * 77: it can not be had here. */
static void in_child(int (*part)(void))
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(part());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static int become_user(void)
{
	return getuid() ? 0 : setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534);
}

static void make_tree(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	make_dir("s", 0755);
	make_dir("s/a", 0750);
	make_dir("s/a/b", 0700);
	make_dir("s/empty-dir", 0711);
	make_dir("s/read-only", 0755);
	make_file("s/empty", 0, 0);
	make_file("s/small", 1234, 1);
	make_file("s/a/middle", 300000, 2);
	make_file("s/a/b/large", 20 << 20, 3);
	make_file("s/read-only/file", 10, 4);
	make_file("s/a/\xff\n'\\ ", 5, 5);
	assert_int_equal(linkat(scratch_fd, "s/small", scratch_fd, "s/a/second", 0), 0);
	assert_int_equal(linkat(scratch_fd, "s/small", scratch_fd, "s/a/b/third", 0), 0);
	assert_int_equal(symlinkat("nowhere", scratch_fd, "s/dangling"), 0);
	assert_int_equal(mkfifoat(scratch_fd, "s/fifo", 0640), 0);
	assert_int_equal(
		shell("truncate -s 40M s/sparse;"
		      "printf x | dd of=s/sparse bs=1 seek=19M conv=notrunc status=none;"
		      "ln -s \"$(printf %03000d 0)\" s/a/long;"
		      "setfattr -n user.key -v value s/small;"
		      "setfacl -m u:1:rwx s/a/middle; setfacl -m d:u:1:rx s/a;"
		      "touch -d '1960-01-01 00:00:00.123456789' s/a/middle;"
		      "touch -h -d '2100-01-01' s/dangling;"
		      "chmod 0444 s/read-only/file; chmod 0555 s/read-only; chmod 0600 s/small;"
		      "touch -d 2001-01-01 s/a/b; true"),
		0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s/socket", scratch);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void test_identical(void **state)
{
	static const struct copy_options ways[] = {
		{ .keep_owner = true },
		{ .keep_owner = true, .threads = 1 },
		{ .keep_owner = true, .threads = 24, .publish = true },
		{ .keep_owner = true, .publish = true, .durable = true, .verify = true },
		{ .keep_owner = true, .engine = "readwrite" },
		{ .keep_owner = true, .engine = "copy_file_range", .look = true },
	};

	(void)state;
	make_tree();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct told told = { 0 };
		struct copy_counts counts;

		assert_int_equal(shell("rm -rf d; touch -d 2002-02-02 s"), 0);
		assert_int_equal(run("s", "d", &ways[i], &told, &counts), 0);
		assert_int_equal(counts.files, 9);
		assert_int_equal(counts.directories, 5);
		assert_int_equal(counts.symlinks, 2);
		assert_int_equal(counts.others, 1);
		assert_int_equal(counts.special, 1);
		assert_int_equal(counts.failed + counts.attributes + counts.changed, 0);
		assert_true(stat_of("d/sparse").st_blocks <= stat_of("s/sparse").st_blocks + 8);
		/* A name of a file with links may be told again when its last link is there. */
		assert_in_range(atomic_load(&told.outcomes[COPY_DONE]), 17, 18);
		assert_false(have("d/socket"));
		assert_int_equal(shell("mv s/socket . && touch -d 2002-02-02 s"), 0);
		assert_same_tree("s", "d");
		assert_int_equal(shell("mv socket s"), 0);
	}
}

static void test_hard_links(void **state)
{
	struct copy_options options = { .threads = 8 };
	struct copy_counts counts;
	char path[64], first[64];

	(void)state;
	make_dir("s", 0755);
	for (int d = 0; d < 20; d++) {
		snprintf(path, sizeof(path), "s/d%d", d);
		make_dir(path, 0755);
	}
	for (int f = 0; f < 50; f++) {
		snprintf(first, sizeof(first), "s/d%d/f%d", f % 20, f);
		make_file(first, f % 9 ? 5000 : 400000, f);
		for (int d = 0; d < 20; d++) {
			snprintf(path, sizeof(path), "s/d%d/f%d", d, f);
			if (strcmp(path, first))
				assert_int_equal(linkat(scratch_fd, first, scratch_fd, path, 0), 0);
		}
	}
	for (int round = 0; round < 2; round++) {
		struct told told = { 0 };

		options.publish = round;
		assert_int_equal(shell("rm -rf d"), 0);
		assert_int_equal(run("s", "d", &options, &told, &counts), 0);
		assert_int_equal(counts.files, 1000);
		assert_int_equal(counts.failed + counts.attributes, 0);
		assert_same_tree("s", "d");
	}
}

static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stat last_dst;
static unsigned last_count;

static void last_outcome(void *ctx, const struct copy_item *item, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err)
{
	(void)ctx;
	(void)err;
	if (outcome != COPY_DONE || strcmp(item->name, "first"))
		return;
	pthread_mutex_lock(&last_lock);
	last_dst = *dst;
	last_count++;
	pthread_mutex_unlock(&last_lock);
}

/* Every link changes the ctime of the file: what is told last of a name is what it is in the end.
 */
static void test_hard_link_outcome(void **state)
{
	static const struct copy_options options = { .threads = 1 };
	struct copy_hooks hooks = { .outcome = last_outcome };
	struct error err = ERROR_INIT;
	struct copy *copy;
	struct stat st;

	(void)state;
	make_dir("s", 0755);
	make_dir("s/below", 0755);
	make_file("s/first", 10, 0);
	for (int i = 0; i < 40; i++) {
		char path[32];

		snprintf(path, sizeof(path), "s/below/n%d", i);
		assert_int_equal(linkat(scratch_fd, "s/first", scratch_fd, path, 0), 0);
	}
	assert_int_equal(linkat(scratch_fd, "s/first", scratch_fd, "outside-the-tree", 0), 0);
	assert_int_equal(
		copy_new(scratch_fd, "s", scratch_fd, "d", &options, &hooks, &copy, &err), 0);
	assert_int_equal(copy_run(copy, &err), 0);
	copy_free(copy);
	st = stat_of("d/first");
	assert_int_equal(st.st_nlink, 41);
	assert_in_range(last_count, 1, 2);
	assert_memory_equal(&last_dst.st_ctim, &st.st_ctim, sizeof(st.st_ctim));
	assert_int_equal(last_dst.st_ino, st.st_ino);
}

/* Instead of the C library's: makes links until there are none left. */
static atomic_int links_left = -1;

int linkat(int olddir, const char *old, int newdir, const char *new, int flags)
{
	if (atomic_load(&links_left) >= 0 && atomic_fetch_sub(&links_left, 1) <= 0) {
		atomic_store(&links_left, 3);
		errno = EMLINK;
		return -1;
	}
	return (int)syscall(SYS_linkat, olddir, old, newdir, new, flags);
}

/* Past the most links that a file may have, a new file is begun, and told. */
static void test_too_many_links(void **state)
{
	static const struct copy_options options = { .threads = 1 };
	struct copy_counts counts;
	struct told told = { 0 };

	(void)state;
	assert_int_equal(
		shell("mkdir s; cd s; echo x >n0; for i in $(seq 9); do ln n0 n$i; done"), 0);
	atomic_store(&links_left, 3);
	assert_int_equal(run("s", "d", &options, &told, &counts), 0);
	atomic_store(&links_left, -1);
	assert_int_equal(counts.files, 10);
	assert_int_equal(counts.failed, 0);
	assert_int_equal(counts.attributes, 2);
	assert_non_null(strstr(told.last_error, "not a hard link"));
	assert_int_equal(shell("test $(stat -c %i d/* | sort -u | wc -l) = 3 && cmp s/n0 d/n9 &&"
			       " test $(stat -c %h d/n0 d/n1 d/n2 | sort -u | head -1) -ge 2"),
		0);
}

static atomic_bool grow_stop;

static void *grow_run(void *arg)
{
	int fd = openat(scratch_fd, arg, O_WRONLY | O_APPEND | O_CLOEXEC);

	while (!atomic_load(&grow_stop)) {
		assert_int_equal(write(fd, "more", 4), 4);
		usleep(200);
	}
	close(fd);
	return NULL;
}

/* A file that never holds still is not published, and all others are. */
static void test_changing(void **state)
{
	static char name[] = "s/growing";

	(void)state;
	make_dir("s", 0755);
	make_file(name, 30 << 20, 1);
	make_file("s/still", 100, 1);
	for (int round = 0; round < 2; round++) {
		struct copy_options options = { .publish = round };
		struct copy_counts counts;
		struct told told = { 0 };
		pthread_t thread;

		atomic_store(&grow_stop, false);
		assert_int_equal(pthread_create(&thread, NULL, grow_run, name), 0);
		assert_int_equal(run("s", "d", &options, &told, &counts), 0);
		atomic_store(&grow_stop, true);
		pthread_join(thread, NULL);
		assert_int_equal(counts.changed, 1);
		assert_int_equal(atomic_load(&told.outcomes[COPY_CHANGED]), 1);
		assert_int_equal(counts.files, 1);
		assert_int_equal(counts.bytes, 100);
		assert_int_equal(shell("test \"$(ls -A d)\" = still && rm -rf d"), 0);
	}
}

static enum copy_answer decide_unlink(const char *path, const struct copy_item *item)
{
	char full[64];

	(void)item;
	snprintf(full, sizeof(full), "s/%s", path);
	if (!strncmp(path, "gone", 4))
		assert_int_equal(unlinkat(scratch_fd, full, 0), 0);
	return COPY_SEND;
}

static void test_vanished(void **state)
{
	struct told told = { .decide = decide_unlink };
	struct copy_counts counts;

	(void)state;
	make_dir("s", 0755);
	make_file("s/gone1", 10, 0);
	make_file("s/stays", 10, 0);
	assert_int_equal(symlinkat("x", scratch_fd, "s/gone2"), 0);
	assert_int_equal(run("s", "d", NULL, &told, &counts), 0);
	assert_int_equal(counts.vanished, 2);
	assert_int_equal(counts.failed, 0);
	assert_int_equal(counts.files, 1);
	assert_false(have("d/gone1"));
}

static int part_read_only(void)
{
	static const struct copy_options options = { .publish = true };
	struct copy_counts counts;

	if (become_user())
		return 77;
	make_dir("home/s", 0700);
	make_dir("home/s/a", 0700);
	make_dir("home/s/a/b", 0700);
	make_file("home/s/a/b/file", 100, 1);
	assert_int_equal(
		shell("chmod 0444 home/s/a/b/file; chmod 0555 home/s/a/b home/s/a home/s"), 0);
	assert_int_equal(run("home/s", "home/d", &options, NULL, &counts), 0);
	assert_int_equal(counts.failed + counts.attributes, 0);
	assert_same_tree("home/s", "home/d");
	/* And once more into what is read-only now. */
	assert_int_equal(
		shell("chmod u+w home/s/a/b; echo new >home/s/a/b/new; chmod u-w home/s/a/b"), 0);
	assert_int_equal(run("home/s", "home/d", &options, NULL, &counts), 0);
	assert_int_equal(counts.failed + counts.attributes, 0);
	assert_same_tree("home/s", "home/d");
	assert_int_equal(shell("chmod -R u+w home/s home/d"), 0);
	return 0;
}

static void test_read_only(void **state)
{
	(void)state;
	make_dir("home", 0777);
	in_child(part_read_only);
}

static int part_unreadable(void)
{
	struct copy_counts counts;
	struct told told = { 0 };

	if (become_user())
		return 77;
	assert_int_equal(run("home/s", "home/d", NULL, &told, &counts), 0);
	assert_int_equal(counts.files, 1);
	assert_int_equal(counts.directories, 1);
	assert_int_equal(counts.failed, 2);
	assert_false(have("home/d/file"));
	assert_true(have("home/d/readable"));
	assert_int_equal(shell("chmod u+rwx home/d/*; rm -rf home/d"), 0);
	return 0;
}

static void test_unreadable(void **state)
{
	(void)state;
	make_dir("home", 0777);
	make_dir("home/s", 0755);
	make_dir("home/s/closed", 0700);
	make_file("home/s/file", 10, 0);
	make_file("home/s/readable", 10, 0);
	assert_int_equal(shell("chmod 0600 home/s/file; chmod 0 home/s/closed"), 0);
	if (getuid())
		skip();
	in_child(part_unreadable);
}

static int part_inside_bind(void)
{
	struct copy_counts counts;
	char from[96], to[96];

	snprintf(from, sizeof(from), "%s/s/below", scratch);
	snprintf(to, sizeof(to), "%s/elsewhere", scratch);
	if (unshare(CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) ||
		mount(from, to, NULL, MS_BIND, NULL))
		return 77;
	close(scratch_fd);
	scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(run("s", "elsewhere", NULL, NULL, &counts), 0);
	assert_int_equal(counts.failed, 1);
	assert_int_equal(counts.files, 1);
	return 0;
}

static void test_inside(void **state)
{
	struct copy_counts counts;

	(void)state;
	make_dir("s", 0755);
	make_dir("s/below", 0755);
	make_dir("elsewhere", 0755);
	make_file("s/file", 10, 0);
	assert_int_equal(symlinkat("s/below", scratch_fd, "link"), 0);
	assert_int_equal(run("s", "s", NULL, NULL, &counts), -EINVAL);
	assert_int_equal(run("s", "s/below", NULL, NULL, &counts), -EINVAL);
	assert_int_equal(run("s", "s/new", NULL, NULL, &counts), -EINVAL);
	assert_int_equal(run("s", "link/new", NULL, NULL, &counts), -EINVAL);
	assert_int_equal(run("s/file", "s/file", NULL, NULL, &counts), -EINVAL);
	assert_false(have("s/new"));
	if (!getuid())
		in_child(part_inside_bind);
}

static void test_conflicts(void **state)
{
	static const struct copy_options options = { .conflict = COPY_CONFLICT_FAIL };
	struct copy_counts counts;
	struct told told = { 0 };

	(void)state;
	make_dir("s", 0755);
	make_dir("s/dir", 0755);
	make_dir("s/other", 0755);
	make_file("s/dir/one", 10, 1);
	make_file("s/dir/two", 10, 1);
	make_file("s/other/three", 10, 1);
	make_file("s/file", 10, 1);
	make_dir("d", 0755);
	make_dir("d/file", 0755);
	make_dir("target", 0755);
	assert_int_equal(symlinkat("../target", scratch_fd, "d/dir"), 0);
	make_file("d/other", 3, 1);
	assert_int_equal(run("s", "d", &options, &told, &counts), 0);
	assert_int_equal(counts.conflicts, 3);
	assert_int_equal(counts.failed, 0); /* what is in the two directories is not named too */
	assert_int_equal(counts.files, 0);
	assert_int_equal(
		shell("test -z \"$(ls -A target)\" && test -L d/dir && test -d d/file"), 0);
}

static void test_expect_nothing(void **state)
{
	struct copy_options options = { .publish = true,
		.conflict = COPY_CONFLICT_KEEP,
		.conflict_suffix = "mine",
		.expect = { .kind = COPY_EXPECT_NOTHING } };
	struct copy_counts counts;

	(void)state;
	for (int publish = 0; publish < 2; publish++) {
		assert_int_equal(
			shell("rm -rf s d; mkdir s d; echo a >s/f; echo b >d/f; ln -s a s/l;"
			      "ln -s b d/l"),
			0);
		options.publish = publish;
		assert_int_equal(run("s", "d", &options, NULL, &counts), 0);
		assert_int_equal(counts.conflicts, 2);
		assert_int_equal(counts.files + counts.symlinks, 0);
		assert_int_equal(
			shell("test \"$(cat d/f d/f.mine; readlink d/l d/l.mine)\" = \"b\na\nb\na\""
			      " && test $(ls -A d | wc -l) = 4"),
			0);
	}
}

static enum copy_answer decide_some(const char *path, const struct copy_item *item)
{
	if (strstr(path, "left-out"))
		return COPY_LEAVE;
	if (S_ISDIR(item->src->st_mode))
		return COPY_SKIP;
	return strstr(path, "new") ? COPY_SEND : COPY_SKIP;
}

/* What is skipped is not even made at the destination, but for what holds something that is sent.
 */
static void test_skipped(void **state)
{
	struct told told = { .decide = decide_some };
	struct copy_counts counts;

	(void)state;
	assert_int_equal(
		shell("mkdir -p s/a/b/c s/x/y s/left-out/new d;"
		      "touch s/a/old s/a/b/c/new s/x/y/old s/left-out/new/new; chmod 0711 s/a/b"),
		0);
	assert_int_equal(run("s", "d", NULL, &told, &counts), 0);
	assert_int_equal(counts.files, 1);
	assert_int_equal(counts.directories, 3);
	assert_int_equal(counts.unchanged, 2 + 3);
	assert_int_equal(
		shell("test \"$(cd d && find . | sort | tr '\\n' ' ')\" = "
		      "'. ./a ./a/b ./a/b/c ./a/b/c/new ' && test $(stat -c %a d/a/b) = 711"),
		0);
}

static void test_limits(void **state)
{
	struct copy_options options = { .max_bytes = 250000, .threads = 1 };
	struct copy_counts counts;
	struct told told = { 0 };
	atomic_bool cancel = true;

	(void)state;
	make_dir("s", 0755);
	for (int i = 0; i < 5; i++) {
		char path[32];

		snprintf(path, sizeof(path), "s/f%d", i);
		make_file(path, 100000, i);
	}
	assert_int_equal(run("s", "d", &options, &told, &counts), -ENOSPC);
	assert_int_equal(counts.files, 2);
	options.max_bytes = 0;
	options.cancel = &cancel;
	assert_int_equal(run("s", "e", &options, NULL, &counts), -ECANCELED);
	assert_int_equal(counts.files + counts.failed, 0);
}

static int part_full(void)
{
	static const struct copy_options options = { .publish = true };
	struct copy_counts counts;
	struct told told = { 0 };
	char path[96];

	snprintf(path, sizeof(path), "%s/bytes", scratch);
	if (unshare(CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", path, "tmpfs", 0, "size=1m"))
		return 77;
	snprintf(path, sizeof(path), "%s/inodes", scratch);
	assert_int_equal(mount("tmpfs", path, "tmpfs", 0, "nr_inodes=20"), 0);
	close(scratch_fd);
	scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(run("large", "bytes", &options, &told, &counts), -ENOSPC);
	assert_non_null(strstr(told.last_error, "bytes"));
	assert_int_equal(counts.failed, 1);
	assert_int_equal(shell("test -z \"$(ls -A bytes)\""), 0);
	assert_int_equal(run("many", "inodes", &options, &told, &counts), -ENOSPC);
	assert_non_null(strstr(told.last_error, "inodes"));
	assert_int_equal(shell("! ls -A inodes | grep stagetool-tmp"), 0);
	return 0;
}

static void test_full(void **state)
{
	(void)state;
	assert_int_equal(shell("mkdir bytes inodes large many; cd many; seq 100 | xargs touch"), 0);
	make_file("large/file", 4 << 20, 1);
	if (getuid())
		skip();
	in_child(part_full);
}

static int part_few_fds(void)
{
	static const struct rlimit low = { 64, 64 };
	static const struct copy_options options = { .threads = 16 };
	struct copy_counts counts;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(run("s", "d", &options, NULL, &counts), 0);
	assert_int_equal(counts.failed, 0);
	assert_int_equal(counts.files, 600);
	return 0;
}

static void test_few_fds(void **state)
{
	(void)state;
	assert_int_equal(shell("mkdir s; cd s; for i in $(seq 100); do mkdir -p d$i/e/f/g;"
			       " touch d$i/1 d$i/e/2 d$i/e/f/3 d$i/e/f/g/4 d$i/5 d$i/6; done"),
		0);
	in_child(part_few_fds);
	assert_same_tree("s", "d");
}

/* Deeper than PATH_MAX. */
static void test_deep(void **state)
{
	enum { DEPTH = 3000 };
	struct copy_counts counts;
	int fd = dup(scratch_fd);

	(void)state;
	assert_int_equal(mkdirat(scratch_fd, "s", 0755), 0);
	for (int i = 0; i < DEPTH; i++) {
		int next = openat(fd, i ? "directory" : "s", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(next >= 0);
		close(fd);
		fd = next;
		assert_int_equal(mkdirat(fd, "directory", 0755), 0);
	}
	close(fd);
	assert_int_equal(run("s", "d", NULL, NULL, &counts), 0);
	assert_int_equal(counts.directories, DEPTH + 1);
	assert_int_equal(counts.failed + counts.attributes, 0);
	assert_int_equal(shell("test $(find d | wc -l) = 3001 2>/dev/null"), 0);
}

static void test_roots(void **state)
{
	static const char *const leave[] = { ".stagetool", NULL };
	static const struct copy_options options = { .leave = leave };
	struct copy_counts counts;
	struct told told = { 0 };
	struct error err = ERROR_INIT;
	struct copy *copy;

	(void)state;
	assert_int_equal(
		shell("mkdir -p s/.stagetool s/x/.stagetool d; echo a >f; ln -s f l; mkfifo p;"
		      "touch s/.stagetool-tmp.x; mkdir s/.stagetool-tmp.d"),
		0);
	assert_int_equal(
		copy_new(scratch_fd, "f", scratch_fd, "d/g", &options, NULL, &copy, &err), -EINVAL);
	assert_int_equal(run("f", "g", NULL, &told, &counts), 0);
	assert_int_equal(run("l", "m", NULL, &told, &counts), 0);
	assert_int_equal(run("p", "q", NULL, &told, &counts), 0);
	assert_int_equal(run("missing", "r", NULL, &told, &counts), -ENOENT);
	assert_int_equal(run("f", "", NULL, &told, &counts), -EISDIR);
	assert_int_equal(atomic_load(&told.outcomes[COPY_DONE]), 3);
	assert_int_equal(shell("cmp f g && test \"$(readlink m)\" = f && test -p q"), 0);
	assert_int_equal(run("s", "d", &options, &told, &counts), 0);
	assert_int_equal(
		shell("test \"$(cd d && find . | sort | tr '\\n' ' ')\" = '. ./x ./x/.stagetool '"),
		0);
}

static enum copy_answer decide_all(const char *path, const struct copy_item *item)
{
	(void)path;
	(void)item;
	return COPY_SEND;
}

/* Over what is there: everything that is not a directory is replaced as a whole. */
static void test_replace(void **state)
{
	struct copy_options options = { .look = true };
	struct told told = { .decide = decide_all };
	struct copy_counts counts;

	(void)state;
	for (int publish = 0; publish < 2; publish++) {
		options.publish = publish;
		assert_int_equal(
			shell("rm -rf s d o; mkdir -p s/a d/a; echo new >s/a/f; ln -s new s/l;"
			      "echo x >s/t; ln -s ../o d/t; echo mine >o; echo old >d/a/f;"
			      "ln d/a/f d/a/other; ln -s old d/l"),
			0);
		assert_int_equal(run("s", "d", &options, &told, &counts), 0);
		assert_int_equal(counts.failed + counts.conflicts, 0);
		assert_int_equal(shell("test \"$(cat d/a/f d/a/other o d/t; readlink d/l)\" = "
				       "\"new\nold\nmine\nx\nnew\" && test ! -L d/t"),
			0);
	}
}

static atomic_bool swap_stop;
static atomic_ulong swap_count;

/* Directories of the destination and symlinks to a place outside change names all the time. */
static void *swap_run(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = openat(scratch_fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		sched_yield();
	while (!atomic_load(&swap_stop)) {
		for (int i = 0; i < 6; i++) {
			char dir[16], link[16];

			snprintf(dir, sizeof(dir), "d%d", i);
			snprintf(link, sizeof(link), "l%d", i);
			syscall(SYS_renameat2, fd, dir, fd, link, 2 /* exchange */);
			atomic_fetch_add(&swap_count, 1);
		}
	}
	close(fd);
	return NULL;
}

/* Nothing is ever written through a symlink that somebody puts in a directory's place. */
static void test_destination_races(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(
		shell("mkdir -p s outside d; for i in 0 1 2 3 4 5; do mkdir -p s/d$i/e d/d$i;"
		      " ln -s ../outside d/l$i; for f in 1 2 3 4 5 6 7 8; do echo $f >s/d$i/$f;"
		      " echo $f >s/d$i/e/$f; done; done"),
		0);
	atomic_store(&swap_stop, false);
	assert_int_equal(pthread_create(&thread, NULL, swap_run, NULL), 0);
	for (int round = 0; round < 60; round++) {
		struct copy_options options = { .publish = round % 2 };
		struct copy_counts counts;

		assert_int_equal(run("s", "d", &options, NULL, &counts), 0);
		if (round % 10 == 9)
			assert_int_equal(shell("test -z \"$(ls -A outside)\""), 0);
	}
	atomic_store(&swap_stop, true);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&swap_count) > 60);
	assert_int_equal(shell("test -z \"$(ls -A outside)\""), 0);
}

/* Sizes in /proc say nothing. */
static void test_proc(void **state)
{
	struct error err = ERROR_INIT;
	struct copy *copy;
	struct copy_counts counts;
	static const struct copy_options options = { 0 };
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(
		copy_new(proc, "version", scratch_fd, "v", &options, NULL, &copy, &err), 0);
	assert_int_equal(copy_run(copy, &err), 0);
	copy_counts(copy, &counts);
	copy_free(copy);
	close(proc);
	assert_int_equal(counts.files, 1);
	assert_int_equal(shell("cmp v /proc/version"), 0);
}

int main(void)
{
#define tree_test(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		tree_test(test_identical),
		tree_test(test_hard_links),
		tree_test(test_hard_link_outcome),
		tree_test(test_too_many_links),
		tree_test(test_changing),
		tree_test(test_vanished),
		tree_test(test_read_only),
		tree_test(test_unreadable),
		tree_test(test_inside),
		tree_test(test_conflicts),
		tree_test(test_expect_nothing),
		tree_test(test_skipped),
		tree_test(test_limits),
		tree_test(test_full),
		tree_test(test_few_fds),
		tree_test(test_deep),
		tree_test(test_roots),
		tree_test(test_replace),
		tree_test(test_destination_races),
		tree_test(test_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
