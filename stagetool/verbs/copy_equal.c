#include "verbs/copy_equal.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "copy/granularity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE (1024 * 1024)

struct copy_equal {
	const struct copy_place *place;
	struct copy_equal_options options;
	pthread_mutex_t lock; /* of what follows */
	bool probed;
	uint64_t step; /* of the destination's times */
	dev_t dev; /* of which filesystem; another one is taken to be exact */
};

int copy_equal_new(const struct copy_place *place, const struct copy_equal_options *options,
	struct copy_equal **equal, struct error *err)
{
	struct copy_equal *new = calloc(1, sizeof(*new));

	if (!new)
		return error_sys(err, -ENOMEM, "compare");
	new->place = place;
	new->options = *options;
	new->step = 1;
	pthread_mutex_init(&new->lock, NULL);
	*equal = new;
	return 0;
}

void copy_equal_free(struct copy_equal *equal)
{
	if (!equal)
		return;
	pthread_mutex_destroy(&equal->lock);
	free(equal);
}

/* Opens the entry at path below one root of the copy; path "" is the root. Not for reading a FIFO. */
static int equal_open(int dirfd, const char *name, const char *path, int flags)
{
	autoclose int root = -1;

	flags |= O_NOFOLLOW | O_CLOEXEC;
	if (!*path && *name)
		return openat(dirfd, name, flags);
	if (!*name)
		return path_open_beneath(dirfd, path, flags, 0, RESOLVE_NO_SYMLINKS, NULL);
	root = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return root;
	return path_open_beneath(root, path, flags, 0, RESOLVE_NO_SYMLINKS, NULL);
}

/* Both sides of an entry. False: one of them can not be opened. The caller closes what is not -1. */
static bool equal_open_both(const struct copy_equal *equal, const struct copy_item *item, int flags,
	int *src, int *dst)
{
	const struct copy_place *place = equal->place;
	autofree char *path = copy_item_path(item);

	*src = *dst = -1;
	if (!path)
		return false;
	*src = equal_open(place->srcdir, place->srcname, path, flags);
	*dst = equal_open(place->dstdir, place->dstname, path, flags);
	return *src >= 0 && *dst >= 0;
}

static void equal_probe(struct copy_equal *equal)
{
	const struct copy_place *place = equal->place;
	autoclose int root = -1;

	if (*place->dstname)
		root = openat(place->dstdir, place->dstname,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (granularity_probe(root >= 0 ? root : place->dstdir, &equal->step, &equal->dev, NULL) < 0)
		equal->step = 1;
	equal->probed = true;
}

static bool equal_times(struct copy_equal *equal, const struct stat *src, const struct stat *dst)
{
	bool same;

	if (src->st_mtim.tv_sec == dst->st_mtim.tv_sec &&
		src->st_mtim.tv_nsec == dst->st_mtim.tv_nsec)
		return true;
	if (src->st_mtim.tv_sec < dst->st_mtim.tv_sec ||
		src->st_mtim.tv_sec - dst->st_mtim.tv_sec > 1)
		return false; /* no filesystem is that coarse */
	pthread_mutex_lock(&equal->lock);
	if (!equal->probed)
		equal_probe(equal);
	same = equal->step > 1 && equal->dev == dst->st_dev &&
		granularity_same(&src->st_mtim, &dst->st_mtim, equal->step);
	pthread_mutex_unlock(&equal->lock);
	return same;
}

/* As many bytes as there are, up to size; negative: cannot be read. */
static ssize_t equal_read(int fd, char *buffer, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t got = read(fd, buffer + used, size - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return got;
		if (!got)
			break;
		used += (size_t)got;
	}
	return (ssize_t)used;
}

static bool equal_bytes(const struct copy_equal *equal, int src, int dst)
{
	autofree char *left = malloc(BLOCK_SIZE), *right = malloc(BLOCK_SIZE);
	ssize_t n;

	if (!left || !right)
		return false;
	do {
		if (equal->options.cancel && atomic_load(equal->options.cancel))
			return false;
		n = equal_read(src, left, BLOCK_SIZE);
		if (n < 0 || equal_read(dst, right, BLOCK_SIZE) != n ||
			memcmp(left, right, (size_t)n))
			return false;
	} while (n == BLOCK_SIZE);
	return true;
}

static bool equal_content(const struct copy_equal *equal, const struct copy_item *item)
{
	autoclose int src = -1, dst = -1;

	if (!equal_open_both(equal, item, O_RDONLY | O_NONBLOCK, &src, &dst))
		return false;
	return equal_bytes(equal, src, dst);
}

static bool equal_targets(const struct copy_equal *equal, const struct copy_item *item)
{
	autofree char *left = malloc(PATH_MAX), *right = malloc(PATH_MAX);
	autoclose int src = -1, dst = -1;
	ssize_t n;

	if (!left || !right || !equal_open_both(equal, item, O_PATH, &src, &dst))
		return false;
	n = readlinkat(src, "", left, PATH_MAX);
	return n >= 0 && readlinkat(dst, "", right, PATH_MAX) == n &&
		!memcmp(left, right, (size_t)n);
}

bool copy_equal(struct copy_equal *equal, const struct copy_item *item, const struct stat *dst)
{
	const struct stat *src = item->src;
	mode_t mask = equal->options.special ? 07777 : 01777;

	if ((src->st_mode & S_IFMT) != (dst->st_mode & S_IFMT))
		return false;
	if (equal->options.owner && (src->st_uid != dst->st_uid || src->st_gid != dst->st_gid))
		return false;
	if (S_ISLNK(src->st_mode))
		return src->st_size == dst->st_size && equal_targets(equal, item);
	if ((src->st_mode & mask) != (dst->st_mode & mask))
		return false;
	if (S_ISREG(src->st_mode))
		return src->st_size == dst->st_size && equal_times(equal, src, dst) &&
			(!equal->options.checksum || equal_content(equal, item));
	return S_ISFIFO(src->st_mode);
}
