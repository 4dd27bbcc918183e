/*
 * Feeding the copier: entries that come one after the other, out of an archive and not of a tree.
 *
 *   copy_feed_new(dstdir, name, &options, &hooks, &feed, err);
 *   ... copy_feed_entry, copy_feed_link;
 *       if (copy_feed_file(...)) { copy_feed_data ...; } copy_feed_end ...
 *   copy_feed_finish(feed, err);
 *
 * One thread feeds; the workers of the copier write, as they do for a tree: the same names, attributes,
 * hooks and counts. What comes later under one name wins, as if all were written in their order. Memory
 * is bounded but for the directories, whose attributes are set at the end, 8 to 16 bytes for each entry, and
 * the names of hard links.
 *
 * Nothing leaves the destination: an absolute path, one with "..", one through anything that is no directory
 * is refused by name (COPY_FAILED), also where an earlier entry made it so.
 */
#ifndef COPY_FEED_H
#define COPY_FEED_H

#include "copy/engine.h"
#include "tree/meta.h"

struct copy_feed;

/* An entry. All borrowed until the call returns. */
struct copy_fed {
	const char *path; /* below the root; "." or "./": the root itself */
	/* What it is and has. size -1: not known yet. ino and ctime are not used but for telling two states
	 * of the source apart (hooks). */
	struct stat st;
	const char *target; /* of a symlink */
	const struct meta_value *values;
	size_t n_values;
};

/* Options as of copy_new, but for verify and engine, which have no meaning here. dstname "" or "." is dstdir
 * itself; it is made if something is put into it. hooks.decide is asked for a directory again when its entry
 * comes after what lies in it. */
int copy_feed_new(int dstdir, const char *dstname, const struct copy_options *options,
	const struct copy_hooks *hooks, struct copy_feed **feed, struct error *err);
void copy_feed_free(struct copy_feed *feed);

/* For copy_counts. Borrowed. */
const struct copy *copy_feed_copy(const struct copy_feed *feed);

/* Whether nothing more is taken: cancelled, or no space is left. */
bool copy_feed_stopped(struct copy_feed *feed);

/* Whether an entry that is no directory came with this path. */
bool copy_feed_came(const struct copy_feed *feed, const char *path);

/* A directory, symlink or FIFO. What else it is is told as COPY_SPECIAL. */
void copy_feed_entry(struct copy_feed *feed, const struct copy_fed *fed);

/* Another name of the file that came as oldpath. */
void copy_feed_link(struct copy_feed *feed, const struct copy_fed *fed, const char *oldpath);

/* A regular file. True: its bytes are expected, and copy_feed_end; false: it is through. */
bool copy_feed_file(struct copy_feed *feed, const struct copy_fed *fed);

/* Bytes of it, in any pieces (copied); what is never given is a hole. */
void copy_feed_data(struct copy_feed *feed, const void *data, size_t size, uint64_t offset);

/* That was all of it. size: in case it was not known; -1: what was said, or the last byte's end. failed: why
 * the rest of it did not come (nothing of it is published then); NULL: it is whole. */
void copy_feed_end(struct copy_feed *feed, int64_t size, const struct error *failed);

/* The file that came as path takes the place of the one that came as oldpath, under all its names (some
 * formats give the bytes of a file with its last name). */
void copy_feed_relink(struct copy_feed *feed, const char *path, const char *oldpath);

/* An entry that can not be had, for a reason of the caller's: COPY_FAILED. */
void copy_feed_fail(struct copy_feed *feed, const struct copy_fed *fed, const struct error *err);
/* One that is had, but not all that belongs to it: COPY_ATTRIBUTE. Before it is fed. */
void copy_feed_lacks(struct copy_feed *feed, const struct copy_fed *fed, const struct error *err);

/* Waits until all is written, then gives directories their attributes. As copy_run's return. Once. */
int copy_feed_finish(struct copy_feed *feed, struct error *err);

#endif
