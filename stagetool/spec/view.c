#include "spec/view.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "spec/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *view_real_path(int fd, struct error *err)
{
	char link[40], path[PATH_MAX];
	ssize_t length;
	char *real;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path));
	if (length < 0) {
		error_errno(err, "%s", link);
		return NULL;
	}
	if ((size_t)length == sizeof(path) || path[0] != '/') {
		error_set(err, -ENAMETOOLONG, "its path is not known, or longer than %d bytes",
			PATH_MAX);
		return NULL;
	}
	real = strndup(path, (size_t)length);
	if (!real)
		error_sys(err, -ENOMEM, "path");
	return real;
}

int view_open(const char *place, const struct conf *conf, struct stat *st, struct error *err)
{
	struct error why = ERROR_INIT;
	autofree char *real = NULL;
	autoclose int fd = path_open(place, O_PATH | O_CLOEXEC, &why);
	int rc;

	if (fd == -ENOENT)
		return error_set(err, fd,
			"%s is not there: what is to be seen at a place needs a file or directory "
			"there to cover",
			place);
	if (fd < 0)
		return error_set(err, fd, "%s", why.text);
	if (fstat(fd, st) < 0)
		return error_errno(err, "%s", place);
	real = view_real_path(fd, err);
	if (!real)
		return error_prefix(err, err->code, "%s", place);
	rc = protect_check(real, conf, &why);
	if (rc < 0)
		return strcmp(real, place) ? error_set(err, rc, "%s: %s", place, why.text)
					   : error_set(err, rc, "%s", why.text);
	return take_fd(fd);
}
