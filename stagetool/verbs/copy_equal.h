/*
 * Whether what is at a destination already is what would be copied there.
 */
#ifndef VERBS_COPY_EQUAL_H
#define VERBS_COPY_EQUAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"
#include "copy/engine.h"
#include "verbs/copy_place.h"

struct copy_equal;

/* For the entries of one copy; place and cancel are borrowed. checksum: contents are compared too.
 * owner: a differing owner or group counts. special: so do setuid and setgid. */
struct copy_equal_options {
	bool checksum, owner, special;
	const atomic_bool *cancel;
};
int copy_equal_new(const struct copy_place *place, const struct copy_equal_options *options,
	struct copy_equal **equal, struct error *err);
void copy_equal_free(struct copy_equal *equal);

/* Regular files: the same size, mode and mtime (as finely as the destination keeps it; how finely is found
 * by trying, when it first matters). Symlinks: the same target. FIFOs: the same mode. Directories are never
 * equal: their times change with what is put into them. What can not be told is different. Any thread. */
bool copy_equal(struct copy_equal *equal, const struct copy_item *item, const struct stat *dst);

#endif
