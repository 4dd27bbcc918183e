#include "copy/range.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <cmocka.h>

/* The kernel's calls, stood in for where a test says so: what they return, and how often they were
 * asked. */
static struct {
	int clone_errno; /* 0: the kernel's own answer */
	int cfr_errno;
	ssize_t cfr_most; /* bytes a call at most; 0: no limit */
	int cfr_calls_before_errno;
	bool cfr_says_end;
	int clones, cfrs;
	long filesystem; /* f_type; 0: the kernel's own answer */
	bool no_direct_files, no_direct_reads; /* EINVAL when asked for, or at the read */
	int direct_reads;
} kernel;

int fcntl(int fd, int command, ...)
{
	va_list args;
	long argument;

	va_start(args, command);
	argument = va_arg(args, long);
	va_end(args);
	if (command == F_SETFL && argument & O_DIRECT && kernel.no_direct_files) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	if (fcntl(fd, F_GETFL, 0L) & O_DIRECT) {
		kernel.direct_reads++;
		if (kernel.no_direct_reads) {
			errno = EINVAL;
			return -1;
		}
	}
	return syscall(SYS_pread64, fd, buffer, size, offset);
}

int fstatfs(int fd, struct statfs *fs)
{
	int rc = (int)syscall(SYS_fstatfs, fd, fs);

	if (kernel.filesystem)
		fs->f_type = kernel.filesystem;
	return rc;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	unsigned long argument;

	va_start(args, request);
	argument = va_arg(args, unsigned long);
	va_end(args);
	if (request == FICLONE || request == FICLONERANGE) {
		kernel.clones++;
		if (kernel.clone_errno) {
			errno = kernel.clone_errno;
			return -1;
		}
	}
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t length,
	unsigned flags)
{
	kernel.cfrs++;
	if (kernel.cfr_says_end)
		return 0;
	if (kernel.cfr_errno && kernel.cfrs > kernel.cfr_calls_before_errno) {
		errno = kernel.cfr_errno;
		return -1;
	}
	if (kernel.cfr_most && length > (size_t)kernel.cfr_most)
		length = (size_t)kernel.cfr_most;
	return syscall(SYS_copy_file_range, in, in_offset, out, out_offset, length, flags);
}

struct files {
	char dir[256];
	int src, dst;
	struct range *range;
	struct range_buffer buffer;
};

static int setup(void **state)
{
	struct files *files = calloc(1, sizeof(*files));
	char path[300];

	memset(&kernel, 0, sizeof(kernel));
	snprintf(files->dir, sizeof(files->dir), "%s/test_range.XXXXXX",
		getenv("TEST_DIR") ? getenv("TEST_DIR") : "/tmp");
	assert_non_null(mkdtemp(files->dir));
	snprintf(path, sizeof(path), "%s/s", files->dir);
	files->src = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	snprintf(path, sizeof(path), "%s/d", files->dir);
	files->dst = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(files->src >= 0 && files->dst >= 0);
	assert_int_equal(range_new(NULL, &files->range, NULL), 0);
	*state = files;
	return 0;
}

static int teardown(void **state)
{
	struct files *files = *state;
	char path[300];

	close(files->src);
	close(files->dst);
	snprintf(path, sizeof(path), "%s/s", files->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/d", files->dir);
	unlink(path);
	rmdir(files->dir);
	range_free(files->range);
	range_buffer_free(&files->buffer);
	free(files);
	return 0;
}

static void force(struct files *files, const char *name)
{
	range_free(files->range);
	assert_int_equal(range_new(name, &files->range, NULL), 0);
}

/* Bytes that differ at every place of a file. */
static void fill(int fd, uint64_t offset, size_t size)
{
	autofree uint64_t *words = malloc(size + 8);

	for (size_t i = 0; i < size / 8 + 1; i++)
		words[i] = (offset / 8 + i + 1) * 0x9e3779b97f4a7c15ull;
	assert_int_equal(pwrite(fd, words, size, (off_t)offset), size);
}

static void assert_same(const struct files *files)
{
	struct stat a, b;
	autofree char *x = NULL, *y = NULL;

	assert_int_equal(fcntl(files->src, F_SETFL, 0L), 0); /* not O_DIRECT */
	fstat(files->src, &a);
	fstat(files->dst, &b);
	assert_int_equal(a.st_size, b.st_size);
	x = malloc((size_t)a.st_size + 1);
	y = malloc((size_t)a.st_size + 1);
	assert_int_equal(pread(files->src, x, (size_t)a.st_size, 0), a.st_size);
	assert_int_equal(pread(files->dst, y, (size_t)a.st_size, 0), a.st_size);
	assert_memory_equal(x, y, (size_t)a.st_size);
}

static struct range_job job_of(const struct files *files, uint64_t offset, uint64_t length)
{
	struct stat a, b;

	fstat(files->src, &a);
	fstat(files->dst, &b);
	return (struct range_job){ .src = files->src, .dst = files->dst, .src_dev = a.st_dev,
		.dst_dev = b.st_dev, .src_offset = offset, .dst_offset = offset, .length = length };
}

static int copy(struct files *files, uint64_t offset, uint64_t length, uint64_t *copied,
	struct error *err)
{
	struct range_job job = job_of(files, offset, length);

	return range_copy(files->range, &job, &files->buffer, copied, err);
}

static int clone_all(struct files *files, uint64_t size, struct error *err)
{
	struct range_job job = job_of(files, 0, size);

	return range_clone(files->range, job.src, job.src_dev, job.dst, job.dst_dev, size, err);
}

static void test_each_size_each_backend(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20,
		(1 << 20) + 1, (5 << 20) + 77 };
	static const char *const names[] = { NULL, "copy_file_range", "readwrite" };
	struct files *files = *state;
	struct error err = ERROR_INIT;
	uint64_t copied;

	for (size_t n = 0; n < 3; n++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			force(files, names[n]);
			assert_int_equal(ftruncate(files->src, 0), 0);
			assert_int_equal(ftruncate(files->dst, 0), 0);
			fill(files->src, 0, sizes[i]);
			assert_int_equal(copy(files, 0, sizes[i], &copied, &err), 0);
			assert_int_equal(copied, sizes[i]);
			assert_same(files);
		}
}

static void test_pieces_in_any_order(void **state)
{
	struct files *files = *state;
	uint64_t copied;

	fill(files->src, 0, 3 << 20);
	assert_int_equal(copy(files, 2 << 20, 1 << 20, &copied, NULL), 0);
	assert_int_equal(copy(files, 0, 1 << 20, &copied, NULL), 0);
	assert_int_equal(copy(files, 1 << 20, 1 << 20, &copied, NULL), 0);
	assert_same(files);
}

static void test_small_files_take_one_read_and_write(void **state)
{
	struct files *files = *state;
	uint64_t copied;

	fill(files->src, 0, 16 << 10);
	assert_int_equal(clone_all(files, 16 << 10, NULL), 0);
	assert_int_equal(copy(files, 0, 16 << 10, &copied, NULL), 0);
	assert_same(files);
	assert_int_equal(kernel.clones, 0);
	assert_int_equal(kernel.cfrs, 0);
}

static void test_lack_of_reflink_is_remembered(void **state)
{
	static const int lacks[] = { EOPNOTSUPP, EXDEV, ENOTTY, ENOSYS };
	struct files *files = *state;

	fill(files->src, 0, 1 << 20);
	for (size_t i = 0; i < 4; i++) {
		force(files, NULL);
		kernel.clones = 0;
		kernel.clone_errno = lacks[i];
		assert_int_equal(clone_all(files, 1 << 20, NULL), 0);
		assert_int_equal(clone_all(files, 1 << 20, NULL), 0);
		assert_int_equal(kernel.clones, 1);
	}
}

static void test_lack_for_one_file_is_not(void **state)
{
	static const int lacks[] = { EINVAL, ENOSPC };
	struct files *files = *state;

	fill(files->src, 0, 1 << 20);
	for (size_t i = 0; i < 2; i++) {
		kernel.clones = 0;
		kernel.clone_errno = lacks[i];
		assert_int_equal(clone_all(files, 1 << 20, NULL), 0);
		assert_int_equal(clone_all(files, 1 << 20, NULL), 0);
		assert_int_equal(kernel.clones, 2);
	}
}

static void test_refusals_are_errors(void **state)
{
	static const int refusals[] = { EPERM, ETXTBSY, EIO, EBADF };
	struct files *files = *state;
	struct error err = ERROR_INIT;
	uint64_t copied;

	kernel.filesystem = XFS_SUPER_MAGIC;
	fill(files->src, 0, 1 << 20);
	for (size_t i = 0; i < 4; i++) {
		kernel.clone_errno = kernel.cfr_errno = refusals[i];
		assert_int_equal(clone_all(files, 1 << 20, &err), -refusals[i]);
		assert_int_equal(err.code, -refusals[i]);
		assert_non_null(strstr(err.text, "FICLONE"));
		kernel.clone_errno = EXDEV;
		assert_int_equal(copy(files, 0, (1 << 20) - 1, &copied, &err), -refusals[i]);
		assert_non_null(strstr(err.text, "copy_file_range"));
	}
}

static void test_forced_reflink_says_why_not(void **state)
{
	struct files *files = *state;
	struct error err = ERROR_INIT;
	uint64_t copied;

	fill(files->src, 0, 100);
	force(files, "reflink");
	kernel.clone_errno = EOPNOTSUPP;
	assert_int_equal(clone_all(files, 100, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "reflink can not"));
	assert_int_equal(copy(files, 0, 100, &copied, &err), -EOPNOTSUPP);
	assert_int_equal(kernel.cfrs, 0);
}

static void test_unknown_engine(void **state)
{
	struct range *range;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(range_new("warp", &range, &err), -EINVAL);
	assert_non_null(strstr(err.text, "warp"));
	for (unsigned i = 0; range_name(i); i++)
		assert_non_null(strstr(err.text, range_name(i)));
}

static void test_copy_file_range_short_counts(void **state)
{
	struct files *files = *state;
	uint64_t copied;

	fill(files->src, 0, 300000);
	force(files, "copy_file_range");
	kernel.cfr_most = 7001;
	assert_int_equal(copy(files, 0, 300000, &copied, NULL), 0);
	assert_true(kernel.cfrs >= 300000 / 7001 + 1);
	assert_same(files);
}

static void test_next_backend_goes_on_where_one_stopped(void **state)
{
	static const int lacks[] = { EXDEV, EOPNOTSUPP, ENOSYS, EINVAL };
	struct files *files = *state;
	uint64_t copied;

	kernel.filesystem = XFS_SUPER_MAGIC;
	fill(files->src, 0, 300001);
	for (size_t i = 0; i < 4; i++) {
		force(files, NULL);
		assert_int_equal(ftruncate(files->dst, 0), 0);
		kernel.cfrs = 0;
		kernel.cfr_most = 100001;
		kernel.cfr_calls_before_errno = 2;
		kernel.cfr_errno = lacks[i];
		assert_int_equal(copy(files, 0, 300001, &copied, NULL), 0);
		assert_int_equal(copied, 300001);
		assert_int_equal(kernel.cfrs, 3);
		assert_same(files);
		assert_int_equal(copy(files, 0, 300001, &copied, NULL), 0);
		assert_int_equal(kernel.cfrs, lacks[i] == EINVAL ? 4 : 3);
	}
}

/* Where it is done in splices, reads and writes are quicker. */
static void test_splicing_filesystems_are_not_asked(void **state)
{
	static const long kinds[] = { TMPFS_MAGIC, EXT4_SUPER_MAGIC, FUSE_SUPER_MAGIC };
	struct files *files = *state;
	uint64_t copied;

	fill(files->src, 0, 300000);
	for (size_t i = 0; i < 3; i++) {
		kernel.filesystem = kinds[i];
		force(files, NULL);
		assert_int_equal(copy(files, 0, 300000, &copied, NULL), 0);
		assert_same(files);
		assert_int_equal(kernel.cfrs, 0);
	}
}

/* What /tmp is, and whether it can be read so, is the machine's. */
static bool can_be_direct(const struct files *files)
{
	bool can = !fcntl(files->src, F_SETFL, (long)O_DIRECT);

	fcntl(files->src, F_SETFL, 0L);
	return can;
}

static void test_direct_reads(void **state)
{
	static const long kinds[] = { FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC };
	struct files *files = *state;
	uint64_t copied;

	if (!can_be_direct(files))
		skip();
	fill(files->src, 0, (3 << 20) + 77);
	for (size_t i = 0; i < 2; i++) {
		kernel.filesystem = kinds[i];
		force(files, NULL);
		assert_int_equal(ftruncate(files->dst, 0), 0);
		kernel.direct_reads = 0;
		kernel.cfr_errno = kernel.clone_errno = EXDEV;
		assert_int_equal(copy(files, 1 << 20, (2 << 20) + 77, &copied, NULL), 0);
		assert_int_equal(copy(files, 0, 1 << 20, &copied, NULL), 0);
		assert_int_equal(copied, 1 << 20);
		assert_true(kernel.direct_reads >= 4);
		assert_same(files);
	}
	kernel.filesystem = XFS_SUPER_MAGIC;
	force(files, NULL);
	kernel.direct_reads = 0;
	assert_int_equal(copy(files, 0, 3 << 20, &copied, NULL), 0);
	assert_int_equal(kernel.direct_reads, 0);
}

static void test_direct_reads_that_are_refused(void **state)
{
	struct files *files = *state;
	struct error err = ERROR_INIT;
	uint64_t copied;

	kernel.filesystem = FUSE_SUPER_MAGIC;
	kernel.clone_errno = EXDEV;
	fill(files->src, 0, (2 << 20) + 77);
	for (int late = 0; late < 2; late++) {
		kernel.no_direct_files = !late;
		kernel.no_direct_reads = late;
		force(files, NULL);
		kernel.direct_reads = 0;
		assert_int_equal(ftruncate(files->dst, 0), 0);
		for (uint64_t at = 0; at < 2; at++)
			assert_int_equal(copy(files, at << 20, 1 << 20, &copied, &err), 0);
		assert_int_equal(copy(files, 2 << 20, 77, &copied, &err), 0);
		assert_same(files);
		assert_true(kernel.direct_reads <= 1); /* remembered */
		force(files, "direct");
		assert_int_equal(copy(files, 0, 1 << 20, &copied, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.text, "direct can not"));
	}
}

/* Somebody else has made it so, and the filesystem does not have it. */
static void test_reader_takes_direct_off(void **state)
{
	struct files *files = *state;
	uint64_t copied;

	if (!can_be_direct(files))
		skip();
	kernel.no_direct_reads = true;
	fill(files->src, 0, 1 << 20);
	force(files, "readwrite");
	assert_int_equal(fcntl(files->src, F_SETFL, (long)O_DIRECT), 0);
	assert_int_equal(copy(files, 0, 1 << 20, &copied, NULL), 0);
	assert_same(files);
}

static void test_end_that_is_none(void **state)
{
	struct files *files = *state;
	struct error err = ERROR_INIT;
	uint64_t copied;

	kernel.filesystem = XFS_SUPER_MAGIC;
	fill(files->src, 0, 300000);
	kernel.cfr_says_end = true;
	assert_int_equal(copy(files, 0, 300000, &copied, NULL), 0);
	assert_same(files);
	force(files, "copy_file_range");
	assert_int_equal(copy(files, 0, 300000, &copied, &err), -ENODATA);
}

static void test_source_got_shorter(void **state)
{
	static const char *const names[] = { NULL, "copy_file_range", "readwrite" };
	struct files *files = *state;
	struct error err = ERROR_INIT;
	struct range_job job;
	uint64_t copied;

	fill(files->src, 0, 100000);
	for (size_t n = 0; n < 3; n++) {
		force(files, names[n]);
		assert_int_equal(copy(files, 0, 200000, &copied, &err), -ENODATA);
		assert_int_equal(copied, 100000);
		assert_non_null(strstr(err.text, "100000"));
		job = job_of(files, 0, 200000);
		assert_int_equal(range_copy_data(files->range, &job, &files->buffer, &copied,
			&err), -ENODATA);
	}
}

/* What is no hole. XFS counts some of what it allocates in advance. */
static uint64_t data_bytes(int fd)
{
	uint64_t bytes = 0;
	off_t data = 0, hole = 0;

	while ((data = lseek(fd, hole, SEEK_DATA)) >= 0) {
		hole = lseek(fd, data, SEEK_HOLE);
		assert_true(hole > data);
		bytes += (uint64_t)(hole - data);
	}
	return bytes;
}

static void test_holes_stay(void **state)
{
	struct files *files = *state;
	struct range_job job;
	struct stat st;
	uint64_t copied;

	fill(files->src, 1 << 20, 8192);
	fill(files->src, 64 << 20, 4096);
	assert_int_equal(ftruncate(files->src, 80 << 20), 0);
	fstat(files->src, &st);
	assert_true(range_has_holes(&st));
	job = job_of(files, 0, 80 << 20);
	assert_int_equal(range_copy_data(files->range, &job, &files->buffer, &copied, NULL), 0);
	assert_int_equal(ftruncate(files->dst, 80 << 20), 0);
	assert_true(copied >= 8192 + 4096 && copied < 1 << 20);
	assert_same(files);
	assert_true(data_bytes(files->dst) < 1 << 20);
}

static void test_pieces_of_a_file_with_holes(void **state)
{
	struct files *files = *state;
	uint64_t copied, total = 0;

	fill(files->src, 3 << 20, 100);
	assert_int_equal(ftruncate(files->src, 8 << 20), 0);
	for (uint64_t at = 0; at < 8 << 20; at += 1 << 20) {
		struct range_job job = job_of(files, at, 1 << 20);

		assert_int_equal(range_copy_data(files->range, &job, &files->buffer, &copied, NULL),
			0);
		total += copied;
	}
	assert_int_equal(ftruncate(files->dst, 8 << 20), 0);
	assert_true(total >= 100 && total <= 1 << 20);
	assert_same(files);
}

static void test_zeros_become_holes(void **state)
{
	struct files *files = *state;
	struct range_job job;
	uint64_t copied;

	for (unsigned i = 0; i < 4; i++) { /* zeros that were written, between data */
		autofree char *zeros = calloc(1, 1 << 20);

		assert_int_equal(pwrite(files->src, zeros, 1 << 20, i << 20), 1 << 20);
	}
	fill(files->src, 5000, 3);
	fill(files->src, (2 << 20) - 8, 16);
	job = job_of(files, 0, 4 << 20);
	job.skip_zeros = true;
	force(files, "readwrite");
	assert_int_equal(range_copy(files->range, &job, &files->buffer, &copied, NULL), 0);
	assert_int_equal(ftruncate(files->dst, 4 << 20), 0);
	assert_same(files);
	assert_true(data_bytes(files->dst) <= 1 << 20);
}

static void test_cancel(void **state)
{
	static const char *const names[] = { "copy_file_range", "readwrite" };
	struct files *files = *state;
	atomic_bool cancel = true;
	struct range_job job;
	uint64_t copied;

	fill(files->src, 0, 100000);
	job = job_of(files, 0, 100000);
	job.cancel = &cancel;
	for (size_t n = 0; n < 2; n++) {
		force(files, names[n]);
		assert_int_equal(range_copy(files->range, &job, &files->buffer, &copied, NULL),
			-ECANCELED);
	}
}

/* TEST_REFLINK says whether the filesystem shares blocks; where it is not set both will do. */
static void test_clone(void **state)
{
	struct files *files = *state;
	const char *expected = getenv("TEST_REFLINK");
	struct error err = ERROR_INIT;
	int rc;

	fill(files->src, 0, (4 << 20) + 77);
	rc = clone_all(files, (4 << 20) + 77, &err);
	if (expected)
		assert_int_equal(rc, strcmp(expected, "yes") == 0);
	assert_true(rc == 0 || rc == 1);
	if (rc == 1)
		assert_same(files);
	assert_int_equal(ftruncate(files->dst, 0), 0);
	force(files, "reflink");
	assert_int_equal(clone_all(files, (4 << 20) + 77, &err), rc == 1 ? 1 : -EOPNOTSUPP);
}

/* More than one call can carry: a sparse file of 5 GiB with bytes near its ends. */
static void test_beyond_4_gib(void **state)
{
	struct files *files = *state;
	const uint64_t size = 5ull << 30;
	struct range_job job;
	uint64_t copied;
	char a[64], b[64];

	fill(files->src, 0, 64);
	fill(files->src, size - 64, 64);
	job = job_of(files, 0, size);
	assert_int_equal(range_copy_data(files->range, &job, &files->buffer, &copied, NULL), 0);
	assert_int_equal(pread(files->src, a, 64, (off_t)size - 64), 64);
	assert_int_equal(pread(files->dst, b, 64, (off_t)size - 64), 64);
	assert_memory_equal(a, b, 64);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_size_each_backend),
		TEST(test_pieces_in_any_order),
		TEST(test_small_files_take_one_read_and_write),
		TEST(test_lack_of_reflink_is_remembered),
		TEST(test_lack_for_one_file_is_not),
		TEST(test_refusals_are_errors),
		TEST(test_forced_reflink_says_why_not),
		TEST(test_unknown_engine),
		TEST(test_copy_file_range_short_counts),
		TEST(test_next_backend_goes_on_where_one_stopped),
		TEST(test_splicing_filesystems_are_not_asked),
		TEST(test_direct_reads),
		TEST(test_direct_reads_that_are_refused),
		TEST(test_reader_takes_direct_off),
		TEST(test_end_that_is_none),
		TEST(test_source_got_shorter),
		TEST(test_holes_stay),
		TEST(test_pieces_of_a_file_with_holes),
		TEST(test_zeros_become_holes),
		TEST(test_cancel),
		TEST(test_clone),
		TEST(test_beyond_4_gib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
