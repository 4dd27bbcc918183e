/*
 * A tree as it is at a moment, and how two of them differ. Independent of the tool's own comparing.
 */
#ifndef FAULT_SNAPSHOT_H
#define FAULT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct entry {
	char *path; /* below the root; of the root "" */
	struct stat st;
	uint64_t content; /* of a file: a hash; of a symlink: of its target; else 0 */
	uint64_t xattrs; /* a hash of names and values, whatever their order */
	size_t first_link; /* index of the first entry with the same inode */
};

struct snapshot {
	struct entry *entries; /* by path */
	size_t count;
};

/* The tree at root; without entries where there is nothing. Aborts where it can not be read: a
 * comparison that saw less would call everything well. Caller frees. */
struct snapshot *snapshot_take(const char *root);
void snapshot_free(struct snapshot *snapshot);

const struct entry *snapshot_find(const struct snapshot *snapshot, const char *path);

/* What may differ between two trees that count as equal. */
enum snapshot_ignore {
	IGNORE_XATTRS = 1,
	IGNORE_LINKS = 2, /* which names are one file */
	IGNORE_OWNER = 4,
	IGNORE_DIR_TIMES = 8,
	IGNORE_DIR_MODES = 16,
	IGNORE_OTHER_TIMES = 64, /* of symlinks and FIFOs */
	IGNORE_ATTRIBUTES = 32, /* mode, owner, times, xattrs and links */
};

/* What differs between the entries a of one and b of the other, as a word ("content"); NULL:
 * nothing. */
const char *snapshot_difference(const struct snapshot *a, const struct entry *entry_a,
	const struct snapshot *b, const struct entry *entry_b, unsigned ignore);

/* The first difference between two whole trees as text in buffer; NULL: none. */
const char *snapshot_compare(const struct snapshot *a, const struct snapshot *b, unsigned ignore,
	char *buffer, size_t size);

#endif
