/*
 * Inside of the engine: a source file with several names, at the destination. For hardlink.c and
 * group.c.
 */
#ifndef COPY_GROUP_H
#define COPY_GROUP_H

#include "copy/internal.h"

/* A name that waits for the first one to be copied. */
struct group_name {
	struct pool_task task;
	struct group_name *next;
	struct copy_entry entry;
};

/* A link that was made. */
struct group_link {
	struct group_link *next;
	struct copy_dir *dir; /* held */
	char name[];
};

/* A source file with several names, at the destination. Kept in a links_file, under its lock. Each
 * link that is made changes the ctime of all: their outcome is told when none is to come. */
struct copy_group {
	enum { GROUP_NONE, GROUP_COPYING, GROUP_READY } state;
	bool sent;            /* the first name was sent by us, and told once */
	unsigned busy;        /* names that are claimed and not through */
	struct copy_dir *dir; /* where it is (GROUP_READY), held */
	char *name;
	dev_t dev; /* of what is there; ino 0: not known */
	ino_t ino;
	struct group_name *waiting; /* for GROUP_COPYING to be over */
	struct group_link *links;
	struct stat *src; /* where there are links */
};

/* That of file, which is locked; made if there is none. NULL on ENOMEM. */
struct copy_group *group_of(struct links_file *file);

/* Lets go of file. The group of a file whose names were all met and are through ends, and is told.
 */
void group_unlock(struct copy *copy, struct links_file *file);
/* Tells what was not told, without a lock. */
void group_free(struct copy_group *group);

/* Keeps a link until its outcome is told. Without memory it is told now, with what it is now
 * unknown. */
void group_keep(struct copy_group *group, const struct copy_entry *entry);

/* The new place of a file. What was linked to the place before is complete: *before is that, to be
 * freed. */
void group_move(struct copy_group *group, struct copy_dir *dir, const char *dst_name,
	struct copy_group **before);
/* The first name of a file, equal at the destination, is what the others are linked to. */
void group_place(struct copy_group *group, const struct copy_entry *entry, const struct stat *dst);

#endif
