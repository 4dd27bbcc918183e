#include "archive/pack_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

static void dir_unref(struct pack_dir *dir)
{
	while (dir && atomic_fetch_sub(&dir->refs, 1) == 1) {
		struct pack_dir *parent = dir->parent;

		handle_close(&dir->handle);
		for (size_t i = dir->at; i < dir->count; i++)
			free(dir->names[i]);
		free(dir->names);
		free(dir->path);
		free(dir);
		dir = parent;
	}
}

static struct pack_dir *dir_new(struct pack *pack, struct pack_dir *parent, const char *name)
{
	struct pack_dir *dir = calloc(1, sizeof(*dir));

	if (!dir)
		return NULL;
	dir->path = parent ? path_join(parent->path, name) : strdup("");
	if (!dir->path) {
		free(dir);
		return NULL;
	}
	dir->name = path_base(dir->path);
	atomic_init(&dir->refs, 1);
	handle_init(&dir->handle, &pack->cache, parent ? &parent->handle : NULL, dir->name);
	dir->parent = parent;
	if (parent)
		atomic_fetch_add(&parent->refs, 1);
	return dir;
}

static int by_bytes(const void *left, const void *right)
{
	const struct pack_name *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

static int dir_add_name(struct pack_dir *dir, const struct dirent *found)
{
	size_t size = strlen(found->d_name) + 1;
	struct pack_name *name;

	if ((dir->count & (dir->count + 1)) == 0) { /* full at 0, 1, 3, 7 ... */
		struct pack_name **grown = reallocarray(
			dir->names, 2 * dir->count + 1, sizeof(struct pack_name *));

		if (!grown)
			return -ENOMEM;
		dir->names = grown;
	}
	name = malloc(sizeof(*name) + size);
	if (!name)
		return -ENOMEM;
	name->type = found->d_type;
	memcpy(name->name, found->d_name, size);
	dir->names[dir->count++] = name;
	return 0;
}

/* All names of dir, which is open as fd. */
static int dir_list(struct pack_dir *dir, int fd, struct error *err)
{
	autoclose int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *stream = again < 0 ? NULL : fdopendir(again);
	const struct dirent *found;

	if (!stream)
		return error_errno(err, "open");
	again = -1;
	while (errno = 0, (found = readdir(stream))) {
		if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
			continue;
		if (dir_add_name(dir, found))
			return error_sys(err, -ENOMEM, "its names");
	}
	if (errno)
		return error_errno(err, "read");
	if (dir->count)
		qsort(dir->names, dir->count, sizeof(struct pack_name *), by_bytes);
	return 0;
}

int pack_walk_begin(struct pack *pack, int rootfd, struct error *err)
{
	struct pack_dir *dir = dir_new(pack, NULL, "");
	struct stat st;
	int fd, rc;

	if (!dir)
		return error_sys(err, -ENOMEM, "packing");
	fd = handle_open(&pack->cache, rootfd, ".", &st);
	if (fd < 0) {
		dir_unref(dir);
		return error_sys(err, fd, "open");
	}
	handle_adopt(&dir->handle, fd, st.st_dev, st.st_ino);
	rc = dir_list(dir, fd, err);
	handle_unpin(&dir->handle);
	if (rc)
		dir_unref(dir);
	else
		pack->at = dir;
	return rc;
}

/* Goes down into a directory. Told where that can not be done. */
static void walk_enter(struct pack *pack, const char *name, bool told)
{
	struct pack_dir *dir = dir_new(pack, pack->at, name);
	struct error err = ERROR_INIT;
	struct stat st;
	int parentfd, fd;

	if (!dir) {
		error_sys(&err, -ENOMEM, "packing");
		pack_tell_path(pack, name, COPY_FAILED, &err);
		return;
	}
	dir->told = told;
	fd = parentfd = handle_pin(&pack->at->handle, &err);
	if (parentfd >= 0) {
		fd = handle_open(&pack->cache, parentfd, name, &st);
		handle_unpin(&pack->at->handle);
		if (fd < 0)
			error_sys(&err, fd, "open");
	}
	if (fd >= 0) {
		handle_adopt(&dir->handle, fd, st.st_dev, st.st_ino);
		fd = dir_list(dir, fd, &err);
		handle_unpin(&dir->handle);
	}
	if (fd < 0) {
		pack_tell_path(pack, dir->path, fd == -ENOENT ? COPY_VANISHED : COPY_FAILED, &err);
		dir_unref(dir);
	} else {
		pack->at = dir;
	}
}

static struct pack_entry *entry_new(struct pack *pack, struct pack_dir *dir, const char *name,
	unsigned char type)
{
	struct pack_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->name = strdup(name);
	if (!entry->name) {
		free(entry);
		return NULL;
	}
	entry->pack = pack;
	entry->dir = dir;
	entry->type = type;
	atomic_fetch_add(&dir->refs, 1);
	return entry;
}

void pack_entry_free(struct pack_entry *entry)
{
	dir_unref(entry->dir);
	free(entry->name);
	free(entry->target);
	free(entry->data);
	free(entry->values_memory);
	free(entry);
}

/* The outermost directory above that has no entry of its own yet. */
static struct pack_dir *walk_untold(struct pack_dir *dir)
{
	struct pack_dir *untold = NULL;

	for (; dir; dir = dir->parent)
		if (!dir->told)
			untold = dir;
	return untold;
}

static bool walk_leaves_out(const struct pack *pack, const char *name)
{
	const struct pack_options *options = &pack->options;
	const struct handle *handle = &pack->at->handle;

	if (!strncmp(name, COPY_TEMP_PREFIX, sizeof(COPY_TEMP_PREFIX) - 1))
		return true;
	if (options->target_dir && !strcmp(name, options->target_name) &&
		handle->dev == options->target_dir->st_dev &&
		handle->ino == options->target_dir->st_ino)
		return true;
	if (pack->at->parent || !options->leave)
		return false;
	for (const char *const *leave = options->leave; *leave; leave++)
		if (!strcmp(*leave, name))
			return true;
	return false;
}

/* What the filesystem did not say. */
static unsigned char walk_type(const struct pack *pack, const struct pack_name *name)
{
	struct stat st;
	int fd;

	if (name->type != DT_UNKNOWN)
		return name->type;
	fd = handle_pin(&pack->at->handle, NULL);
	if (fd < 0)
		return DT_UNKNOWN;
	if (fstatat(fd, name->name, &st, AT_SYMLINK_NOFOLLOW))
		st.st_mode = 0;
	handle_unpin(&pack->at->handle);
	return (unsigned char)IFTODT(st.st_mode);
}

/* The next name of the directory at hand, which has one. NULL: it makes no entry, or (failed) memory ran out. */
static struct pack_entry *walk_name(struct pack *pack, bool *failed)
{
	struct pack_dir *dir = pack->at, *untold;
	struct pack_name *name = dir->names[dir->at];
	struct pack_entry *entry = NULL;
	unsigned char type = walk_type(pack, name);
	enum filter_answer answer = FILTER_OUT;

	if (!walk_leaves_out(pack, name->name))
		answer = filter_match(
			pack->options.filter, dir->path, name->name, type == DT_DIR);
	untold = answer == FILTER_IN ? walk_untold(dir) : NULL;
	if (untold) { /* and then this one again */
		untold->told = true;
		entry = entry_new(pack, untold->parent, untold->name, DT_DIR);
		*failed = !entry;
		return entry;
	}
	dir->at++;
	if (answer == FILTER_IN) {
		entry = entry_new(pack, dir, name->name, type);
		*failed = !entry;
	}
	if (type == DT_DIR && answer != FILTER_OUT)
		walk_enter(pack, name->name, answer == FILTER_IN);
	free(name);
	return entry;
}

struct pack_entry *pack_walk_next(struct pack *pack, struct error *err)
{
	struct pack_entry *entry = NULL;
	bool failed = false;

	while (!entry && !failed && pack->at) {
		struct pack_dir *dir = pack->at;

		if (!dir->parent && !dir->told) {
			dir->told = true;
			entry = entry_new(pack, dir, "", DT_DIR);
			failed = !entry;
		} else if (dir->at == dir->count) {
			pack->at = dir->parent;
			dir_unref(dir);
		} else {
			entry = walk_name(pack, &failed);
		}
	}
	if (failed)
		error_sys(err, -ENOMEM, "packing");
	return entry;
}

void pack_walk_end(struct pack *pack)
{
	while (pack->at) {
		struct pack_dir *dir = pack->at;

		pack->at = dir->parent;
		dir_unref(dir);
	}
}
