#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "copy/internal.h"

static bool inside_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Opens the directory in which the destination is, or is to be: it is itself not inside the source
 * if none of its ancestors is the source. */
static int inside_start(const struct copy *copy, struct error *err)
{
	int fd = -1;

	if (copy->dstname[0])
		fd = openat(
			copy->dstdir, copy->dstname, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fd = openat(copy->dstdir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? error_errno(err, "the destination directory") : fd;
}

static int inside_check_file(const struct copy *copy, struct error *err)
{
	struct stat st;

	if (!fstatat(copy->dstdir, copy->dstname, &st, AT_SYMLINK_NOFOLLOW) &&
		inside_same(&st, &copy->src_root))
		return error_set(err, -EINVAL, "the source and the destination are the same file");
	return 0;
}

int copy_check_inside(const struct copy *copy, struct error *err)
{
	autoclose int fd = -1;
	struct stat st, above;

	if (!S_ISDIR(copy->src_root.st_mode))
		return inside_check_file(copy, err);
	fd = inside_start(copy, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return error_errno(err, "the destination directory");
	while (true) {
		int up;

		if (inside_same(&st, &copy->src_root))
			return error_set(
				err, -EINVAL, "the destination is the source, or lies inside it");
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0) /* what we may not see the caller can not have named either */
			return errno == EACCES ? 0 : error_errno(err, "..");
		close(fd);
		fd = up;
		if (fstat(fd, &above))
			return error_errno(err, "..");
		if (inside_same(&st, &above))
			return 0;
		st = above;
	}
}
