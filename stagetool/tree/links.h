/*
 * Files with several names: which inodes a walk has met, and what is known of each.
 *
 * An inode is forgotten when as many names of it were seen as it has links, so what is kept is only
 * what still has names to come (or names outside the tree).
 */
#ifndef TREE_LINKS_H
#define TREE_LINKS_H

#include <stdbool.h>
#include <sys/stat.h>

struct links;

struct links_file {
	dev_t dev;
	ino_t ino;
	unsigned long names, seen;
	void *data; /* the caller's; while it is not NULL the file is kept */
	struct links_file *next;
};

/* NULL on ENOMEM. Freeing does not free data. */
struct links *links_new(void);
void links_free(struct links *links);

/* The file of st, made if it is new, with seen raised by add and names brought up to st. Locked,
 * with others: no two may be locked by one thread. NULL on ENOMEM (then nothing is locked). Any
 * thread. */
struct links_file *links_lock(struct links *links, const struct stat *st, unsigned long add);

/* Unlocks it, and forgets it if all its names were seen and data is NULL. */
void links_unlock(struct links *links, struct links_file *file);

/* Whether a name of st is the first one of its file to be met: for counting each file once. Files
 * of one link are always. Where memory is short: true. Any thread. */
bool links_first(struct links *links, const struct stat *st);

/* Any file that has data, taken out of the table (the caller frees it with free()); NULL: none is
 * left. For the end, when no other thread is there. */
struct links_file *links_take(struct links *links);

#endif
