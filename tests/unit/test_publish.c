#include "copy/publish.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

/* Filesystems that lack a call, and others that get in between. */
static struct {
	bool no_noreplace, no_exchange, no_link;
	void (*before_exchange)(void); /* once */
	int renames;
} kernel;

int renameat2(int olddir, const char *oldname, int newdir, const char *newname, unsigned flags)
{
	kernel.renames++;
	if ((flags & RENAME_NOREPLACE && kernel.no_noreplace) ||
		(flags & RENAME_EXCHANGE && kernel.no_exchange)) {
		errno = EINVAL;
		return -1;
	}
	if (flags & RENAME_EXCHANGE && kernel.before_exchange) {
		void (*before)(void) = kernel.before_exchange;

		kernel.before_exchange = NULL;
		before();
	}
	return (int)syscall(SYS_renameat2, olddir, oldname, newdir, newname, flags);
}

int linkat(int olddir, const char *oldname, int newdir, const char *newname, int flags)
{
	if (kernel.no_link) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_linkat, olddir, oldname, newdir, newname, flags);
}

static struct {
	char path[256];
	int fd;
	dev_t dev;
	struct publish *publish;
} dir;

static int setup(void **state)
{
	struct stat st;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	snprintf(dir.path, sizeof(dir.path), "%s/test_publish.XXXXXX",
		getenv("TEST_DIR") ? getenv("TEST_DIR") : "/tmp");
	assert_non_null(mkdtemp(dir.path));
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(fstat(dir.fd, &st), 0);
	dir.dev = st.st_dev;
	assert_int_equal(publish_new(&dir.publish, NULL), 0);
	return 0;
}

/* Names in the directory, without "." and "..". */
static int count_names(bool temps_only)
{
	autodir DIR *list = opendir(dir.path);
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(list)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			count += !temps_only || publish_is_temp(entry->d_name);
	return count;
}

static int teardown(void **state)
{
	autodir DIR *list = opendir(dir.path);
	struct dirent *entry;

	(void)state;
	assert_int_equal(count_names(true), 0);
	while ((entry = readdir(list)))
		if (unlinkat(dir.fd, entry->d_name, 0) < 0)
			unlinkat(dir.fd, entry->d_name, AT_REMOVEDIR);
	close(dir.fd);
	rmdir(dir.path);
	publish_free(dir.publish);
	return 0;
}

static void put(const char *name, const char *text)
{
	autoclose int fd = openat(dir.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

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

static void assert_absent(const char *name)
{
	assert_int_equal(faccessat(dir.fd, name, F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static void make_temp(char temp[PUBLISH_TEMP_SIZE], const char *text)
{
	int fd = publish_create(dir.publish, dir.fd, 0600, temp, NULL);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static struct copy_expect expect_of(int kind)
{
	struct copy_expect expect = { .kind = COPY_EXPECT_ANY };

	if (kind == COPY_EXPECT_NOTHING)
		expect.kind = COPY_EXPECT_NOTHING;
	if (kind == COPY_EXPECT_SAME)
		expect.kind = COPY_EXPECT_SAME;
	return expect;
}

static struct copy_expect expect_same(const char *name)
{
	struct copy_expect expect = expect_of(COPY_EXPECT_SAME);
	struct stat st;

	assert_int_equal(fstatat(dir.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	publish_identity(&st, &expect.identity);
	return expect;
}

/* Publishes a file of that text as name. */
static struct publish_result publish_text(const char *text, const char *name,
	const struct copy_expect *expect, enum copy_conflict conflict, struct error *err)
{
	char temp[PUBLISH_TEMP_SIZE];
	struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev, .temp = temp,
		.name = name, .expect = expect, .conflict = conflict, .suffix = "job7" };
	struct publish_result result;

	make_temp(temp, text);
	assert_int_equal(publish_entry(dir.publish, &request, &result, err), 0);
	assert_int_equal(count_names(true), 0);
	return result;
}

static void test_temporaries(void **state)
{
	char a[PUBLISH_TEMP_SIZE], b[PUBLISH_TEMP_SIZE];
	struct stat st;
	int fd;

	(void)state;
	umask(0);
	fd = publish_create(dir.publish, dir.fd, 0600, a, NULL);
	assert_true(fd >= 0);
	fstat(fd, &st);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(publish_create_symlink(dir.publish, dir.fd, "no where", b, NULL), 0);
	assert_string_not_equal(a, b);
	assert_true(publish_is_temp(a) && publish_is_temp(b) && !publish_is_temp("a"));
	unlinkat(dir.fd, a, 0);
	unlinkat(dir.fd, b, 0);
	assert_int_equal(publish_create_fifo(dir.publish, dir.fd, 0640, a, NULL), 0);
	fstatat(dir.fd, a, &st, 0);
	assert_int_equal(st.st_mode, S_IFIFO | 0640);
	unlinkat(dir.fd, a, 0);
}

static void test_any_replaces_a_file_and_a_symlink(void **state)
{
	struct copy_expect any = expect_of(COPY_EXPECT_ANY);

	(void)state;
	assert_int_equal(publish_text("one", "f", &any, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_DONE);
	assert_text("f", "one");
	publish_text("two", "f", &any, COPY_CONFLICT_FAIL, NULL);
	assert_text("f", "two");
	put("target", "precious");
	assert_int_equal(symlinkat("target", dir.fd, "l"), 0);
	publish_text("three", "l", &any, COPY_CONFLICT_FAIL, NULL);
	assert_text("l", "three");
	assert_text("target", "precious");
}

static void test_names_of_one_file_are_replaced_one_after_the_other(void **state)
{
	struct copy_expect first, second;

	(void)state;
	put("a", "old");
	assert_int_equal(linkat(dir.fd, "a", dir.fd, "b", 0), 0);
	first = second = expect_same("a");
	assert_int_equal(publish_text("new", "a", &first, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_DONE);
	assert_int_equal(publish_text("new", "b", &second, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_DONE);
	put("c", "old");
	first = expect_same("c");
	assert_int_equal(linkat(dir.fd, "c", dir.fd, "d", 0), 0);
	assert_int_equal(publish_text("new", "c", &first, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_REFUSED);
}

static void test_file_never_replaces_a_directory(void **state)
{
	static const enum copy_conflict all[] = { COPY_CONFLICT_KEEP, COPY_CONFLICT_FAIL,
		COPY_CONFLICT_OVERWRITE };

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "d", 0700), 0);
	for (size_t c = 0; c < 3; c++)
		for (int kind = 0; kind < 3; kind++) {
			struct copy_expect expect = kind == COPY_EXPECT_SAME ? expect_same("d") :
				expect_of(kind);
			struct error err = ERROR_INIT;
			struct publish_result result =
				publish_text("x", "d", &expect, all[c], &err);

			assert_int_equal(result.fate,
				all[c] == COPY_CONFLICT_KEEP ? PUBLISH_BESIDE : PUBLISH_REFUSED);
			assert_non_null(strstr(err.text, "a directory"));
		}
	assert_text("d.job7", "x");
	assert_text("d.job7.3", "x");
	assert_int_equal(count_names(false), 4);
}

static void nothing_cases(void)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);
	struct error err = ERROR_INIT;
	struct publish_result result;

	result = publish_text("one", "f", &nothing, COPY_CONFLICT_KEEP, &err);
	assert_int_equal(result.fate, PUBLISH_DONE);
	assert_string_equal(result.name, "f");
	assert_int_equal(err.code, 0);
	result = publish_text("two", "f", &nothing, COPY_CONFLICT_KEEP, &err);
	assert_int_equal(result.fate, PUBLISH_BESIDE);
	assert_string_equal(result.name, "f.job7");
	assert_non_null(strstr(err.text, "f.job7"));
	result = publish_text("three", "f", &nothing, COPY_CONFLICT_KEEP, NULL);
	assert_string_equal(result.name, "f.job7.2");
	result = publish_text("four", "f", &nothing, COPY_CONFLICT_FAIL, &err);
	assert_int_equal(result.fate, PUBLISH_REFUSED);
	assert_text("f", "one");
	assert_text("f.job7", "two");
	assert_text("f.job7.2", "three");
	assert_int_equal(count_names(false), 3);
	publish_text("five", "f", &nothing, COPY_CONFLICT_OVERWRITE, NULL);
	assert_text("f", "five");
}

static void test_nothing_takes_only_a_free_name(void **state)
{
	(void)state;
	nothing_cases();
}

static void test_nothing_by_link(void **state)
{
	(void)state;
	kernel.no_noreplace = true;
	nothing_cases();
	assert_int_equal(kernel.renames, 1);
}

static void test_nothing_by_placeholder(void **state)
{
	(void)state;
	kernel.no_noreplace = kernel.no_link = true;
	nothing_cases();
}

static void test_dangling_symlink_is_not_a_free_name(void **state)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);

	(void)state;
	for (int i = 0; i < 3; i++) {
		kernel.no_noreplace = i > 0;
		kernel.no_link = i > 1;
		publish_free(dir.publish);
		publish_new(&dir.publish, NULL);
		symlinkat("nowhere", dir.fd, "l");
		assert_int_equal(publish_text("x", "l", &nothing, COPY_CONFLICT_FAIL, NULL).fate,
			PUBLISH_REFUSED);
		assert_absent("nowhere");
	}
}

static void same_cases(void)
{
	struct copy_expect same = expect_of(COPY_EXPECT_SAME);
	struct publish_result result;

	assert_int_equal(publish_text("one", "f", &same, COPY_CONFLICT_KEEP, NULL).fate,
		PUBLISH_DONE);
	same = expect_same("f");
	assert_int_equal(publish_text("two", "f", &same, COPY_CONFLICT_KEEP, NULL).fate,
		PUBLISH_DONE);
	assert_text("f", "two");
	result = publish_text("three", "f", &same, COPY_CONFLICT_KEEP, NULL);
	assert_int_equal(result.fate, PUBLISH_BESIDE);
	assert_text("f", "two");
	assert_text("f.job7", "three");
	same = expect_same("f");
	fchmodat(dir.fd, "f", 0640, 0); /* its ctime alone */
	assert_int_equal(publish_text("four", "f", &same, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_REFUSED);
	assert_text("f", "two");
	unlinkat(dir.fd, "f", 0);
	symlinkat("one", dir.fd, "f");
	same = expect_same("f");
	assert_int_equal(publish_text("five", "f", &same, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_DONE);
	assert_text("f", "five");
	assert_int_equal(count_names(false), 2);
}

static void test_same_replaces_only_what_is_expected(void **state)
{
	(void)state;
	same_cases();
}

static void test_same_without_exchange(void **state)
{
	(void)state;
	kernel.no_exchange = true;
	same_cases();
	assert_int_equal(kernel.renames, 3); /* two free names and one try to exchange */
}

static void rewrite_f(void)
{
	put("other", "theirs");
	assert_int_equal(renameat(dir.fd, "other", dir.fd, "f"), 0);
}

static void append_f(void)
{
	autoclose int fd = openat(dir.fd, "f", O_WRONLY | O_APPEND);

	assert_int_equal(write(fd, "+", 1), 1);
}

static void remove_f(void)
{
	assert_int_equal(unlinkat(dir.fd, "f", 0), 0);
}

static void directory_f(void)
{
	remove_f();
	assert_int_equal(mkdirat(dir.fd, "f", 0700), 0);
}

/* Somebody changes the file between the look at it and the exchange. */
static void test_same_changed_at_the_last_moment(void **state)
{
	struct copy_expect same;

	(void)state;
	put("f", "old");
	same = expect_same("f");
	kernel.before_exchange = rewrite_f;
	assert_int_equal(publish_text("ours", "f", &same, COPY_CONFLICT_KEEP, NULL).fate,
		PUBLISH_BESIDE);
	assert_text("f", "theirs");
	assert_text("f.job7", "ours");

	same = expect_same("f");
	kernel.before_exchange = append_f;
	assert_int_equal(publish_text("ours", "f", &same, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_REFUSED);
	assert_text("f", "theirs+");

	same = expect_same("f");
	kernel.before_exchange = remove_f;
	assert_int_equal(publish_text("ours", "f", &same, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_DONE);
	assert_text("f", "ours");

	same = expect_same("f");
	kernel.before_exchange = directory_f;
	assert_int_equal(publish_text("ours", "f", &same, COPY_CONFLICT_FAIL, NULL).fate,
		PUBLISH_REFUSED);
	assert_int_equal(unlinkat(dir.fd, "f", AT_REMOVEDIR), 0);
}

static void test_symlinks_and_fifos(void **state)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);
	char temp[PUBLISH_TEMP_SIZE], target[16] = "to?\n";
	struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev, .temp = temp,
		.expect = &nothing, .suffix = "s" };
	struct publish_result result;
	struct stat st;

	(void)state;
	for (int i = 0; i < 3; i++) {
		kernel.no_noreplace = i > 0;
		kernel.no_link = i > 1;
		publish_free(dir.publish);
		publish_new(&dir.publish, NULL);
		request.name = "l";
		target[2] = (char)('0' + i);
		assert_int_equal(publish_create_symlink(dir.publish, dir.fd, target, temp, NULL),
			0);
		assert_int_equal(publish_entry(dir.publish, &request, &result, NULL), 0);
		assert_int_equal(result.fate, i ? PUBLISH_BESIDE : PUBLISH_DONE);
		request.name = "p";
		assert_int_equal(publish_create_fifo(dir.publish, dir.fd, 0600, temp, NULL), 0);
		assert_int_equal(publish_entry(dir.publish, &request, &result, NULL), 0);
		assert_int_equal(result.fate, PUBLISH_DONE);
		assert_int_equal(result.same, i > 0); /* one FIFO is as good as another */
	}
	assert_int_equal(readlinkat(dir.fd, "l.s.2", target, sizeof(target)), 4);
	fstatat(dir.fd, "p", &st, AT_SYMLINK_NOFOLLOW);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(count_names(false), 4);
}

static struct publish_result publish_at(const char *text, const char *name, time_t mtime)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);
	struct timespec times[2] = { { 1, 0 }, { mtime, 7 } };
	char temp[PUBLISH_TEMP_SIZE];
	struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev, .temp = temp,
		.name = name, .expect = &nothing, .suffix = "s" };
	struct publish_result result;
	int fd = publish_create(dir.publish, dir.fd, 0600, temp, NULL);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(publish_entry(dir.publish, &request, &result, NULL), 0);
	return result;
}

/* What a run that died put there, and could not write down, is no stranger's. */
static void test_the_same_is_no_conflict(void **state)
{
	struct publish_result result;

	(void)state;
	assert_false(publish_at("one", "f", 1000).same);
	result = publish_at("one", "f", 1000);
	assert_int_equal(result.fate, PUBLISH_DONE);
	assert_true(result.same);
	assert_int_equal(count_names(false), 1);
	assert_int_equal(publish_at("two", "f", 1000).fate, PUBLISH_BESIDE);
	assert_int_equal(publish_at("one", "f", 1001).fate, PUBLISH_BESIDE);
	assert_int_equal(publish_at("one.", "f", 1000).fate, PUBLISH_BESIDE);
	assert_text("f", "one");
	assert_int_equal(count_names(false), 4);
}

static void test_long_names_are_cut_beside(void **state)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);
	char name[NAME_MAX + 1];
	struct publish_result result;

	(void)state;
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	publish_text("one", name, &nothing, COPY_CONFLICT_KEEP, NULL);
	for (int i = 0; i < 2; i++) {
		result = publish_text("two", name, &nothing, COPY_CONFLICT_KEEP, NULL);
		assert_int_equal(result.fate, PUBLISH_BESIDE);
		assert_int_equal(strlen(result.name), NAME_MAX);
		assert_text(result.name, "two");
	}
	assert_text(name, "one");
	assert_non_null(strstr(result.name, ".job7.2"));
}

static void test_links(void **state)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);
	struct copy_expect any = expect_of(COPY_EXPECT_ANY), same;
	struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev, .name = "b",
		.expect = &nothing, .suffix = "s" };
	struct publish_result result;
	struct stat st;

	(void)state;
	put("a", "bytes");
	for (int i = 0; i < 2; i++) { /* the second time it is there already */
		assert_int_equal(publish_link(dir.publish, dir.fd, "a", &request, &result, NULL),
			0);
		assert_int_equal(result.fate, PUBLISH_DONE);
	}
	put("c", "theirs");
	request.name = "c";
	assert_int_equal(publish_link(dir.publish, dir.fd, "a", &request, &result, NULL), 0);
	assert_int_equal(result.fate, PUBLISH_BESIDE);
	assert_text("c", "theirs");
	assert_text("c.s", "bytes");
	same = expect_same("c");
	request.expect = &same;
	assert_int_equal(publish_link(dir.publish, dir.fd, "a", &request, &result, NULL), 0);
	assert_int_equal(result.fate, PUBLISH_DONE);
	assert_text("c", "bytes");
	put("d", "theirs");
	request.name = "d";
	request.expect = &any;
	assert_int_equal(publish_link(dir.publish, dir.fd, "a", &request, &result, NULL), 0);
	fstatat(dir.fd, "d", &st, 0);
	assert_int_equal(st.st_nlink, 5);
}

static void test_directories(void **state)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING), same;
	struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev, .name = "d",
		.expect = &nothing, .suffix = "s" };
	struct publish_result result;

	(void)state;
	assert_int_equal(publish_directory(dir.publish, &request, 0700, &result, NULL), 0);
	assert_int_equal(result.fate, PUBLISH_DONE);
	assert_int_equal(publish_directory(dir.publish, &request, 0700, &result, NULL), 0);
	assert_int_equal(result.fate, PUBLISH_EXISTED);
	for (int i = 0; i < 2; i++) {
		kernel.no_exchange = kernel.no_noreplace = i > 0;
		publish_free(dir.publish);
		publish_new(&dir.publish, NULL);
		put("f", "theirs");
		request.name = "f";
		request.expect = &nothing;
		request.conflict = COPY_CONFLICT_FAIL;
		assert_int_equal(publish_directory(dir.publish, &request, 0700, &result, NULL), 0);
		assert_int_equal(result.fate, PUBLISH_REFUSED);
		request.conflict = COPY_CONFLICT_KEEP;
		assert_int_equal(publish_directory(dir.publish, &request, 0700, &result, NULL), 0);
		assert_int_equal(result.fate, PUBLISH_BESIDE);
		assert_string_equal(result.name, "f.s");
		assert_text("f", "theirs");
		same = expect_same("f");
		request.expect = &same;
		assert_int_equal(publish_directory(dir.publish, &request, 0700, &result, NULL), 0);
		assert_int_equal(result.fate, PUBLISH_DONE);
		assert_int_equal(unlinkat(dir.fd, "f", AT_REMOVEDIR), 0);
		symlinkat("d", dir.fd, "f"); /* a symlink to a directory is none */
		request.expect = &nothing;
		assert_int_equal(publish_directory(dir.publish, &request, 0700, &result, NULL), 0);
		assert_int_equal(result.fate, PUBLISH_BESIDE);
		request.conflict = COPY_CONFLICT_OVERWRITE;
		assert_int_equal(publish_directory(dir.publish, &request, 0700, &result, NULL), 0);
		assert_int_equal(result.fate, PUBLISH_DONE);
		assert_int_equal(unlinkat(dir.fd, "f", AT_REMOVEDIR), 0);
		assert_int_equal(count_names(true), 0);
	}
}

static void test_error_leaves_no_temporary(void **state)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);
	char temp[PUBLISH_TEMP_SIZE], name[NAME_MAX + 2];
	struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev, .temp = temp,
		.name = name, .expect = &nothing };
	struct publish_result result;
	struct error err = ERROR_INIT;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	make_temp(temp, "x");
	assert_int_equal(publish_entry(dir.publish, &request, &result, &err), -ENAMETOOLONG);
	assert_int_equal(err.code, -ENAMETOOLONG);
	assert_int_equal(count_names(false), 0);
}

#define PROCESSES 24

/* Many processes publish one name at the same moment. Each reports its fate by its exit status. */
static int publish_at_once(const struct copy_expect *expect)
{
	int gate[2], done = 0;

	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() == 0) {
			char temp[PUBLISH_TEMP_SIZE], text[24], c;
			struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev,
				.temp = temp, .name = "f", .expect = expect, .suffix = "job" };
			struct publish_result result;
			struct publish *publish = NULL;
			int fd;

			if (publish_new(&publish, NULL) < 0)
				_exit(99);
			fd = publish_create(publish, dir.fd, 0600, temp, NULL);
			snprintf(text, sizeof(text), "process %02d", i);
			if (write(fd, text, strlen(text)) < 0 || close(fd) < 0)
				_exit(99);
			close(gate[1]);
			if (read(gate[0], &c, 1) != 0)
				_exit(99);
			_exit(publish_entry(publish, &request, &result, NULL) < 0 ? 98 :
				(int)result.fate);
		}
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0, status; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		assert_true(WEXITSTATUS(status) == PUBLISH_DONE ||
			WEXITSTATUS(status) == PUBLISH_BESIDE);
		done += WEXITSTATUS(status) == PUBLISH_DONE;
	}
	return done;
}

/* Every process's file is there, once and whole. */
static void assert_all_there(void)
{
	autodir DIR *list = opendir(dir.path);
	bool seen[PROCESSES] = { false };
	struct dirent *entry;
	int number;

	while ((entry = readdir(list))) {
		char buffer[64] = "";
		autoclose int fd = openat(dir.fd, entry->d_name, O_RDONLY);

		if (entry->d_name[0] == '.')
			continue;
		assert_int_equal(read(fd, buffer, sizeof(buffer) - 1), strlen("process NN"));
		assert_int_equal(sscanf(buffer, "process %d", &number), 1);
		assert_false(seen[number]);
		seen[number] = true;
	}
	for (int i = 0; i < PROCESSES; i++)
		assert_true(seen[i]);
	assert_int_equal(count_names(false), PROCESSES);
}

static void test_many_processes_one_free_name(void **state)
{
	struct copy_expect nothing = expect_of(COPY_EXPECT_NOTHING);

	(void)state;
	for (int i = 0; i < 3; i++) {
		kernel.no_noreplace = i > 0;
		kernel.no_link = i > 1;
		assert_int_equal(publish_at_once(&nothing), 1);
		assert_all_there();
		teardown(NULL);
		setup(NULL);
	}
}

static void test_many_processes_replace_one_file(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct copy_expect same;

		put("f", "old");
		same = expect_same("f");
		assert_int_equal(publish_at_once(&same), 1);
		assert_all_there();
		teardown(NULL);
		setup(NULL);
	}
}

static void test_dead_temporaries_go(void **state)
{
	char temp[PUBLISH_TEMP_SIZE], line[PUBLISH_TEMP_SIZE] = "";
	uint64_t removed;
	int tell[2], status;
	siginfo_t ended;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(tell), 0);
	child = fork();
	if (child == 0) { /* a run that dies in the middle */
		struct publish *publish = NULL;

		publish_new(&publish, NULL);
		publish_create(publish, dir.fd, 0600, temp, NULL);
		publish_create_symlink(publish, dir.fd, "x", temp, NULL);
		publish_temp_name(publish, temp);
		mkdirat(dir.fd, temp, 0700);
		if (write(tell[1], temp, sizeof(temp)) < 0)
			_exit(1);
		pause();
	}
	assert_int_equal(read(tell[0], line, sizeof(line)), sizeof(line));
	make_temp(temp, "ours, live");
	put(COPY_TEMP_PREFIX "foreign", "not parsed");
	put(COPY_TEMP_PREFIX "1234abcd.99.1.5.0", "of another host");
	put("plain", "x");
	assert_int_equal(publish_remove_dead(dir.publish, dir.fd, &removed, NULL), 0);
	assert_int_equal(removed, 0);
	/* It is dead from then on, whether or not anybody has taken note. */
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(publish_remove_dead(dir.publish, dir.fd, &removed, NULL), 0);
	assert_int_equal(removed, 3);
	waitpid(child, &status, 0);
	assert_absent(line);
	assert_text(temp, "ours, live");
	assert_text("plain", "x");
	unlinkat(dir.fd, temp, 0);
	unlinkat(dir.fd, COPY_TEMP_PREFIX "foreign", 0);
	unlinkat(dir.fd, COPY_TEMP_PREFIX "1234abcd.99.1.5.0", 0);
}

static void die(void)
{
	_exit(0);
}

static void rewrite_and_swap_and_die(void)
{
	autodir DIR *list = opendir(dir.path);
	struct dirent *entry;

	rewrite_f();
	while ((entry = readdir(list)))
		if (publish_is_temp(entry->d_name))
			syscall(SYS_renameat2, dir.fd, entry->d_name, dir.fd, "f", RENAME_EXCHANGE);
	_exit(0);
}

static void assert_kept_temporary_holds(const char *text)
{
	autodir DIR *list = opendir(dir.path);
	struct dirent *entry;

	while ((entry = readdir(list)))
		if (publish_is_temp(entry->d_name)) {
			assert_text(entry->d_name, text);
			unlinkat(dir.fd, entry->d_name, 0);
		}
}

/* A run dies around an exchange: before it, its temporary holds ours; after it, somebody else's
 * file that nobody expected there. The first goes, the second never. */
static void test_death_at_an_exchange(void **state)
{
	void (*const deaths[])(void) = { die, rewrite_and_swap_and_die };
	uint64_t removed;
	int status;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct copy_expect same;

		put("f", "old");
		same = expect_same("f");
		if (fork() == 0) {
			struct publish *publish = NULL;
			char temp[PUBLISH_TEMP_SIZE];
			struct publish_request request = { .dirfd = dir.fd, .dev = dir.dev,
				.temp = temp, .name = "f", .expect = &same };
			struct publish_result result;

			publish_new(&publish, NULL);
			close(publish_create(publish, dir.fd, 0600, temp, NULL));
			kernel.before_exchange = deaths[i];
			publish_entry(publish, &request, &result, NULL);
			_exit(1);
		}
		assert_true(wait(&status) > 0 && status == 0);
		assert_int_equal(count_names(true), 1);
		assert_int_equal(publish_remove_dead(dir.publish, dir.fd, &removed, NULL), 0);
		assert_int_equal(removed, i == 0);
		assert_text("f", i == 0 ? "old" : "");
	}
	assert_kept_temporary_holds("theirs");
}

static void test_sync(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(publish_sync(dir.fd, NULL), 0);
	assert_int_equal(publish_sync(-1, &err), -EBADF);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_temporaries),
		TEST(test_any_replaces_a_file_and_a_symlink),
		TEST(test_file_never_replaces_a_directory),
		TEST(test_nothing_takes_only_a_free_name),
		TEST(test_nothing_by_link),
		TEST(test_nothing_by_placeholder),
		TEST(test_dangling_symlink_is_not_a_free_name),
		TEST(test_same_replaces_only_what_is_expected),
		TEST(test_same_without_exchange),
		TEST(test_same_changed_at_the_last_moment),
		TEST(test_symlinks_and_fifos),
		TEST(test_the_same_is_no_conflict),
		TEST(test_long_names_are_cut_beside),
		TEST(test_links),
		TEST(test_directories),
		TEST(test_error_leaves_no_temporary),
		TEST(test_many_processes_one_free_name),
		TEST(test_many_processes_replace_one_file),
		TEST(test_dead_temporaries_go),
		TEST(test_names_of_one_file_are_replaced_one_after_the_other),
		TEST(test_death_at_an_exchange),
		TEST(test_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
