#include "stage/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

char *inside_fd_path(int fd)
{
	char link[40], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path));
	return length > 0 && (size_t)length < sizeof(path) && path[0] == '/'
		       ? strndup(path, (size_t)length)
		       : NULL;
}

const char *inside_split(const char *path, char **dir)
{
	const char *slash = strrchr(path, '/');

	*dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	if (!*dir)
		return NULL;
	return slash ? slash + 1 : path;
}

/* path where the kernel does not say: it is then long, and taken as it is. */
static int find_real(int stagefd, int fd, const char *path, char **real, struct error *err)
{
	autofree char *stage = inside_fd_path(stagefd), *place = inside_fd_path(fd);
	size_t length = stage ? strlen(stage) : 0;

	if (length == 1)
		length = 0; /* the stage is "/" */
	if (!stage || !place || strncmp(stage, place, length) != 0)
		*real = strdup(path);
	else if (place[length] == '\0')
		*real = strdup(".");
	else
		*real = strdup(place[length] == '/' ? place + length + 1 : path);
	return *real ? 0 : error_sys(err, -ENOMEM, "%s", path);
}

int inside_open(int stagefd, const char *path, int flags, char **real, struct error *err)
{
	struct error first = ERROR_INIT;
	autoclose int fd = path_open_beneath(stagefd, path, flags, 0, 0, &first);

	if (fd == -EXDEV)
		return error_set(err, fd, "%s leads outside of the stage", path);
	if (fd < 0)
		return error_set(err, fd, "%s", first.text);
	if (real) {
		int rc = find_real(stagefd, fd, path, real, err);

		if (rc < 0)
			return rc;
	}
	return take_fd(fd);
}

static int make_one(int dirfd, const char *name, const char *path, struct error *err)
{
	if (mkdirat(dirfd, name, 0777) < 0 && errno != EEXIST)
		return error_errno(err, "%s: making the directory", path);
	return 0;
}

int inside_make_dirs(int stagefd, const char *path, char **real, struct error *err)
{
	struct error first = ERROR_INIT;
	int flags = O_RDONLY | O_DIRECTORY;
	int fd = inside_open(stagefd, path, flags, real, &first);
	autofree char *dir = NULL;
	const char *name;
	autoclose int parent = -1;
	int rc;

	if (fd >= 0)
		return fd;
	if (fd != -ENOENT)
		return error_set(err, fd, "%s", first.text);
	name = inside_split(path, &dir);
	if (!name)
		return error_sys(err, -ENOMEM, "%s", path);
	if (strcmp(dir, path) == 0)
		return error_set(err, fd, "%s", first.text);
	parent = inside_make_dirs(stagefd, dir, NULL, err);
	if (parent < 0)
		return parent;
	rc = make_one(parent, name, path, err);
	return rc < 0 ? rc : inside_open(stagefd, path, flags, real, err);
}
