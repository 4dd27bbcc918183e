#include "tree/remove.h"

#include "base/cleanup.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* A directory below this depth is moved up to the top of the tree, so that neither the stack nor
 * the number of open files grows with a depth that somebody else chose. */
#define REMOVE_DEPTH 48

struct removal {
	int topfd;           /* of the tree that goes */
	unsigned long moved; /* for names of directories that were moved up */
	struct error *err;
	int first; /* the first error, which is the one reported */
};

static void remove_failed(struct removal *removal, int code, const char *name, const char *what)
{
	if (removal->first)
		return;
	removal->first = error_sys(removal->err, code, "%s: %s", name, what);
}

/* The mount that fd is on, where openat2 is not there to refuse another one. */
static long remove_mount(int fd)
{
	char path[64], line[128];
	autofile FILE *info = NULL;
	long id = -1;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info))
		if (sscanf(line, "mnt_id: %ld", &id) == 1)
			break;
	return id;
}

static int remove_open_old(int dirfd, const char *name, int flags)
{
	autoclose int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC);
	long mount;

	if (fd < 0)
		return -errno;
	mount = remove_mount(fd);
	if (mount < 0 || mount != remove_mount(dirfd))
		return -EXDEV;
	return take_fd(fd);
}

/* name itself, a directory on the same mount. */
static int remove_open(int dirfd, const char *name, int flags)
{
	int fd = path_open_beneath(dirfd, name, flags | O_DIRECTORY | O_NOFOLLOW, 0,
		RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS, NULL);

	return fd == -ENOSYS ? remove_open_old(dirfd, name, flags | O_DIRECTORY) : fd;
}

/* Root passes every mode; an owner has to open a directory up. Through /proc, because chmod of a
 * name could be led elsewhere. */
static int remove_open_up(int dirfd, const char *name)
{
	autoclose int fd = remove_open(dirfd, name, O_PATH);
	char path[64];

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, 0700) ? -errno : 0;
}

static int remove_open_directory(int dirfd, const char *name)
{
	int fd = remove_open(dirfd, name, O_RDONLY);
	struct stat st;

	if (fd == -EACCES) {
		int code = remove_open_up(dirfd, name);

		return code ? code : remove_open(dirfd, name, O_RDONLY);
	}
	if (fd >= 0 && geteuid() != 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700); /* what it was for fails with its own error */
	return fd;
}

static bool remove_entry(
	struct removal *removal, int dirfd, const char *name, bool directory, unsigned depth);

/* Takes every entry out of dir once. Returns how many went. */
static unsigned long remove_pass(
	struct removal *removal, DIR *dir, const char *name, unsigned depth)
{
	unsigned long gone = 0, moved = removal->moved;
	struct dirent *entry;

	rewinddir(dir);
	while ((errno = 0, entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		gone += remove_entry(
			removal, dirfd(dir), entry->d_name, entry->d_type == DT_DIR, depth + 1);
	}
	if (errno)
		remove_failed(removal, -errno, name, "read directory");
	return depth ? gone : gone + (removal->moved - moved);
}

/* Moves a directory that lies too deep to the top, where a later pass finds it. */
static bool remove_move_up(struct removal *removal, int dirfd, const char *name)
{
	char target[64];

	do {
		snprintf(target, sizeof(target), ".stagetool-remove.%lu", removal->moved++);
		if (renameat(dirfd, name, removal->topfd, target) == 0)
			return true;
	} while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
	if (errno != ENOENT)
		remove_failed(removal, -errno, name, "move up");
	return false;
}

/* A name that is a directory, or was one a moment ago. -ENOTDIR: it is something else now. */
static int remove_directory(struct removal *removal, int parent, const char *name, unsigned depth)
{
	autoclose int fd = remove_open_directory(parent, name);
	autodir DIR *dir = NULL;
	unsigned long gone;

	if (fd < 0)
		return fd == -ELOOP ? -ENOTDIR : fd;
	if (depth > REMOVE_DEPTH)
		return remove_move_up(removal, parent, name) ? 0 : -ENOENT;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	if (!depth)
		removal->topfd = fd;
	(void)take_fd(fd);
	do {
		gone = remove_pass(removal, dir, name, depth);
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
			return 0;
	} while (gone && (errno == ENOTEMPTY || errno == EEXIST));
	return -errno;
}

/* Removes one name, whatever it is by now. Returns whether it is gone from here. */
static bool remove_entry(
	struct removal *removal, int dirfd, const char *name, bool directory, unsigned depth)
{
	int code = 0;

	/* an owner who exchanges the entry again and again does not keep us here for ever */
	for (int tries = 0; tries < 16; tries++) {
		if (directory)
			code = remove_directory(removal, dirfd, name, depth);
		else
			code = unlinkat(dirfd, name, 0) ? -errno : 0;
		if (code == 0 || code == -ENOENT)
			return code == 0;
		if (code == -EISDIR)
			directory = true;
		else if (code == -ENOTDIR)
			directory = false;
		else
			break;
	}
	remove_failed(removal, code, name, code == -EXDEV ? "something is mounted here" : "remove");
	return false;
}

int remove_tree(int dirfd, const char *name, struct error *err)
{
	struct removal removal = { .topfd = -1, .err = err };

	remove_entry(&removal, dirfd, name, false, 0);
	return removal.first;
}
