/*
 * A parallel walk of a tree that streams: batches of entries from every directory, on the workers
 * of a pool, with memory that does not grow with the number of entries.
 *
 * Directories are opened relative to their parents' fds, never through a symlink, and what was
 * opened is what was listed (a directory that was exchanged meanwhile is an error of that
 * directory). Depth is not limited by PATH_MAX nor by the number of fds: idle ones are closed and
 * opened again, and proven to be the same directory.
 */
#ifndef TREE_WALK_H
#define TREE_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/pool.h"

/* A directory of the walk. Counted: it lives while it or anything below it is at work. */
struct walk_dir;

/* An entry that is not a directory, in a batch. */
struct walk_entry {
	const char *name; /* borrowed, until the callback returns */
	uint64_t inode;
	unsigned char
		type; /* DT_*; DT_UNKNOWN where the filesystem does not say (never a directory) */
};

/* Callbacks, from any worker; those of one directory's leave come last. None may be NULL but where
 * said. */
struct walk_ops {
	/* A directory was found (also the root) and is about to be entered. st is its lstat. Sets
	 * the user data of dir if it likes. 0: enter it; 1: leave it out with all below it (leave
	 * is not called); negative: the same, as an error that was reported by the callback. */
	int (*enter)(void *ctx, struct walk_dir *dir, const struct stat *st, unsigned worker);
	/* Some entries of dir. */
	void (*entries)(void *ctx, struct walk_dir *dir, const struct walk_entry *entries,
		unsigned count, unsigned worker);
	/* Everything below dir has been handed over and all that held dir (walk_dir_hold) is
	 * through. */
	void (*leave)(void *ctx, struct walk_dir *dir, unsigned worker);
	/* name NULL: dir, which was entered, could not be opened or read to its end (it is left all
	 * the same). Else name, an entry of dir, could not be looked at or entered; -ENOENT: it is
	 * gone. */
	void (*failed)(void *ctx, struct walk_dir *dir, const char *name, const struct error *err,
		unsigned worker);
	/* Before and after a buffer of a directory is read, for those who take the time: what
	 * list_begin returns is given to list_end. Both may be NULL. */
	uint64_t (*list_begin)(void *ctx, unsigned worker);
	void (*list_end)(void *ctx, uint64_t begun, unsigned worker);
};

struct walk_options {
	unsigned batch;            /* entries in a batch at most; 0: the walk chooses */
	const atomic_bool *cancel; /* borrowed, may be NULL */
	/* While it is true, what was listed is handed over before much else is listed: for sources whose
	 * answers to a listing are forgotten after a moment. Borrowed, may be NULL. */
	const atomic_bool *gather;
	int one_filesystem; /* do not enter other mounts (reported through failed as -EXDEV) */
};

/* Walks the directory rootfd (borrowed until the walk is over) on pool. Returns when the tree is
 * through, 0 also when callbacks reported errors; -ECANCELED when it was cancelled. Not for a
 * worker. */
int walk_run(struct pool *pool, int rootfd, const struct walk_ops *ops, void *ctx,
	const struct walk_options *options, struct error *err);

/* The directory's open fd, pinned until walk_dir_unpin (may reopen it). Negative errno on failure.
 */
int walk_dir_pin(struct walk_dir *dir, struct error *err);
void walk_dir_unpin(struct walk_dir *dir);

/* For a callback whose entry takes long: lets others have what this worker was to hand over next. dir is
 * any of the walk. Whether there was something. */
bool walk_share(struct walk_dir *dir, unsigned worker);

/* Keeps dir from being left until walk_dir_release: for work that goes on after the callback. */
void walk_dir_hold(struct walk_dir *dir);
void walk_dir_release(struct walk_dir *dir, unsigned worker);

/* Its parent (NULL for the root), its name in it ("" for the root), its depth (root 0), and the
 * caller's data. */
struct walk_dir *walk_dir_parent(const struct walk_dir *dir);
const char *walk_dir_name(const struct walk_dir *dir);
unsigned walk_dir_depth(const struct walk_dir *dir);
void walk_dir_set_data(struct walk_dir *dir, void *data);
void *walk_dir_data(const struct walk_dir *dir);

/* The path below the root, with "/name" added where name is not NULL; "" for the root itself.
 * Caller frees; NULL on ENOMEM. For messages and filters: nothing is opened by it. */
char *walk_dir_path(const struct walk_dir *dir, const char *name);

#endif
