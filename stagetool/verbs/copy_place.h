/*
 * Where the FROMs of "stagetool copy FROM... TO" are, and where each goes.
 */
#ifndef VERBS_COPY_PLACE_H
#define VERBS_COPY_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

/* One FROM, ready for copy_new. */
struct copy_place {
	const char *from; /* as it was given, borrowed */
	char *clean; /* without what means nothing */
	const char *name; /* its own, the last component of clean */
	struct stat st; /* of what it leads to */
	int srcdir, dstdir;
	char srcname[NAME_MAX + 1], dstname[NAME_MAX + 1]; /* "": srcdir or dstdir itself */
};

struct copy_places {
	struct copy_place *items;
	size_t count;
	bool into; /* TO is the directory that each goes into */
	char *to; /* cleaned */
};

/* Text only: the slash rule, and what it refuses (-EINVAL: wrong usage). places is freed by the caller with
 * copy_places_free, also after a failure. */
int copy_places_parse(char *const *from, size_t count, const char *to, struct copy_places *places,
	struct error *err);

/* Opens all FROMs (a symlink is followed), then TO, which is made if it is a directory to go into and only
 * it itself is missing. Nothing is made where a FROM is missing or TO can not take it. */
int copy_places_open(struct copy_places *places, struct error *err);

void copy_places_free(struct copy_places *places);

#endif
