/*
 * The manifest of a stage: what was brought in, as it was here and there, and what was sent back.
 *
 * LMDB in DIR/.stagetool/, owned by the user. Keys are (tree, directory id, name), so a path of any
 * length has a short key and one directory's entries lie together. Tree 0 is the stage; tree N > 0
 * is what was sent to target N. Records are packed little-endian with a version; what does not
 * decode is an error, never a guess.
 */
#ifndef STAGE_MANIFEST_H
#define STAGE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* Below the root of a stage; never staged in or out. */
#define MANIFEST_STAGE_DIR ".stagetool"

struct manifest;

/* What tells one state of a file from another: a difference in any of these is a change. */
struct manifest_identity {
	uint64_t size, ino;
	int64_t mtime_sec, ctime_sec;
	uint32_t mtime_nsec, ctime_nsec;
};

/* The mode of a directory that is only known to be on the way to something, or not yet complete; and
 * of a file that lacks an attribute. */
#define MANIFEST_MODE_UNKNOWN UINT32_MAX

struct manifest_entry {
	uint32_t type;           /* S_IFMT bits */
	uint32_t mode, uid, gid; /* local; mode without the type */
	uint32_t pair;           /* which pair brought it; 0: none */
	uint32_t run;            /* manifest_run() of the run that wrote it */
	uint64_t dir;            /* id, of a directory; else 0 */
	struct manifest_identity local, shared;
};

void manifest_identity_from(const struct stat *st, struct manifest_identity *identity);
bool manifest_identity_equal(const struct manifest_identity *a, const struct manifest_identity *b);

/* Opens the manifest below stagefd to read (shared with other readers), or to read and write, made
 * anew where there is none (create). -ENOENT where there is none to read; -EBADMSG (with what is
 * wrong) where it is damaged, foreign, or was in bulk mode when the machine went down; -EBUSY (and
 * who) while another process writes, or, for a writer, reads. */
int manifest_open(int stagefd, bool create, struct manifest **manifest, struct error *err);

/* Until the next manifest_sync batches are not synced one by one: fast, and a crash of the machine
 * (not of the process) costs the manifest, which manifest_open then says. Without it every batch is
 * safe. */
int manifest_bulk(struct manifest *manifest, struct error *err);

/* Remembers that what is being staged in is not synced: while the machine runs that does no harm.
 */
int manifest_not_synced(struct manifest *manifest, struct error *err);

/* Whether the machine went down since then: a file that was staged in may have lost its content,
 * and that it differs from its record does not say that a job changed it. */
int manifest_rebooted(struct manifest *manifest, bool *rebooted, struct error *err);

/* Writes what is buffered and makes it durable. Errors of earlier puts show here at the latest. */
int manifest_sync(struct manifest *manifest, struct error *err);

/* Frees without a sync; NULL is fine. */
void manifest_close(struct manifest *manifest);

/* Whether the run that staged in before this one died on the way: what it made last may have no record. */
bool manifest_follows_death(const struct manifest *manifest);

/* A number, one higher each time the manifest is opened to write. */
uint32_t manifest_run(const struct manifest *manifest);

/* The id (from 1) of the pair of a local root (relative to the stage) and a shared root (absolute),
 * made anew where create is set. 0 in *id: there is none. */
int manifest_pair(struct manifest *manifest, const char *local, const char *shared, bool create,
	uint32_t *id, struct error *err);
/* Both roots of a pair; -ENOENT where there is none. Caller frees. */
int manifest_pair_roots(
	struct manifest *manifest, uint32_t id, char **local, char **shared, struct error *err);
/* Ids are 1 to this. */
uint32_t manifest_pair_count(struct manifest *manifest);

/* A directory id that was never used. The root of each tree is 0. Any thread. */
uint64_t manifest_new_dir(struct manifest *manifest);

/* Looks up name in a directory; -ENOENT (err untouched) where there is no such record. Sees what
 * was put. Any thread. */
int manifest_get(struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name,
	struct manifest_entry *entry, struct error *err);

/* Walks the components of path from the root of tree. "" and "." give a directory entry with id 0.
 */
int manifest_find(struct manifest *manifest, uint32_t tree, const char *path,
	struct manifest_entry *entry, struct error *err);

/* The id of the directory path, made with its parents where they are not there. */
int manifest_make_dirs(struct manifest *manifest, uint32_t tree, const char *path, uint64_t *dir,
	struct error *err);

/* Records or replaces; buffered. Any thread. */
int manifest_put(struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name,
	const struct manifest_entry *entry, struct error *err);
int manifest_delete(struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name,
	struct error *err);

/* Calls back for each record of one directory in byte order, until it returns nonzero (which is
 * returned). The callback may use the manifest. Any thread. */
int manifest_each(struct manifest *manifest, uint32_t tree, uint64_t dir,
	int (*each)(
		void *ctx, const char *name, const struct manifest_entry *entry, struct error *err),
	void *ctx, struct error *err);

#endif
