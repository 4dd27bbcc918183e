/*
 * Unpacking. The input is an archive, of whatever kind it looks like.
 *
 * Whatever it says: it comes to an end, nothing beside the directory that it goes into is changed or made, no more
 * bytes are written than were allowed, and what was unpacked can be removed.
 */
#include "fuzz/fuzz.h"

#include "archive/unpack.h"
#include "base/cleanup.h"
#include "tree/remove.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MOST (1u << 20)

static int scratch = -1;
static struct stat outside;

static void look_outside(struct stat *st)
{
	fuzz_require(!fstatat(scratch, "outside", st, AT_SYMLINK_NOFOLLOW));
}

static void begin(void)
{
	autoclose int fd = -1;

	if (scratch >= 0)
		return;
	scratch = fuzz_scratch();
	fd = openat(scratch, "outside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	fuzz_require(fd >= 0 && write(fd, "mine", 4) == 4);
	look_outside(&outside);
}

/* Nothing but what was there: "outside" as it was, and what was unpacked into. */
static void check_outside(void)
{
	autoclose int fd = openat(scratch, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	struct stat now;

	fuzz_require(dir);
	fd = -1;
	while ((entry = readdir(dir)))
		fuzz_require(!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			     !strcmp(entry->d_name, "outside") || !strcmp(entry->d_name, "in"));
	look_outside(&now);
	fuzz_require(now.st_mode == outside.st_mode && now.st_size == outside.st_size &&
		     now.st_nlink == 1 && now.st_ino == outside.st_ino &&
		     now.st_mtim.tv_nsec == outside.st_mtim.tv_nsec &&
		     now.st_ctim.tv_nsec == outside.st_ctim.tv_nsec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct copy_options options = { .threads = 2, .publish = size % 2, .look = true,
		.expect = { .kind = COPY_EXPECT_ANY }, .conflict = COPY_CONFLICT_FAIL,
		.max_bytes = BYTES_MOST };
	autoclose int fd = memfd_create("archive", MFD_CLOEXEC);
	struct error err = ERROR_INIT;
	struct copy_counts counts = { 0 };
	struct unpack *unpack = NULL;

	begin();
	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (unpack_new(fd, scratch, "in", &options, NULL, &unpack, &err) == 0) {
		unpack_run(unpack, &err);
		copy_counts(unpack_copy(unpack), &counts);
	}
	unpack_free(unpack);
	fuzz_require(counts.bytes <= BYTES_MOST);
	check_outside();
	fuzz_require(remove_tree(scratch, "in", &err) == 0);
	return 0;
}
