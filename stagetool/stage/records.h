/*
 * Walking over what the manifest knows, in memory that does not grow with it.
 */
#ifndef STAGE_RECORDS_H
#define STAGE_RECORDS_H

#include "stage/manifest.h"

/* A record in callbacks. Borrowed until the callback returns. */
struct record {
	const char *path; /* from where the walk began; "" there */
	uint64_t parent;  /* directory id */
	const char *name; /* in its directory; "" of the stage itself */
	const struct manifest_entry *entry;
};

/* All may be NULL. A negative return ends the walk and is returned by it. They may write to the
 * manifest. */
struct records_ops {
	/* A directory, before what is in it; also where the walk began. 1: pass over what is in it,
	 * and do not call leave. */
	int (*enter)(void *ctx, const struct record *record, struct error *err);
	/* Anything else. */
	int (*file)(void *ctx, const struct record *record, struct error *err);
	/* A directory, after all that is in it. */
	int (*leave)(void *ctx, const struct record *record, struct error *err);
};

/* Walks tree 0 from path (relative to the stage). -ENOENT, err untouched: no record of path. */
int records_walk(struct manifest *manifest, const char *path, const struct records_ops *ops,
	void *ctx, struct error *err);

#endif
