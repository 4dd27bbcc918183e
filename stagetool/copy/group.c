#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "copy/group.h"

void group_keep(struct copy_group *group, const struct copy_entry *entry)
{
	size_t size = strlen(entry->dst_name) + 1;
	struct group_link *link = malloc(sizeof(*link) + size);

	if (link && !group->src) {
		group->src = malloc(sizeof(*group->src));
		if (group->src)
			*group->src = entry->st;
	}
	if (!link || !group->src) {
		free(link);
		copy_entry_call(entry, COPY_DONE, NULL, NULL);
		return;
	}
	memcpy(link->name, entry->dst_name, size);
	link->dir = entry->dir;
	copy_dir_ref(link->dir);
	link->next = group->links;
	group->links = link;
}

static void group_call(const struct copy_group *group, struct copy_dir *dir, const char *name,
	const struct stat *dst)
{
	struct copy_entry entry = { .copy = dir->copy, .dir = dir, .src_name = name };

	entry.st = *group->src;
	copy_entry_call(&entry, COPY_DONE, dst, NULL);
}

/* Tells what the names are now, and forgets the links. Without a lock. */
static void group_tell(struct copy_group *group)
{
	const struct stat *dst = NULL;
	struct stat now;
	int fd = group->links ? handle_pin(&group->dir->handle, NULL) : -1;

	if (fd >= 0) {
		if (!fstatat(fd, group->name, &now, AT_SYMLINK_NOFOLLOW))
			dst = &now;
		handle_unpin(&group->dir->handle);
	}
	if (group->links && group->sent)
		group_call(group, group->dir, group->name, dst);
	while (group->links) {
		struct group_link *link = group->links;

		group_call(group, link->dir, link->name, dst);
		group->links = link->next;
		copy_dir_unref(link->dir);
		free(link);
	}
}

void group_free(struct copy_group *group)
{
	if (!group)
		return;
	group_tell(group);
	if (group->dir)
		copy_dir_unref(group->dir);
	free(group->name);
	free(group->src);
	free(group);
}

void group_unlock(struct copy *copy, struct links_file *file)
{
	struct copy_group *group = file->data;
	bool over = group && file->seen >= file->names && !group->busy;

	if (over)
		file->data = NULL;
	links_unlock(copy->links, file);
	if (over)
		group_free(group);
}

struct copy_group *group_of(struct links_file *file)
{
	struct copy_group *group = file->data;

	if (!group) {
		group = calloc(1, sizeof(*group));
		file->data = group;
	}
	return group;
}

void group_move(struct copy_group *group, struct copy_dir *dir, const char *dst_name,
	struct copy_group **before)
{
	char *name = strdup(dst_name);

	if (!name)
		return;
	if (group->name) {
		*before = malloc(sizeof(**before));
		if (*before) {
			**before = *group;
			group->links = NULL;
			group->src = NULL;
		} else {
			copy_dir_unref(group->dir);
			free(group->name);
		}
	}
	group->dir = dir;
	copy_dir_ref(dir);
	group->name = name;
	group->ino = 0;
}

void group_place(struct copy_group *group, const struct copy_entry *entry, const struct stat *dst)
{
	group->name = strdup(entry->dst_name);
	if (!group->name)
		return;
	group->dir = entry->dir;
	copy_dir_ref(group->dir);
	group->dev = dst->st_dev;
	group->ino = dst->st_ino;
	group->state = GROUP_READY;
}
