#include "stage/plan_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"

/* What is open as fd, found as head, with rest below it. */
static int resolved_at(
	int fd, const char *head, const char *rest, char **resolved, struct error *err)
{
	autofree char *real = inside_fd_path(fd);

	*resolved = path_join(real ? real : head, rest);
	return *resolved ? 0 : error_sys(err, -ENOMEM, "%s", head);
}

static int open_path(const char *path, struct error *err)
{
	return path_open(path, O_PATH | O_CLOEXEC, err);
}

/* Opens the longest head of path that exists. It is cut off in place; *rest, of whole, follows. */
static int open_head(char *path, const char *whole, const char **rest, struct error *err)
{
	struct error first = ERROR_INIT;
	int fd;

	do {
		char *slash = strrchr(path, '/');

		slash[slash == path] = '\0';
		*rest = whole + strlen(path);
		first = (struct error)ERROR_INIT;
		fd = open_path(path, &first);
	} while (fd == -ENOENT && path[1]);
	return fd < 0 ? error_set(err, fd, "%s", first.text) : fd;
}

/* path is not there, or not all of it. */
static int resolve_missing(const char *path, char **resolved, struct error *err)
{
	const char *rest = "";
	autofree char *head = strdup(path);
	autoclose int fd =
		head ? open_head(head, path, &rest, err) : error_sys(err, -ENOMEM, "%s", path);

	if (fd >= 0 && path_has_dotdot(rest))
		return error_sys(err, -ENOENT, "%s", path);
	return fd < 0 ? fd : resolved_at(fd, head, rest, resolved, err);
}

int plan_resolve(const char *path, char **resolved, struct stat *st, struct error *err)
{
	struct error first = ERROR_INIT;
	autoclose int fd = open_path(path, &first);

	memset(st, 0, sizeof(*st));
	if (fd == -ENOENT)
		return resolve_missing(path, resolved, err);
	if (fd < 0)
		return error_set(err, fd, "%s", first.text);
	if (fstat(fd, st) < 0)
		return error_errno(err, "%s", path);
	return resolved_at(fd, path, "", resolved, err);
}

static bool is_below(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	while (length && dir[length - 1] == '/')
		length--;
	return strncmp(path, dir, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

int plan_check_source(const struct conf *conf, const char *resolved, struct error *err)
{
	if (!conf || conf->n_sources == 0)
		return 0;
	for (size_t i = 0; i < conf->n_sources; i++) {
		autofree char *source = NULL;
		struct error ignored = ERROR_INIT;
		struct stat st;

		if (plan_resolve(conf->sources[i], &source, &st, &ignored) == 0 && st.st_mode &&
			is_below(resolved, source))
			return 0;
	}
	return error_set(
		err, -EPERM, "%s is not below one of the sources of stagetool.conf", resolved);
}
