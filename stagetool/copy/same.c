#include "copy/publish_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SAME_BLOCK (256u << 10)

/* Whole blocks but at the end. Negative: it can not be read. */
static ssize_t read_block(int fd, char *data, off_t offset)
{
	size_t have = 0;

	while (have < SAME_BLOCK) {
		ssize_t n = pread(fd, data + have, SAME_BLOCK - have, offset + (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return n;
		if (!n)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static bool same_bytes(int a, int b)
{
	autofree char *left = malloc(SAME_BLOCK), *right = malloc(SAME_BLOCK);
	off_t offset = 0;
	ssize_t n;

	if (!left || !right)
		return false;
	do {
		n = read_block(a, left, offset);
		if (n < 0 || read_block(b, right, offset) != n || memcmp(left, right, (size_t)n))
			return false;
		offset += n;
	} while (n);
	return true;
}

static int open_file(int dirfd, const char *name)
{
	return openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static bool same_file(const struct same_entry *a, const struct same_entry *b)
{
	autoclose int left = open_file(a->dirfd, a->name), right = open_file(b->dirfd, b->name);
	struct stat st_a, st_b;

	return left >= 0 && right >= 0 && fstat(left, &st_a) == 0 && fstat(right, &st_b) == 0 &&
		st_a.st_mode == st_b.st_mode && st_a.st_size == st_b.st_size &&
		st_a.st_mtim.tv_sec == st_b.st_mtim.tv_sec &&
		st_a.st_mtim.tv_nsec == st_b.st_mtim.tv_nsec && same_bytes(left, right);
}

static bool same_target(const struct same_entry *a, const struct same_entry *b)
{
	char left[PATH_MAX], right[PATH_MAX];
	ssize_t n = readlinkat(a->dirfd, a->name, left, sizeof(left));

	return n >= 0 && readlinkat(b->dirfd, b->name, right, sizeof(right)) == n &&
		memcmp(left, right, (size_t)n) == 0;
}

bool same_entries(const struct same_entry *a, const struct same_entry *b)
{
	struct stat st_a, st_b;

	if (fstatat(a->dirfd, a->name, &st_a, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(b->dirfd, b->name, &st_b, AT_SYMLINK_NOFOLLOW) < 0 ||
		(st_a.st_mode & S_IFMT) != (st_b.st_mode & S_IFMT))
		return false;
	switch (st_a.st_mode & S_IFMT) {
	case S_IFREG:
		return st_a.st_size == st_b.st_size && same_file(a, b);
	case S_IFLNK:
		return same_target(a, b);
	case S_IFIFO:
		return true;
	default:
		return false;
	}
}
