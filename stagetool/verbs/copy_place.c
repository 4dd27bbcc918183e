#include "verbs/copy_place.h"

#include "base/cleanup.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_MAX 40

/* Whether a path can only be a directory to go into: nothing can get "." or ".." as its new name. */
static bool place_is_into(const char *to)
{
	size_t length = strlen(to);
	const char *last = strrchr(to, '/');

	last = last ? last + 1 : to;
	return (length && to[length - 1] == '/') || !strcmp(last, ".") || !strcmp(last, "..");
}

static bool place_has_name(const char *name)
{
	return strcmp(name, ".") && strcmp(name, "..") && strcmp(name, "/") && *name;
}

static int place_parse(struct copy_place *place, const char *from, bool into, struct error *err)
{
	place->srcdir = place->dstdir = -1;
	place->from = from;
	if (!*from)
		return error_set(err, -EINVAL, "FROM is empty: expected a path");
	place->clean = path_clean(from);
	if (!place->clean)
		return error_sys(err, -ENOMEM, "%s", from);
	place->name = path_base(place->clean);
	if (into && !place_has_name(place->name))
		return error_set(err, -EINVAL,
			"'%s' has no name of its own to have in TO: write the new name (TO without a '/' at its end)",
			from);
	return 0;
}

static int place_by_name(const void *a, const void *b)
{
	const struct copy_place *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* Two FROMs of one name would end as one file. */
static int places_check_names(const struct copy_places *places, struct error *err)
{
	autofree const struct copy_place **sorted = calloc(places->count, sizeof(*sorted));

	if (!sorted)
		return error_sys(err, -ENOMEM, "names");
	for (size_t i = 0; i < places->count; i++)
		sorted[i] = &places->items[i];
	qsort(sorted, places->count, sizeof(*sorted), place_by_name);
	for (size_t i = 1; i < places->count; i++) {
		if (!strcmp(sorted[i - 1]->name, sorted[i]->name))
			return error_set(err, -EINVAL,
				"'%s' and '%s' would both become '%s/%s': copy them one at a time, to different names",
				sorted[i - 1]->from, sorted[i]->from, places->to, sorted[i]->name);
	}
	return 0;
}

int copy_places_parse(char *const *from, size_t count, const char *to, struct copy_places *places,
	struct error *err)
{
	int rc;

	memset(places, 0, sizeof(*places));
	if (!*to)
		return error_set(err, -EINVAL, "TO is empty: expected a path");
	places->into = count > 1 || place_is_into(to);
	places->to = path_clean(to);
	places->items = calloc(count, sizeof(*places->items));
	if (!places->to || !places->items)
		return error_sys(err, -ENOMEM, "%s", to);
	for (size_t i = 0; i < count; i++) {
		rc = place_parse(&places->items[places->count++], from[i], places->into, err);
		if (rc < 0)
			return rc;
	}
	return places->into ? places_check_names(places, err) : 0;
}

/* The directory that holds a cleaned path's last component. Caller frees. */
static char *place_parent(const char *clean)
{
	const char *slash = strrchr(clean, '/');

	if (!slash)
		return strdup(".");
	return slash == clean ? strdup("/") : strndup(clean, (size_t)(slash - clean));
}

static int place_open_parent(const char *clean, int flags, struct error *err)
{
	autofree char *parent = place_parent(clean);
	int fd;

	if (!parent)
		return error_sys(err, -ENOMEM, "%s", clean);
	fd = path_open(parent, flags | O_DIRECTORY | O_CLOEXEC, NULL);
	if (fd < 0)
		return error_sys(err, fd, "%s: its directory, %s", clean, parent);
	return fd;
}

static int place_set_name(char name[NAME_MAX + 1], const char *text, struct error *err)
{
	if (strlen(text) > NAME_MAX)
		return error_sys(err, -ENAMETOOLONG, "%s", text);
	strcpy(name, text);
	return 0;
}

/* Steps over one symlink: srcname in srcdir becomes what it leads to. */
static int place_follow(struct copy_place *place, struct error *err)
{
	autofree char *text = calloc(1, PATH_MAX + 1), *clean = NULL, *parent = NULL;
	int fd;

	if (!text)
		return error_sys(err, -ENOMEM, "%s", place->srcname);
	if (readlinkat(place->srcdir, place->srcname, text, PATH_MAX) < 0)
		return error_errno(err, "%s: read the link", place->srcname);
	clean = path_clean(text);
	parent = clean ? place_parent(clean) : NULL;
	if (!parent)
		return error_sys(err, -ENOMEM, "%s", text);
	fd = openat(place->srcdir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, "%s", parent);
	close(place->srcdir);
	place->srcdir = fd;
	return place_set_name(place->srcname, path_base(clean), err);
}

static int place_check_type(const struct copy_place *place, struct error *err)
{
	if (S_ISREG(place->st.st_mode) || S_ISFIFO(place->st.st_mode))
		return 0;
	return error_set(err, -EOPNOTSUPP,
		"%s is a %s: expected a file, a directory or a FIFO", place->from,
		S_ISSOCK(place->st.st_mode) ? "socket" : "device");
}

/* A file: its directory and name, with no symlink left at the end. */
static int place_open_file(struct copy_place *place, struct error *err)
{
	int rc;

	place->srcdir = place_open_parent(place->clean, O_PATH, err);
	if (place->srcdir < 0)
		return place->srcdir;
	rc = place_set_name(place->srcname, place->name, err);
	if (rc < 0)
		return rc;
	for (int links = 0; links < LINKS_MAX; links++) {
		if (fstatat(place->srcdir, place->srcname, &place->st, AT_SYMLINK_NOFOLLOW) < 0)
			return error_errno(err, "%s", place->from);
		if (!S_ISLNK(place->st.st_mode))
			return place_check_type(place, err);
		rc = place_follow(place, err);
		if (rc < 0)
			return error_prefix(err, rc, "%s", place->from);
	}
	return error_sys(err, -ELOOP, "%s", place->from);
}

static int place_open_from(struct copy_place *place, struct error *err)
{
	autoclose int fd = path_open(place->clean, O_PATH | O_CLOEXEC, err);

	if (fd < 0)
		return fd;
	if (fstat(fd, &place->st) < 0)
		return error_errno(err, "%s", place->from);
	if (!S_ISDIR(place->st.st_mode))
		return place_open_file(place, err);
	place->srcdir = path_open(place->clean, O_RDONLY | O_DIRECTORY | O_CLOEXEC, err);
	return place->srcdir < 0 ? place->srcdir : 0;
}

/* TO as a directory to go into. Made where nothing is there but its parent. */
static int places_open_into(const struct copy_places *places, struct error *err)
{
	autoclose int parent = -1;
	int fd = path_open(places->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC, NULL);

	if (fd < 0 && fd != -ENOENT)
		return error_sys(err, fd, "%s", places->to);
	if (fd >= 0)
		return fd;
	parent = place_open_parent(places->to, O_RDONLY, err);
	if (parent < 0)
		return parent;
	if (mkdirat(parent, path_base(places->to), 0777) < 0)
		return error_errno(err, "%s: make the directory", places->to);
	fd = openat(parent, path_base(places->to), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? error_errno(err, "%s", places->to) : fd;
}

/* TO as a new name: what is there already decides whether it can take FROM. */
static int places_check_name(const struct copy_places *places, const struct stat *there,
	struct error *err)
{
	const struct copy_place *place = &places->items[0];

	if (S_ISDIR(there->st_mode) && !S_ISDIR(place->st.st_mode))
		return error_set(err, -EISDIR,
			"%s is a directory: write '%s/' to copy %s into it", places->to, places->to,
			place->from);
	if (!S_ISDIR(there->st_mode) && S_ISDIR(place->st.st_mode))
		return error_set(err, -ENOTDIR,
			"%s is there and not a directory, %s is one: nothing was replaced", places->to,
			place->from);
	return 0;
}

static int places_open_name(struct copy_places *places, struct error *err)
{
	struct copy_place *place = &places->items[0];
	autoclose int there = -1;
	struct stat st;
	int rc;

	place->dstdir = place_open_parent(places->to, O_RDONLY, err);
	if (place->dstdir < 0)
		return place->dstdir;
	rc = place_set_name(place->dstname, path_base(places->to), err);
	if (rc < 0)
		return rc;
	there = path_open(places->to, O_PATH | O_CLOEXEC, NULL);
	if (there < 0 || fstat(there, &st) < 0)
		return 0;
	rc = places_check_name(places, &st, err);
	if (rc < 0 || !S_ISDIR(st.st_mode))
		return rc;
	/* The tree goes into the directory that TO leads to, a symlink stays what it is. */
	close(place->dstdir);
	place->dstname[0] = '\0';
	place->dstdir = path_open(places->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC, err);
	return place->dstdir < 0 ? place->dstdir : 0;
}

int copy_places_open(struct copy_places *places, struct error *err)
{
	autoclose int into = -1;
	int rc;

	for (size_t i = 0; i < places->count; i++) {
		rc = place_open_from(&places->items[i], err);
		if (rc < 0)
			return rc;
	}
	if (!places->into)
		return places_open_name(places, err);
	into = places_open_into(places, err);
	if (into < 0)
		return into;
	for (size_t i = 0; i < places->count; i++) {
		struct copy_place *place = &places->items[i];

		place->dstdir = fcntl(into, F_DUPFD_CLOEXEC, 0);
		if (place->dstdir < 0)
			return error_errno(err, "%s", places->to);
		rc = place_set_name(place->dstname, place->name, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void copy_places_free(struct copy_places *places)
{
	for (size_t i = 0; i < places->count; i++) {
		struct copy_place *place = &places->items[i];

		cleanup_close(&place->srcdir);
		cleanup_close(&place->dstdir);
		free(place->clean);
	}
	free(places->items);
	free(places->to);
}
