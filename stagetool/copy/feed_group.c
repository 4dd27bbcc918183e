#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "copy/feed_internal.h"

#define FEED_GROUPS 4096

/* A file at the destination to which links were made. Each link changes the ctime of all its names: they are
 * told once all are there. */
struct feed_group {
	struct feed_group *next;
	dev_t dev;
	ino_t ino;
	struct stat src;
	struct feed_name *names;
};

static struct feed_group *group_find(const struct copy_feed *feed, const struct stat *dst)
{
	struct feed_group *group = feed->groups ? feed->groups[dst->st_ino % FEED_GROUPS] : NULL;

	while (group && (group->ino != dst->st_ino || group->dev != dst->st_dev))
		group = group->next;
	return group;
}

/* A new one, without names. */
static struct feed_group *group_new(struct copy_feed *feed, const struct stat *src,
	const struct stat *dst)
{
	struct feed_group **slot, *group;

	if (!feed->groups)
		feed->groups = calloc(FEED_GROUPS, sizeof(struct feed_group *));
	group = feed->groups ? calloc(1, sizeof(*group)) : NULL;
	if (!group)
		return NULL;
	group->dev = dst->st_dev;
	group->ino = dst->st_ino;
	group->src = *src;
	slot = &feed->groups[dst->st_ino % FEED_GROUPS];
	group->next = *slot;
	*slot = group;
	return group;
}

static struct feed_name *name_new(struct feed_name *next, struct copy_dir *dir, const char *name)
{
	size_t size = strlen(name) + 1;
	struct feed_name *new = malloc(sizeof(*new) + size);

	if (!new)
		return NULL;
	memcpy(new->name, name, size);
	new->dir = dir;
	new->next = next;
	return new;
}

static int group_add_name(struct copy_feed *feed, struct feed_group *group, struct copy_dir *dir,
	const char *name)
{
	struct feed_name *new = name_new(group->names, dir, name);

	if (!new)
		return -ENOMEM;
	new->older = feed->names;
	feed->names = new;
	group->names = new;
	return 0;
}

int feed_group_add(struct copy_feed *feed, const struct copy_entry *entry, const struct stat *dst,
	struct copy_dir *olddir, const char *oldname)
{
	struct feed_group *group = group_find(feed, dst);
	int rc = 0;

	if (!group) {
		group = group_new(feed, &entry->st, dst);
		rc = group ? group_add_name(feed, group, olddir, oldname) : -ENOMEM;
	}
	return rc ? rc : group_add_name(feed, group, entry->dir, entry->dst_name);
}

const struct feed_name *feed_group_names(const struct copy_feed *feed, struct copy_dir *dir,
	const char *name)
{
	struct feed_group *group = NULL;
	struct stat st;

	if (feed_look(dir, name, true, &st))
		group = group_find(feed, &st);
	return group ? group->names : NULL;
}

/* A name that something else has taken since is told by that. */
static void group_tell(const struct feed_group *group)
{
	for (const struct feed_name *name = group->names; name; name = name->next) {
		struct copy_entry entry = { .copy = name->dir->copy, .dir = name->dir,
			.src_name = name->name, .dst_name = name->name };
		struct stat dst;

		entry.st = group->src;
		if (feed_look(name->dir, name->name, true, &dst) && dst.st_ino == group->ino &&
			dst.st_dev == group->dev)
			copy_entry_call(&entry, COPY_DONE, &dst, NULL);
	}
}

void feed_groups_finish(struct copy_feed *feed)
{
	for (size_t i = 0; feed->groups && i < FEED_GROUPS; i++)
		for (const struct feed_group *group = feed->groups[i]; group; group = group->next)
			group_tell(group);
}

void feed_groups_free(struct copy_feed *feed)
{
	for (size_t i = 0; feed->groups && i < FEED_GROUPS; i++) {
		struct feed_group *group = feed->groups[i];

		while (group) {
			struct feed_group *next = group->next;

			free(group);
			group = next;
		}
	}
	free(feed->groups);
	while (feed->names) {
		struct feed_name *name = feed->names;

		feed->names = name->older;
		free(name);
	}
}
