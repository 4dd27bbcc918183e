/*
 * An archive of a tree appears under its name: whole, durable, or not at all.
 */
#ifndef ARCHIVE_PACK_FILE_H
#define ARCHIVE_PACK_FILE_H

#include "archive/pack.h"
#include "copy/publish.h"

/* Where it is to appear, and what may be there: as in struct publish_request. All borrowed. */
struct pack_file {
	int dirfd;
	const char *name;
	struct copy_expect expect;
	enum copy_conflict conflict;
	const char *suffix;
	/* Called with the packing before it runs, and with NULL before it goes. NULL: not. */
	void (*at_work)(void *ctx, const struct pack *pack);
	void *ctx;
};

/* Packs what is below rootfd. options' target is filled in here. 0: result says under which name it is and counts what
 * is in it (a conflict too, err then says what was there); negative errno: nothing is there of it. */
int pack_file(int rootfd, const struct pack_file *to, const struct pack_options *options,
	struct publish_result *result, struct copy_counts *counts, struct error *err);

#endif
