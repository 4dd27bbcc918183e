/*
 * The small trees that the level "fault" works on: one entry of each kind that can go wrong
 * differently.
 */
#ifndef FAULT_WORLD_H
#define FAULT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fault/snapshot.h"

struct world {
	char root[256]; /* everything of this worker is below it */
	const char *tool; /* the command under test */
	bool user; /* the trees belong to WORLD_UID */
	bool drop; /* the tool runs as WORLD_UID */
	char **environment; /* the tool's; NULL: ours */
	size_t large; /* bytes of the largest file */
	/* Set by a scenario's build: */
	char guarded[300]; /* the tree that may not change */
	char target[300]; /* the tree that is to become `want` */
	char repaired[300]; /* the tree that is `want` after the repair; "": target */
	struct snapshot *guard; /* guarded, before */
	struct snapshot *old; /* target, before */
	struct snapshot *want;
	unsigned ignore; /* of enum snapshot_ignore, between want and target */
};

#define WORLD_UID 65534
#define WORLD_OUTPUT 100 /* bytes of a job's own at the beginning of its output file */

/* The path of name below the world, in one of a few static buffers. */
const char *world_path(const struct world *world, const char *name);

/* Writes size bytes that depend on seed, with a mode and a time that does too. Parents must be
 * there. */
void world_file(
	const struct world *world, const char *name, size_t size, unsigned seed, mode_t mode);
void world_directory(const struct world *world, const char *name, mode_t mode);
/* Sets the time of anything (a directory after what is in it) and its owner to the tool's. */
void world_finish(const struct world *world, const char *name, unsigned seed);

/* Plain, empty, large and sparse files, a name with a newline, hard links across directories,
 * symlinks, a FIFO, an extended attribute and an ACL, directories one of which is read-only. */
void world_tree(const struct world *world, const char *name);
/* An older state of that tree: some of it as it is now, some different, some missing. */
void world_older_tree(const struct world *world, const char *name);

void world_rename(const struct world *world, const char *from, const char *to);

/* Sets guarded and target, by their names below the root. */
void world_places(struct world *world, const char *guarded, const char *target);

/* Makes a small text file of root's. */
void world_text(const struct world *world, const char *name, const char *text);

/* Runs a command (as in world_words) without a fault; aborts unless it ends with status 0. */
void world_run(const struct world *world, const char *const *words);

/* A copy of words, in which "%W" is the root and "%T" the tool. Caller frees with
 * world_words_free. */
char **world_words(const struct world *world, const char *const *words);
void world_words_free(char **words);

/* Takes guard, old and want (a snapshot of guarded where the build set none). */
void world_remember(struct world *world);

/* Removes everything below the root and forgets the snapshots. */
void world_clear(struct world *world);

#endif
