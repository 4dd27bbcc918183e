/*
 * Packing a tree into one archive: tar (pax), as it is or compressed, or zip.
 *
 * The calling thread lists and writes, in one order that depends on names only; a pool reads ahead what is to be
 * written next. zstd compresses on threads of its own.
 */
#ifndef ARCHIVE_PACK_H
#define ARCHIVE_PACK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "copy/engine.h"
#include "tree/filter.h"

struct pack_format {
	const char *name; /* "tar.zst" */
	bool zip;
	const struct encoder_kind *encoder;
};

/* The format of a name that ends in "."NAME (".tgz" and ".tzst" too), or is NAME; NULL: none. */
const struct pack_format *pack_format_find(const char *name);
/* All of them, ended by one without a name. */
extern const struct pack_format pack_formats[];

struct pack_options {
	const struct pack_format *format;
	unsigned threads; /* that read, and that compress; 0: some */
	const struct filter *filter; /* borrowed, may be NULL */
	const char *const *leave; /* names at the root that are left out, NULL-ended; may be NULL */
	const struct stat *target_dir; /* where the archive is to be: it does not hold itself. May be NULL */
	const char *target_name;
	const atomic_bool *cancel; /* borrowed, may be NULL */
	/* Told of entries that are not in it, or not as they are (COPY_FAILED, _VANISHED, _CHANGED, _SPECIAL,
	 * _ATTRIBUTE, _DROPPED: by the format). path is below the root. From the calling thread. NULL: not told. */
	void (*problem)(void *ctx, const char *path, enum copy_outcome outcome,
		const struct error *err);
	void *ctx;
};

struct pack;

/* Of what is below rootfd (borrowed), and rootfd itself, to be written to out (borrowed, at its beginning). */
int pack_new(int rootfd, int out, const struct pack_options *options, struct pack **pack,
	struct error *err);

/* 0: out holds an archive with all that problem was not told of; not synced. Negative errno: it does not. A file
 * that changes while it is read is -ESTALE if that shows too late to leave it out. Once. */
int pack_run(struct pack *pack, struct error *err);

/* The counts so far, also while it runs. Any thread. */
void pack_counts(const struct pack *pack, struct copy_counts *counts);

void pack_free(struct pack *pack);

#endif
