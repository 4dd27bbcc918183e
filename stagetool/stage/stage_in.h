/*
 * Parts of stage-in.
 */
#ifndef STAGE_STAGE_IN_H
#define STAGE_STAGE_IN_H

#include "stage/transfer_private.h"

/* Where an item goes. */
struct stage_in_target {
	int fd;           /* of its parent, or, with name ".", its own */
	char *dir;        /* the parent, relative to the stage, without symlinks */
	char *root;       /* the item's root, likewise */
	const char *name; /* of the root in fd */
	bool exists;
};

/* Finds it, and makes the parents. Release with stage_in_target_free, also after a failure
 * (initialize with fd -1). */
int stage_in_target(struct transfer_item *item, struct stage_in_target *target, struct error *err);
void stage_in_target_free(struct stage_in_target *target);

/* The names of files that were there, as an earlier run had staged them, and were replaced by what
 * their source has now. */
struct stage_in_replaced {
	uint64_t *keys; /* the caller's to free */
	size_t count, room;
	bool all; /* memory ran out: any may be */
};

void stage_in_replaced_add(struct stage_in_replaced *replaced, uint64_t dir, const char *name);
/* Between the last add and the first has. */
void stage_in_replaced_sort(struct stage_in_replaced *replaced);
bool stage_in_replaced_has(
	const struct stage_in_replaced *replaced, uint64_t dir, const char *name);

/* What an item brought, for when it has to be taken back. */
struct stage_in_brought {
	char *root; /* its place in the stage; NULL: it did not get that far */
	bool existed;
	struct stage_in_replaced replaced;
};

/* Brings one item. */
int stage_in(struct transfer_item *item, struct stage_in_brought *brought, struct error *err);

/* The options and hooks of what brings it. */
void stage_in_prepare(struct transfer_item *item, const struct stage_in_target *target,
	struct copy_options *options, struct copy_hooks *hooks);

/* Brings one that is an archive, as the tree in it. One that was unpacked there, as it is now, is not read
 * again. */
int stage_in_unpack(
	struct transfer_item *item, const struct stage_in_target *target, struct error *err);

/* Takes back what this run brought of an item: all of it where there was nothing before, else what
 * is as its record of this run says and took no earlier file's place, and directories that are then
 * empty. What can not be removed stays. */
void stage_in_undo(struct transfer_item *item, struct stage_in_brought *brought);

#endif
