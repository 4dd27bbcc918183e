/*
 * Shared by publish.c (what may appear where), replace.c (how it does) and temp.c (temporary
 * names).
 */
#ifndef COPY_PUBLISH_INTERNAL_H
#define COPY_PUBLISH_INTERNAL_H

#include "base/known.h"
#include "copy/publish.h"
#include "tree/links.h"

#include <stdatomic.h>

struct publish {
	uint64_t host, boot; /* hashes; boot 0: not known */
	uint64_t start; /* of this process, in ticks since boot; 0: not known */
	int64_t boot_time; /* seconds since 1970 */
	pid_t pid;
	char prefix[PUBLISH_TEMP_SIZE]; /* of the names of this process, up to the counter */
	size_t prefix_length;
	atomic_ullong counter;
	struct known known; /* by device */
	struct links *taken; /* files that lost one of several names to us: their ctime is ours */
};

/* What else is in a temporary's name that is about to change places with an entry of that identity.
 * If its run dies then, it holds either ours or theirs, and this tells which. */
struct temp_exchange {
	uint64_t ours, theirs; /* inodes */
	uint64_t theirs_state; /* temp_state of theirs */
};

uint64_t temp_state(uint64_t size, struct timespec mtime);

/* temp with exchange added to it, or in the place of what an earlier call added. */
void temp_name_exchange(const char *temp, const struct temp_exchange *exchange,
	char name[PUBLISH_TEMP_SIZE]);

struct same_entry {
	int dirfd;
	const char *name;
};

/* Whether two entries could be taken for each other: files of one mode, mtime and content, symlinks
 * with one target, FIFOs. What can not be read is not the same. */
bool same_entries(const struct same_entry *a, const struct same_entry *b);

/* One publication on its way. */
struct publishing {
	struct publish *publish;
	const struct publish_request *request;
	char from[PUBLISH_TEMP_SIZE]; /* what ours is called now; "" once it is gone */
	bool directory; /* ours is one, empty */
};

/* Ours appears under name if that is free. 0, -EEXIST or another negative errno. */
int publishing_take(struct publishing *at, const char *name);

/* Ours appears under its name if that is free or holds what is expected. -EEXIST (err untouched):
 * it holds something else. */
int publishing_replace_same(struct publishing *at, const struct copy_identity *expected,
	struct error *err);

/* Ours (not a directory) replaces what is there. -EEXIST (err untouched): that is a directory. */
int publishing_replace_any(struct publishing *at, struct error *err);

/* Removes ours. */
void publishing_discard(struct publishing *at);

#endif
