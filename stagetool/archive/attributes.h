/*
 * What an archive says of an entry, as the copier takes it.
 */
#ifndef ARCHIVE_ATTRIBUTES_H
#define ARCHIVE_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "archive/library.h"
#include "base/error.h"
#include "tree/meta.h"

/* An entry's. Zeroed: empty. Release with attributes_free. */
struct attributes {
	struct stat st;
	struct meta_value *values; /* names and values borrowed from the entry, but for ACLs */
	size_t n_values;
	void *acls[2]; /* the values of ACLs */
};

/* Where an entry came from. What the archive is and the entry's number make st tell one state of an entry from
 * another (st_ino, st_ctim). */
struct attributes_origin {
	const struct stat *archive;
	uint64_t number;
	bool is_tar;
};

/* Takes them out of entry, which must live as long. Negative errno: err says what could not be had, all else
 * is there. */
int attributes_take(struct archive_entry *entry, const struct attributes_origin *origin,
	struct attributes *attributes, struct error *err);
void attributes_free(struct attributes *attributes);

#endif
