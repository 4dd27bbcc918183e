#include "base/path.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The longest piece that is given to the kernel at once: PATH_MAX counts the NUL. */
#define PIECE_MAX (PATH_MAX - 1)

/* How often an open that lost a race against a rename is tried anew. */
#define RACE_TRIES 64

char *path_join(const char *a, const char *b)
{
	size_t a_length = strlen(a);
	bool both = *a && *b;
	size_t b_length;
	char *joined;

	if (both) {
		while (a_length && a[a_length - 1] == '/')
			a_length--;
		while (*b == '/')
			b++;
	}
	b_length = strlen(b);
	joined = malloc(a_length + b_length + 2);
	if (!joined)
		return NULL;
	memcpy(joined, a, a_length);
	if (both)
		joined[a_length++] = '/';
	memcpy(joined + a_length, b, b_length + 1);
	return joined;
}

/* The next component of *rest, without slashes, and its length; NULL at the end. */
static const char *path_next(const char **rest, size_t *length)
{
	const char *start = *rest + strspn(*rest, "/");

	*length = strcspn(start, "/");
	*rest = start + *length;
	return *length ? start : NULL;
}

static bool path_is(const char *component, size_t length, const char *name)
{
	return length == strlen(name) && memcmp(component, name, length) == 0;
}

char *path_clean(const char *path)
{
	char *clean = malloc(strlen(path) + 2);
	const char *rest = path, *component;
	size_t used = 0, length;

	if (!clean)
		return NULL;
	if (*path == '/')
		clean[used++] = '/';
	while ((component = path_next(&rest, &length))) {
		if (path_is(component, length, "."))
			continue;
		if (used && clean[used - 1] != '/')
			clean[used++] = '/';
		memcpy(clean + used, component, length);
		used += length;
	}
	if (!used)
		clean[used++] = '.';
	clean[used] = '\0';
	return clean;
}

bool path_has_dotdot(const char *path)
{
	const char *component;
	size_t length;

	while ((component = path_next(&path, &length)))
		if (path_is(component, length, ".."))
			return true;
	return false;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* An open of one piece, which is short enough for the kernel. Returns an fd or a negative errno. */
typedef int (*path_opener)(int dirfd, const char *piece, int flags, const void *how);

/* Splits path at slashes into pieces of at most PIECE_MAX and opens one from the other. */
static int path_open_pieces(
	int dirfd, const char *path, int flags, path_opener opener, const void *how)
{
	autoclose int at = -1;
	char piece[PIECE_MAX + 1];
	int fd;

	while (strlen(path) > PIECE_MAX) {
		size_t cut = PIECE_MAX;

		while (cut && path[cut] != '/')
			cut--;
		if (!cut)
			return -ENAMETOOLONG;
		memcpy(piece, path, cut);
		piece[cut] = '\0';
		fd = opener(at < 0 ? dirfd : at, piece, O_PATH | O_DIRECTORY, how);
		if (fd < 0)
			return fd;
		if (at >= 0)
			close(at);
		at = fd;
		path += cut;
		path += strspn(path, "/");
	}
	return opener(at < 0 ? dirfd : at, *path ? path : ".", flags, how);
}

/* What a path must not do on kernels without openat2: every symlink is refused there, so that each
 * component is the directory it was when it was opened. */
static int path_open_strict(int dirfd, const char *path, int flags, mode_t mode)
{
	autoclose int at = -1;
	const char *component, *rest = path;
	char name[NAME_MAX + 1];
	size_t length;

	if (*path == '/' || path_has_dotdot(path))
		return -EXDEV;
	while ((component = path_next(&rest, &length))) {
		bool last = !rest[strspn(rest, "/")];
		int fd;

		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, component, length);
		name[length] = '\0';
		fd = openat(at < 0 ? dirfd : at, name,
			(last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd < 0)
			return -errno;
		if (last)
			return fd;
		if (at >= 0)
			close(at);
		at = fd;
	}
	return -ENOENT;
}

struct path_beneath {
	mode_t mode;
	unsigned long long resolve;
};

static int path_opener_beneath(int dirfd, const char *piece, int flags, const void *how)
{
	const struct path_beneath *beneath = how;
	bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	struct open_how open_how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = makes ? beneath->mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | beneath->resolve,
	};

	for (int tries = 0; tries < RACE_TRIES; tries++) {
		long fd = syscall(SYS_openat2, dirfd, piece, &open_how, sizeof(open_how));

		if (fd >= 0)
			return (int)fd;
		if (errno == ENOSYS && !(beneath->resolve & RESOLVE_NO_XDEV))
			return path_open_strict(dirfd, piece, flags, beneath->mode);
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return -EAGAIN;
}

int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode,
	unsigned long long resolve, struct error *err)
{
	struct path_beneath beneath = { mode, resolve };
	int fd;

	if (*path == '/')
		return error_sys(err, -EXDEV, "%s: absolute, but must be below a directory", path);
	fd = path_open_pieces(dirfd, *path ? path : ".", flags, path_opener_beneath, &beneath);
	return fd < 0 ? error_sys(err, fd, "%s", path) : fd;
}

static int path_opener_plain(int dirfd, const char *piece, int flags, const void *how)
{
	int fd;

	(void)how;
	do
		fd = openat(dirfd, piece, flags | O_CLOEXEC, 0600);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int path_open(const char *path, int flags, struct error *err)
{
	int fd = -ENOENT;

	if (*path)
		fd = path_open_pieces(AT_FDCWD, path, flags, path_opener_plain, NULL);
	return fd < 0 ? error_sys(err, fd, "%s", path) : fd;
}

/* Makes name where it is missing and opens it; that somebody else made it meanwhile is as good. */
static int path_make_dir(int dirfd, const char *name, mode_t mode, int flags)
{
	int fd = path_opener_plain(dirfd, name, flags, NULL);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dirfd, name, mode) && errno != EEXIST)
		return -errno;
	return path_opener_plain(dirfd, name, flags, NULL);
}

int path_make_dirs(int dirfd, const char *path, mode_t mode, struct error *err)
{
	const char *component, *rest = path;
	autoclose int at =
		path_opener_plain(dirfd, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY, NULL);
	char name[NAME_MAX + 1];
	size_t length;
	int fd;

	if (at < 0)
		return error_sys(err, at, "%s", path);
	while ((component = path_next(&rest, &length))) {
		if (length > NAME_MAX)
			return error_sys(err, -ENAMETOOLONG, "%s", path);
		memcpy(name, component, length);
		name[length] = '\0';
		fd = path_make_dir(at, name, mode, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return error_sys(err, fd, "%.*s", (int)(rest - path), path);
		close(at);
		at = fd;
	}
	fd = path_opener_plain(at, ".", O_RDONLY | O_DIRECTORY, NULL);
	return fd < 0 ? error_sys(err, fd, "%s", path) : fd;
}
