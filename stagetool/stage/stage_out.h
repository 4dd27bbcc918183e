/*
 * Parts of stage-out.
 */
#ifndef STAGE_STAGE_OUT_H
#define STAGE_STAGE_OUT_H

#include "stage/transfer_private.h"

/* A directory id that no directory has: nothing is known of what lies in it. */
#define STAGE_OUT_NO_DIR UINT64_MAX

/* An item on its way out. */
struct stage_out {
	struct transfer_item item;
	bool records; /* what is sent can be remembered */
	bool suspect; /* what was staged in may have been damaged by a crash of the machine */
	atomic_bool unlisted; /* some entries may not have been seen: absence means nothing */
	int rootfd; /* of the root in the stage, if it is a directory; else its parent's */
	const char *root_name; /* "." or the file's name in it */
};

/* The records of an entry. 1: there is one. */
int stage_out_staged(
	struct stage_out *out, const struct copy_item *entry, struct manifest_entry *record);
int stage_out_sent(
	struct stage_out *out, const struct copy_item *entry, struct manifest_entry *record);

/* The hooks of the copy that sends it. */
struct copy_hooks stage_out_hooks(struct stage_out *out);

/* Sends all of it as one archive, whole and durable, under its name. leave: names at its root that are not in
 * it. */
int stage_out_pack(struct stage_out *out, enum copy_conflict conflict, const char *const *leave,
	struct error *err);

/* Removes at the shared side what was staged in from there and is gone in the stage. Problems are
 * told; one that makes absence doubtful ends it. */
void stage_out_delete(struct stage_out *out);

/* Writes TO.receipt.json, durable on return. */
int stage_out_receipt(const struct stage_out *out, struct error *err);

#endif
