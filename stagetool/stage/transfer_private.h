/*
 * What stage-in and stage-out share.
 */
#ifndef STAGE_TRANSFER_PRIVATE_H
#define STAGE_TRANSFER_PRIVATE_H

#include <pthread.h>

#include "copy/engine.h"
#include "stage/manifest.h"
#include "stage/transfer.h"
#include "tree/filter.h"
#include "tree/links.h"

struct transfer {
	const struct transfer_context *context;
	struct manifest *manifest; /* NULL: none can be had, and none is needed */
	pthread_mutex_t lock;      /* of failed and of the summaries */
	struct error failed;       /* the manifest could not be read or written */
};

/* One item at work. */
struct transfer_item {
	struct transfer *transfer;
	const struct plan_item *plan;
	struct summary *summary;
	const char *shown; /* the root of its paths in messages */
	struct filter *filter;
	uint32_t pair;
	uint64_t root_dir;     /* the directory of the root's record in tree 0 */
	const char *root_name; /* NULL: the root is the stage itself, which has no record */
	struct stage_in_replaced *replaced; /* of a stage-in, under transfer's lock */
	struct links *losing; /* of a stage-in: files in the stage that lose a name to it */
	struct transfer_note *notes; /* of entries that lack an attribute, under transfer's lock */
};

void transfer_begin(struct transfer *transfer, const struct transfer_context *context);
void transfer_end(struct transfer *transfer);

/* Remembers the first error of the manifest; from then on nothing more is decided on. Any thread.
 */
void transfer_broken(struct transfer *transfer, const struct error *err);
bool transfer_is_broken(struct transfer *transfer);

/* 1: *entry is the record; 0: there is none. An error is remembered, and 0. Any thread. */
int transfer_record(struct transfer *transfer, uint32_t tree, uint64_t dir, const char *name,
	struct manifest_entry *entry);

/* A problem of an entry (NULL: of the item itself), named in the summary. Any thread. */
void transfer_tell(struct transfer_item *item, const struct copy_item *entry, const char *kind,
	const char *text);
/* The same for an outcome of the engine; those that are none are passed over. */
void transfer_tell_outcome(struct transfer_item *item, const struct copy_item *entry,
	enum copy_outcome outcome, const struct error *err);
/* The same by path, below the item's root. */
void transfer_tell_path(struct transfer_item *item, const char *path, enum copy_outcome outcome,
	const char *text);
/* An attribute of entry could not be set: where it can be another time, the entry is recorded with
 * MANIFEST_MODE_UNKNOWN, and done again by the next run. Any thread; without memory it is only
 * told. */
void transfer_note_attribute(
	struct transfer_item *item, const struct copy_item *entry, const struct error *err);
/* Whether that was so. Any thread. */
bool transfer_lacks_attribute(struct transfer_item *item, const struct copy_item *entry);
void transfer_forget_notes(struct transfer_item *item);
/* The item as a whole failed, or could not be begun. */
void transfer_fail(struct transfer_item *item, const struct error *err);

/* Whether an entry takes part. The root always does. */
enum filter_answer transfer_filter(const struct transfer_item *item, const struct copy_item *entry);

/* One run of the engine, seen by transfer_live, its counts added to the item's. */
struct transfer_copy {
	int srcdir, dstdir;
	const char *srcname, *dstname;
	struct copy_options options;
	struct copy_hooks hooks;
};
int transfer_copy(struct transfer_item *item, const struct transfer_copy *run, struct error *err);

/* The same for what ran otherwise. */
void transfer_add_counts(struct transfer_item *item, const struct copy_counts *counts);

/* The options that the context gives. */
void transfer_options(const struct transfer_item *item, struct copy_options *options);

/* Opens the directory of an absolute path, through no symlink; *name is the last component
 * (borrowed from path; "." of "/"). make: with what is missing of it. */
int transfer_open_parent(const char *path, bool make, const char **name, struct error *err);

/* Seconds of a clock that only goes forward. */
double transfer_clock(void);

#endif
