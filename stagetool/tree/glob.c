#include "tree/glob.h"

#include "base/cleanup.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Paths or names that were found. */
struct found {
	char **all;
	size_t count;
};

static int no_memory(struct error *err)
{
	return error_sys(err, -ENOMEM, "expanding a pattern");
}

/* Takes text; NULL is memory that was not there. */
static int found_add(struct found *found, char *text, struct error *err)
{
	autofree char *held = text;

	if (!held)
		return no_memory(err);
	if (!(found->count & (found->count - 1))) {
		size_t room = found->count ? 2 * found->count : 1;
		char **all = realloc(found->all, room * sizeof(*all));

		if (!all)
			return no_memory(err);
		found->all = all;
	}
	found->all[found->count++] = take_ptr(held);
	return 0;
}

static void found_free(struct found *found)
{
	glob_free(found->all, found->count);
}

void glob_free(char **paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_missing(int code)
{
	return code == ENOENT || code == ENOTDIR;
}

/* The next part of *path, without slashes, which *path is left behind. Caller frees. */
static char *take_part(const char **path)
{
	const char *start = *path;
	size_t length = strcspn(start, "/");

	*path = start + length;
	*path += strspn(*path, "/");
	return strndup(start, length);
}

/* Opens (O_PATH) the directory that the last part of path is in, name by name: a path has any
 * length. *last gets that part, borrowed from path. */
static int open_parent(int dirfd, const char *path, const char **last)
{
	int at = openat(dirfd, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	path += strspn(path, "/");
	while (at >= 0 && strchr(path, '/')) {
		autofree char *part = take_part(&path);
		autoclose int above = at;

		at = part ? openat(above, part, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	}
	*last = *path ? path : ".";
	return at;
}

/* Adds path/NAME for every NAME in the directory path that part matches. */
static int match_names(
	int dirfd, const char *path, const char *part, struct found *found, struct error *err)
{
	const char *last;
	autoclose int parent = open_parent(dirfd, path, &last);
	autoclose int fd =
		parent < 0 ? -1 : openat(parent, last, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return is_missing(errno) ? 0 : error_errno(err, "%s", *path ? path : ".");
	fd = -1;
	while (errno = 0, (entry = readdir(dir))) {
		int rc;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (fnmatch(part, entry->d_name, FNM_PERIOD | FNM_NOESCAPE))
			continue;
		rc = found_add(found, path_join(path, entry->d_name), err);
		if (rc)
			return rc;
	}
	return errno ? error_errno(err, "%s", *path ? path : ".") : 0;
}

/* Adds path if there is such an entry. */
static int match_entry(int dirfd, const char *path, struct found *found, struct error *err)
{
	const char *last;
	autoclose int parent = open_parent(dirfd, path, &last);
	struct stat st;

	if (parent >= 0 && !fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW))
		return found_add(found, strdup(path), err);
	return is_missing(errno) ? 0 : error_errno(err, "%s", path);
}

/* Replaces each path of found by what it becomes with part behind it. Without a wildcard nothing is
 * looked at yet: a later part or the end shows whether it is there. */
static int expand_part(int dirfd, const char *part, struct found *found, struct error *err)
{
	bool wildcard = strpbrk(part, "*?[");
	struct found next = { NULL, 0 };
	int rc = 0;

	for (size_t i = 0; i < found->count && !rc; i++) {
		const char *path = found->all[i];

		rc = wildcard ? match_names(dirfd, path, part, &next, err)
			      : found_add(&next, path_join(path, part), err);
	}
	found_free(found);
	*found = next;
	return rc;
}

static int keep_existing(int dirfd, struct found *found, struct error *err)
{
	struct found next = { NULL, 0 };
	int rc = 0;

	for (size_t i = 0; i < found->count && !rc; i++)
		rc = match_entry(dirfd, found->all[i], &next, err);
	found_free(found);
	*found = next;
	return rc;
}

static int expand(int dirfd, const char *pattern, struct found *found, struct error *err)
{
	bool checked = false;
	int rc = found_add(found, strdup(*pattern == '/' ? "/" : ""), err);

	pattern += strspn(pattern, "/");
	while (*pattern && !rc) {
		autofree char *part = take_part(&pattern);

		if (!part)
			return no_memory(err);
		checked = strpbrk(part, "*?[");
		rc = expand_part(dirfd, part, found, err);
	}
	return rc || checked ? rc : keep_existing(dirfd, found, err);
}

int glob_expand(int dirfd, const char *pattern, char ***paths, size_t *count, struct error *err)
{
	struct found found = { NULL, 0 };
	int rc = expand(dirfd, pattern, &found, err);

	if (rc) {
		found_free(&found);
		return error_prefix(err, rc, "pattern %s", pattern);
	}
	if (found.count)
		qsort(found.all, found.count, sizeof(*found.all), compare_text);
	*paths = found.all;
	*count = found.count;
	return 0;
}
