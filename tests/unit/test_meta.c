#include "tree/meta.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <cmocka.h>

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

/* Calls that a test makes fail, and how often some were made. */
static struct {
	int set_errno, list_errno;
	int lists, sets, chowns, chmods, times;
	char order[16];
} kernel;

static void note(char what)
{
	size_t length = strlen(kernel.order);

	if (length + 1 < sizeof(kernel.order))
		kernel.order[length] = what;
}

ssize_t flistxattr(int fd, char *list, size_t size)
{
	kernel.lists++;
	if (kernel.list_errno) {
		errno = kernel.list_errno;
		return -1;
	}
	return syscall(SYS_flistxattr, fd, list, size);
}

int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	kernel.sets++;
	note(strcmp(name, ACCESS) == 0 || strcmp(name, DEFAULT) == 0 ? 'a' : 'x');
	if (kernel.set_errno) {
		errno = kernel.set_errno;
		return -1;
	}
	return (int)syscall(SYS_fsetxattr, fd, name, value, size, flags);
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	kernel.chowns++;
	note('o');
	return (int)syscall(SYS_fchown, fd, uid, gid);
}

int fchmod(int fd, mode_t mode)
{
	kernel.chmods++;
	note('m');
	return (int)syscall(SYS_fchmod, fd, mode);
}

int futimens(int fd, const struct timespec times[2])
{
	kernel.times++;
	note('t');
	return (int)syscall(SYS_utimensat, fd, NULL, times, 0);
}

static struct {
	char path[256];
	int fd;
} dir;

static int setup(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	umask(0);
	snprintf(dir.path, sizeof(dir.path), "%s/test_meta.XXXXXX",
		getenv("TEST_DIR") ? getenv("TEST_DIR") : "/tmp");
	assert_non_null(mkdtemp(dir.path));
	assert_int_equal(chmod(dir.path, 0777), 0);
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY);
	return 0;
}

static int teardown(void **state)
{
	autodir DIR *list = opendir(dir.path);
	struct dirent *entry;

	(void)state;
	while ((entry = readdir(list)))
		if (unlinkat(dir.fd, entry->d_name, 0) < 0)
			unlinkat(dir.fd, entry->d_name, AT_REMOVEDIR);
	close(dir.fd);
	rmdir(dir.path);
	return 0;
}

static int need_root(void)
{
	if (geteuid() != 0) {
		print_message("needs root\n");
		return 0;
	}
	return 1;
}

/* Runs body in a process of an ordinary user's, with one more group. Fails with it. */
static void as_user(void (*body)(void))
{
	const gid_t groups[] = { 65534, 54321 };
	int status;

	if (fork() == 0) {
		if (geteuid() == 0 && (setgroups(2, groups) < 0 || setgid(65534) < 0 ||
			setuid(65534) < 0))
			_exit(2);
		body();
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

/* For as_user's process, where cmocka's own asserts would go astray. */
#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void make_file(const char *name, mode_t mode)
{
	int fd = openat(dir.fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	must(fd >= 0 && write(fd, "x", 1) == 1);
	must(syscall(SYS_fchmod, fd, mode) == 0);
	close(fd);
}

/* "u::rw-,u:1:rwx,g::---,m::rwx,o::---" as the kernel takes it: its group has nothing. */
static const unsigned char acl[] = { 2, 0, 0, 0,
	0x01, 0, 6, 0, 0xff, 0xff, 0xff, 0xff,
	0x02, 0, 7, 0, 1, 0, 0, 0,
	0x04, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
	0x10, 0, 7, 0, 0xff, 0xff, 0xff, 0xff,
	0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff };

static void set_attribute(const char *name, const char *attribute, const void *value, size_t size)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", dir.path, name);
	must(lsetxattr(path, attribute, value, size, 0) == 0);
}

static ssize_t get_attribute(const char *name, const char *attribute, void *value, size_t size)
{
	char path[300];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir.path, name);
	n = lgetxattr(path, attribute, value, size);
	return n < 0 ? -errno : n;
}

static struct stat stat_of(const char *name)
{
	struct stat st = { 0 };

	must(fstatat(dir.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st;
}

struct copied {
	int rc;
	unsigned dropped;
	mode_t created; /* permissions it was made with */
	struct error err;
};

/* Copies the file "s" to a new "d", as the engine does. */
static struct copied copy_file(const struct meta_options *options)
{
	struct copied copied = { .err = ERROR_INIT };
	struct meta *meta = NULL;
	struct meta_source source;
	struct meta_place place;
	struct stat st, made;
	int src = openat(dir.fd, "s", O_RDONLY | O_NOFOLLOW), dst;

	must(src >= 0 && fstat(src, &st) == 0);
	must(meta_new(options, &meta, NULL) == 0);
	must(meta_place_of(meta, dir.fd, NULL, &place, NULL) == 0);
	meta_read(meta, src, &st, &source);
	dst = openat(dir.fd, "d", O_RDWR | O_CREAT | O_EXCL,
		meta_create_mode(meta, &source, &place));
	must(dst >= 0 && fstat(dst, &made) == 0);
	copied.created = made.st_mode & 07777;
	memset(&kernel.lists, 0, sizeof(kernel) - offsetof(__typeof__(kernel), lists));
	copied.rc = meta_apply(meta, &source, dst, &made, &place, &copied.dropped, &copied.err);
	meta_source_free(&source);
	meta_free(meta);
	close(src);
	close(dst);
	return copied;
}

/* The same for the directory "s". */
static struct copied copy_directory(const struct meta_options *options)
{
	struct copied copied = { .err = ERROR_INIT };
	struct meta *meta = NULL;
	struct meta_source source;
	struct meta_place parent, place;
	struct stat st, made;
	int src = openat(dir.fd, "s", O_RDONLY | O_DIRECTORY | O_NOFOLLOW), dst;

	must(src >= 0 && fstat(src, &st) == 0);
	must(meta_new(options, &meta, NULL) == 0);
	must(meta_place_of(meta, dir.fd, NULL, &parent, NULL) == 0);
	meta_read(meta, src, &st, &source);
	must(mkdirat(dir.fd, "d", meta_create_mode(meta, &source, &parent)) == 0);
	dst = openat(dir.fd, "d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	must(dst >= 0 && fstat(dst, &made) == 0);
	copied.created = made.st_mode & 07777;
	must(meta_place_of(meta, dst, &made, &place, NULL) == 0);
	must(faccessat(dst, ".", W_OK | X_OK, AT_EACCESS) == 0);
	copied.rc = meta_apply(meta, &source, dst, &made, &place, &copied.dropped, &copied.err);
	meta_source_free(&source);
	meta_free(meta);
	close(src);
	close(dst);
	return copied;
}

static const struct meta_options as_is = { .keep_owner = true };

static void set_times(const char *name, int64_t atime, int64_t mtime, long nanoseconds)
{
	const struct timespec times[2] = { { atime, nanoseconds }, { mtime, nanoseconds } };

	must(utimensat(dir.fd, name, times, AT_SYMLINK_NOFOLLOW) == 0);
}

/* M01, M15: nanoseconds, 1960, 2100. */
static void test_times_are_exact(void **state)
{
	static const int64_t seconds[] = { 1704164645, -315619200, 4102444800, 0 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct stat st;

		make_file("s", 0644);
		set_times("s", seconds[i] + 5, seconds[i], 123456789);
		assert_int_equal(copy_file(&as_is).rc, 0);
		st = stat_of("d");
		assert_int_equal(st.st_mtim.tv_sec, seconds[i]);
		assert_int_equal(st.st_mtim.tv_nsec, 123456789);
		assert_int_equal(st.st_atim.tv_sec, seconds[i] + 5);
		unlinkat(dir.fd, "s", 0);
		unlinkat(dir.fd, "d", 0);
	}
}

/* K01: what cleaners of old files go by, where the modification time is kept. */
static void test_accessed_now(void **state)
{
	static const struct meta_options options = { .keep_owner = true, .accessed_now = true };
	time_t before = time(NULL) - 1; /* the clock of files may lag behind */
	struct stat st;

	(void)state;
	make_file("s", 0644);
	set_times("s", 1000000000, 1000000001, 123456789);
	assert_int_equal(copy_file(&options).rc, 0);
	st = stat_of("d");
	assert_true(st.st_atim.tv_sec >= before);
	assert_int_equal(st.st_mtim.tv_sec, 1000000001);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	unlinkat(dir.fd, "s", 0);
	unlinkat(dir.fd, "d", 0);
}

/* M15: one that the filesystem can not hold is told. TEST_CLAMPS: it has only 32 bits. */
static void test_clamped_time_is_told(void **state)
{
	struct copied copied = { .err = ERROR_INIT };
	struct meta *meta = NULL;
	struct meta_source source;
	struct meta_place place;
	struct stat st;
	int fd;

	(void)state;
	make_file("d", 0644);
	fd = openat(dir.fd, "d", O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	st.st_mtim.tv_sec = 4102444800;
	assert_int_equal(meta_new(&as_is, &meta, NULL), 0);
	assert_int_equal(meta_place_of(meta, dir.fd, NULL, &place, NULL), 0);
	meta_read(meta, fd, &st, &source);
	copied.rc = meta_apply(meta, &source, fd, NULL, &place, &copied.dropped, &copied.err);
	assert_int_equal(copied.rc, getenv("TEST_CLAMPS") ? -ERANGE : 0);
	assert_true(copied.rc == 0 || strstr(copied.err.text, "times"));
	meta_source_free(&source);
	meta_free(meta);
	close(fd);
}

static void test_plain_file_costs_one_call(void **state)
{
	(void)state;
	make_file("s", 0644);
	assert_int_equal(copy_file(&as_is).rc, 0);
	assert_string_equal(kernel.order, "t");
	assert_int_equal(kernel.lists, 0);
}

/* C07: whatever the umask, never more open than in the end. */
static void test_created_no_more_open_than_in_the_end(void **state)
{
	static const struct {
		mode_t source, created;
	} cases[] = { { 0600, 0600 }, { 0644, 0644 }, { 0444, 0444 }, { 0755, 0755 },
		{ 0400, 0400 }, { 0000, 0000 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct copied copied;

		make_file("s", cases[i].source);
		copied = copy_file(&as_is);
		assert_int_equal(copied.rc, 0);
		assert_int_equal(copied.created, cases[i].created);
		assert_int_equal(stat_of("d").st_mode & 07777, cases[i].source);
		unlinkat(dir.fd, "s", 0);
		unlinkat(dir.fd, "d", 0);
	}
	if (!need_root())
		return;
	make_file("s", 0640);
	assert_int_equal(fchownat(dir.fd, "s", 1000, 1000, 0), 0);
	assert_int_equal(copy_file(&as_is).created, 0600); /* ours could read it: root's group */
	assert_int_equal(stat_of("d").st_mode & 07777, 0640);
	unlinkat(dir.fd, "d", 0);
	set_attribute("s", ACCESS, acl, sizeof(acl)); /* the mode says 0670 now, the group has
						       * none */
	assert_int_equal(copy_file(&as_is).created & 077, 0);
}

static void test_umask_is_made_up_for(void **state)
{
	(void)state;
	make_file("s", 0664);
	umask(077);
	assert_int_equal(copy_file(&as_is).rc, 0);
	assert_int_equal(stat_of("d").st_mode & 07777, 0664);
	assert_string_equal(kernel.order, "mt");
}

/* M10: a chown would take setuid and capabilities away again. */
static void test_order(void **state)
{
	static const unsigned char capability[] = { 1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0 };
	const struct meta_options special = { .keep_owner = true, .keep_special_bits = true };
	unsigned char value[64];
	struct copied copied;

	(void)state;
	if (!need_root())
		skip();
	make_file("s", 0755);
	assert_int_equal(fchownat(dir.fd, "s", 1, 1, 0), 0);
	set_attribute("s", "security.capability", capability, sizeof(capability));
	set_attribute("s", "user.k", "v", 1);
	assert_int_equal(fchmodat(dir.fd, "s", 06755, 0), 0);
	copied = copy_file(&special);
	assert_int_equal(copied.rc, 0);
	assert_int_equal(copied.dropped, 0);
	assert_string_equal(kernel.order, "oxxmt");
	assert_int_equal(stat_of("d").st_mode & 07777, 06755);
	assert_int_equal(stat_of("d").st_uid, 1);
	assert_int_equal(get_attribute("d", "security.capability", value, sizeof(value)),
		sizeof(capability));
	assert_memory_equal(value, capability, sizeof(capability));

	unlinkat(dir.fd, "d", 0);
	copied = copy_file(&as_is);
	assert_int_equal(copied.rc, 0);
	assert_int_equal(copied.dropped, META_DROPPED_SETUID | META_DROPPED_SETGID |
		META_DROPPED_CAPABILITY);
	assert_int_equal(stat_of("d").st_mode & 07777, 0755);
	assert_int_equal(get_attribute("d", "security.capability", value, sizeof(value)), -ENODATA);
	assert_int_equal(get_attribute("d", "user.k", value, sizeof(value)), 1);
}

static void test_special_bits_need_their_owner(void **state)
{
	const struct meta_options mine = { .keep_special_bits = true };
	struct copied copied;

	(void)state;
	if (!need_root())
		skip();
	make_file("s", 0755);
	assert_int_equal(fchownat(dir.fd, "s", 1, 1, 0), 0);
	assert_int_equal(fchmodat(dir.fd, "s", 06755, 0), 0);
	copied = copy_file(&mine);
	assert_int_equal(copied.dropped, META_DROPPED_SETUID | META_DROPPED_SETGID);
	assert_int_equal(stat_of("d").st_mode & 07777, 0755);
}

/* M08: attributes of a file that its owner may not write. */
static void read_only_with_attributes(void)
{
	char value[64];
	struct copied copied;

	make_file("s", 0600);
	set_attribute("s", "user.k", "v", 1);
	set_attribute("s", "user.empty", "", 0);
	set_attribute("s", ACCESS, acl, sizeof(acl));
	must(fchmodat(dir.fd, "s", 0440, 0) == 0);
	copied = copy_file(&as_is);
	if (copied.rc)
		fprintf(stderr, "%s\n", copied.err.text);
	must(copied.rc == 0);
	must((stat_of("d").st_mode & 07777) == 0440);
	must(get_attribute("d", "user.k", value, sizeof(value)) == 1 && value[0] == 'v');
	must(get_attribute("d", "user.empty", value, sizeof(value)) == 0);
	must(get_attribute("d", ACCESS, value, sizeof(value)) == sizeof(acl));
}

static void test_read_only_with_attributes_as_user(void **state)
{
	(void)state;
	as_user(read_only_with_attributes);
}

static void test_long_lists_and_values(void **state)
{
	char name[200], long_value[3000], value[4096];

	(void)state;
	memset(long_value, 'v', sizeof(long_value));
	make_file("s", 0644);
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "user.%0150d", i);
		set_attribute("s", name, "0123456789", (size_t)(i % 11));
	}
	assert_int_equal(copy_file(&as_is).rc, 0);
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "user.%0150d", i);
		assert_int_equal(get_attribute("d", name, value, sizeof(value)), i % 11);
	}
	unlinkat(dir.fd, "s", 0);
	unlinkat(dir.fd, "d", 0);
	make_file("s", 0644);
	set_attribute("s", "user.long", long_value, sizeof(long_value));
	assert_int_equal(copy_file(&as_is).rc, 0);
	assert_int_equal(get_attribute("d", "user.long", value, sizeof(value)), sizeof(long_value));
	assert_memory_equal(value, long_value, sizeof(long_value));
}

/* E02: the bytes are there, one attribute is not; the rest of them are. */
static void test_failure_is_told_and_the_rest_done(void **state)
{
	struct copied copied;

	(void)state;
	make_file("s", 0640);
	set_attribute("s", "user.k", "v", 1);
	set_attribute("s", "user.l", "v", 1);
	set_times("s", 5, 6, 7);
	kernel.set_errno = EIO;
	copied = copy_file(&as_is);
	assert_int_equal(copied.rc, -EIO);
	assert_int_equal(copied.err.code, -EIO);
	assert_non_null(strstr(copied.err.text, "user.k"));
	assert_non_null(strstr(copied.err.text, "user.l"));
	assert_int_equal(stat_of("d").st_mode & 07777, 0640);
	assert_int_equal(stat_of("d").st_mtim.tv_nsec, 7);

	unlinkat(dir.fd, "d", 0);
	kernel.set_errno = 0;
	kernel.list_errno = EIO;
	copied = copy_file(&as_is);
	assert_int_equal(copied.rc, -EIO);
	assert_int_equal(stat_of("d").st_mtim.tv_nsec, 7);
}

static void test_acl_that_can_not_be_set_opens_nothing(void **state)
{
	struct copied copied;

	(void)state;
	make_file("s", 0600);
	set_attribute("s", ACCESS, acl, sizeof(acl));
	assert_int_equal(stat_of("s").st_mode & 07777, 0670);
	kernel.set_errno = EOPNOTSUPP;
	copied = copy_file(&as_is);
	assert_int_equal(copied.rc, -EOPNOTSUPP);
	assert_non_null(strstr(copied.err.text, "acl"));
	assert_int_equal(stat_of("d").st_mode & 07777, 0600);
}

/* Tried once, told every time. */
static void test_lack_is_remembered(void **state)
{
	struct meta *meta = NULL;
	struct meta_source source;
	struct meta_place place;
	struct error err = ERROR_INIT;
	struct stat st;
	unsigned dropped;
	int src, dst;

	(void)state;
	make_file("s", 0644);
	set_attribute("s", "user.k", "v", 1);
	make_file("d", 0644);
	src = openat(dir.fd, "s", O_RDONLY);
	dst = openat(dir.fd, "d", O_RDWR);
	fstat(src, &st);
	assert_int_equal(meta_new(&as_is, &meta, NULL), 0);
	assert_int_equal(meta_place_of(meta, dir.fd, NULL, &place, NULL), 0);
	meta_read(meta, src, &st, &source);
	kernel.set_errno = EOPNOTSUPP;
	for (int i = 0; i < 3; i++)
		assert_int_equal(meta_apply(meta, &source, dst, NULL, &place, &dropped, &err),
			-EOPNOTSUPP);
	assert_int_equal(kernel.sets, 1);
	meta_source_free(&source);
	kernel.list_errno = EOPNOTSUPP;
	kernel.lists = 0;
	for (int i = 0; i < 3; i++) {
		meta_read(meta, src, &st, &source);
		assert_int_equal(meta_apply(meta, &source, dst, NULL, &place, &dropped, &err), 0);
		meta_source_free(&source);
	}
	assert_int_equal(kernel.lists, 1);
	meta_free(meta);
	close(src);
	close(dst);
}

/* K07 */
static void test_namespaces(void **state)
{
	const struct meta_options trusted = { .keep_owner = true, .trusted = true };
	char value[8];

	(void)state;
	if (!need_root())
		skip();
	make_file("s", 0644);
	set_attribute("s", "trusted.lov", "a", 1);
	set_attribute("s", "user.k", "v", 1);
	assert_int_equal(copy_file(&as_is).rc, 0);
	assert_int_equal(get_attribute("d", "trusted.lov", value, sizeof(value)), -ENODATA);
	assert_int_equal(get_attribute("d", "user.k", value, sizeof(value)), 1);
	unlinkat(dir.fd, "d", 0);
	assert_int_equal(copy_file(&trusted).rc, 0);
	assert_int_equal(get_attribute("d", "trusted.lov", value, sizeof(value)), 1);
}

/* M03: a directory that nobody may write can be filled, and is read-only in the end. */
static void read_only_directory(void)
{
	struct copied copied;

	must(mkdirat(dir.fd, "s", 0755) == 0);
	set_attribute("s", "user.k", "v", 1);
	set_attribute("s", DEFAULT, acl, sizeof(acl));
	must(fchmodat(dir.fd, "s", 0555, 0) == 0);
	set_times("s", 5, 6, 7);
	copied = copy_directory(&as_is);
	must(copied.rc == 0);
	must((copied.created & 0700) == 0700);
	must((stat_of("d").st_mode & 07777) == 0555);
	must(stat_of("d").st_mtim.tv_nsec == 7);
	must(get_attribute("d", DEFAULT, NULL, 0) == sizeof(acl));
	must(get_attribute("d", "user.k", NULL, 0) == 1);
}

static void test_read_only_directory(void **state)
{
	(void)state;
	as_user(read_only_directory);
}

static void test_directory_modes(void **state)
{
	static const mode_t modes[] = { 0755, 0700, 01777, 02755, 0000, 03775 };

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		assert_int_equal(mkdirat(dir.fd, "s", 0700), 0);
		assert_int_equal(fchmodat(dir.fd, "s", modes[i], 0), 0);
		assert_int_equal(copy_directory(&as_is).rc, 0);
		assert_int_equal(stat_of("d").st_mode & 07777, modes[i]);
		unlinkat(dir.fd, "s", AT_REMOVEDIR);
		unlinkat(dir.fd, "d", AT_REMOVEDIR);
	}
}

/* M05: results in a project's directory belong to the project. */
static void inherits(void)
{
	const struct meta_options inherit = { .keep_owner = true, .inherit_group = true };
	struct copied copied;

	must(mkdirat(dir.fd, "s", 0755) == 0);
	copied = copy_directory(&inherit);
	must(copied.rc == 0 && copied.dropped == 0);
	must(stat_of("d").st_gid == 100);
	must((stat_of("d").st_mode & 07777) == 02755);
	unlinkat(dir.fd, "s", AT_REMOVEDIR);
	unlinkat(dir.fd, "d", AT_REMOVEDIR);
	make_file("s", 0640);
	copied = copy_file(&inherit);
	must(copied.rc == 0);
	must(stat_of("d").st_gid == 100);
	must((stat_of("d").st_mode & 07777) == 0640);
}

static void test_inherited_group(void **state)
{
	(void)state;
	if (!need_root())
		skip();
	assert_int_equal(fchownat(dir.fd, "", 65534, 100, AT_EMPTY_PATH), 0);
	assert_int_equal(syscall(SYS_fchmod, dir.fd, 02777), 0);
	as_user(inherits);
}

static void test_inherited_group_is_left_where_it_is_not_wanted(void **state)
{
	(void)state;
	if (!need_root())
		skip();
	assert_int_equal(mkdirat(dir.fd, "s", 0755), 0);
	assert_int_equal(fchownat(dir.fd, "s", 1000, 1000, 0), 0);
	assert_int_equal(fchownat(dir.fd, "", -1, 100, AT_EMPTY_PATH), 0);
	assert_int_equal(syscall(SYS_fchmod, dir.fd, 02777), 0);
	assert_int_equal(fchownat(dir.fd, "s", 1000, 1000, 0), 0);
	assert_int_equal(copy_directory(&as_is).rc, 0);
	assert_int_equal(stat_of("d").st_gid, 1000);
	assert_int_equal(stat_of("d").st_uid, 1000);
	assert_int_equal(stat_of("d").st_mode & 07777, 0755);
}

/* An ordinary user gives a file to a group of theirs, and to nobody else; that is no failure. */
static void groups_of_a_user(void)
{
	struct copied copied = copy_file(&as_is);

	must(copied.rc == 0);
	must(stat_of("d").st_uid == 65534 && stat_of("d").st_gid == 54321);
	must(kernel.chowns == 1);
	unlinkat(dir.fd, "d", 0);
	must(renameat(dir.fd, "other", dir.fd, "s") == 0);
	copied = copy_file(&as_is);
	must(copied.rc == 0);
	must(stat_of("d").st_uid == 65534 && stat_of("d").st_gid == 65534);
	must(kernel.chowns == 0);
}

static void test_groups_of_a_user(void **state)
{
	(void)state;
	if (!need_root())
		skip();
	make_file("s", 0644);
	assert_int_equal(fchownat(dir.fd, "s", 1000, 54321, 0), 0);
	make_file("other", 0644);
	assert_int_equal(fchownat(dir.fd, "other", 1000, 1000, 0), 0);
	as_user(groups_of_a_user);
}

/* What a default ACL of the destination gave goes where the source has none, and stays by
 * request. */
static void test_inherited_acl(void **state)
{
	const struct meta_options inherit = { .inherit_group = true };
	int source;

	(void)state;
	make_file("s", 0644);
	source = openat(dir.fd, "s", O_RDONLY);
	set_attribute(".", DEFAULT, acl, sizeof(acl));
	assert_int_equal(copy_file(&as_is).rc, 0);
	assert_int_equal(get_attribute("d", ACCESS, NULL, 0), -ENODATA);
	assert_int_equal(stat_of("d").st_mode & 07777, 0644);
	unlinkat(dir.fd, "d", 0);
	assert_int_equal(copy_file(&inherit).rc, 0);
	assert_int_equal(get_attribute("d", ACCESS, NULL, 0), sizeof(acl));
	unlinkat(dir.fd, "s", 0);
	unlinkat(dir.fd, "d", 0);
	close(source);

	assert_int_equal(mkdirat(dir.fd, "s", 0755), 0);
	removexattr(dir.path, DEFAULT);
	assert_int_equal(fchmodat(dir.fd, "s", 0755, 0), 0);
	unlinkat(dir.fd, "s", AT_REMOVEDIR);
	assert_int_equal(mkdirat(dir.fd, "s", 0755), 0);
	set_attribute(".", DEFAULT, acl, sizeof(acl));
	assert_int_equal(copy_directory(&as_is).rc, 0);
	assert_int_equal(get_attribute("d", ACCESS, NULL, 0), -ENODATA);
	assert_int_equal(get_attribute("d", DEFAULT, NULL, 0), -ENODATA);
	assert_int_equal(stat_of("d").st_mode & 07777, 0755);
}

static struct copied copy_at(const struct meta_options *options, const char *target)
{
	struct copied copied = { .err = ERROR_INIT };
	struct stat st = stat_of("s");
	struct meta *meta = NULL;
	struct meta_source source;
	struct meta_place place;
	mode_t mode;

	must(meta_new(options, &meta, NULL) == 0);
	must(meta_place_of(meta, dir.fd, NULL, &place, NULL) == 0);
	meta_read_at(meta, dir.fd, "s", &st, &source);
	mode = meta_create_mode(meta, &source, &place);
	must((target ? symlinkat(target, dir.fd, "d") : mkfifoat(dir.fd, "d", mode)) == 0);
	copied.rc = meta_apply_at(meta, &source, dir.fd, "d", NULL, &place, &copied.dropped,
		&copied.err);
	meta_source_free(&source);
	meta_free(meta);
	return copied;
}

static void test_symlink(void **state)
{
	const struct meta_options trusted = { .keep_owner = true, .trusted = true };
	struct stat victim;

	(void)state;
	make_file("victim", 0600);
	set_times("victim", 1, 1, 1);
	assert_int_equal(symlinkat("victim", dir.fd, "s"), 0);
	set_times("s", -5, -6, 7);
	victim = stat_of("victim");
	if (need_root()) {
		assert_int_equal(fchownat(dir.fd, "s", 1000, 1001, AT_SYMLINK_NOFOLLOW), 0);
		set_attribute("s", "trusted.t", "v", 1);
	}
	assert_int_equal(copy_at(&as_is, "victim").rc, 0);
	assert_int_equal(stat_of("d").st_mtim.tv_sec, -6);
	assert_int_equal(stat_of("d").st_uid, geteuid() ? geteuid() : 1000);
	assert_int_equal(stat_of("victim").st_ctim.tv_nsec, victim.st_ctim.tv_nsec);
	if (!need_root())
		return;
	assert_int_equal(get_attribute("d", "trusted.t", NULL, 0), -ENODATA);
	unlinkat(dir.fd, "d", 0);
	assert_int_equal(copy_at(&trusted, "nowhere").rc, 0);
	assert_int_equal(get_attribute("d", "trusted.t", NULL, 0), 1);
}

static void fifo(void)
{
	must(mkfifoat(dir.fd, "s", 0600) == 0);
	set_attribute("s", ACCESS, acl, sizeof(acl));
	set_times("s", 5, 6, 7);
	must(copy_at(&as_is, NULL).rc == 0);
	must(S_ISFIFO(stat_of("d").st_mode));
	must((stat_of("d").st_mode & 07777) == 0670);
	must(stat_of("d").st_mtim.tv_nsec == 7);
	must(get_attribute("d", ACCESS, NULL, 0) == sizeof(acl));
}

static void test_fifo(void **state)
{
	(void)state;
	as_user(fifo);
}

static void test_fifo_of_somebody_else(void **state)
{
	(void)state;
	if (!need_root())
		skip();
	assert_int_equal(mkfifoat(dir.fd, "s", 0640), 0);
	assert_int_equal(fchownat(dir.fd, "s", 1000, 1001, 0), 0);
	assert_int_equal(copy_at(&as_is, NULL).rc, 0);
	assert_int_equal(stat_of("d").st_mode & 07777, 0640);
	assert_int_equal(stat_of("d").st_gid, 1001);
}

static void test_dropped_text(void **state)
{
	char text[64];

	(void)state;
	assert_string_equal(meta_dropped_text(7, text, sizeof(text)),
		"setuid, setgid and capabilities");
	assert_string_equal(meta_dropped_text(1, text, sizeof(text)), "setuid");
	assert_string_equal(meta_dropped_text(5, text, sizeof(text)), "setuid and capabilities");
	assert_string_equal(meta_dropped_text(0, text, sizeof(text)), "");
	assert_string_equal(meta_dropped_text(7, text, 4), "set");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times_are_exact),
		TEST(test_accessed_now),
		TEST(test_clamped_time_is_told),
		TEST(test_plain_file_costs_one_call),
		TEST(test_created_no_more_open_than_in_the_end),
		TEST(test_umask_is_made_up_for),
		TEST(test_order),
		TEST(test_special_bits_need_their_owner),
		TEST(test_read_only_with_attributes_as_user),
		TEST(test_long_lists_and_values),
		TEST(test_failure_is_told_and_the_rest_done),
		TEST(test_acl_that_can_not_be_set_opens_nothing),
		TEST(test_lack_is_remembered),
		TEST(test_namespaces),
		TEST(test_read_only_directory),
		TEST(test_directory_modes),
		TEST(test_inherited_group),
		TEST(test_inherited_group_is_left_where_it_is_not_wanted),
		TEST(test_groups_of_a_user),
		TEST(test_inherited_acl),
		TEST(test_symlink),
		TEST(test_fifo),
		TEST(test_fifo_of_somebody_else),
		TEST(test_dropped_text),
	};

	/* Nothing but seconds of 32 bits is kept there. */
	if (getenv("TEST_CLAMPS"))
		cmocka_set_test_filter("test_clamped_time_is_told");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
