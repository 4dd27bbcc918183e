/*
 * What was learned about filesystems: small sets of flags for a device, or a pair of them.
 *
 * A call that a filesystem does not support is tried once and not once a file.
 */
#ifndef BASE_KNOWN_H
#define BASE_KNOWN_H

#include <stdatomic.h>
#include <sys/types.h>

#define KNOWN_PAIRS 64

/* Zeroed: nothing is known. Embed it; there is nothing to free. */
struct known {
	struct known_pair {
		atomic_uint state;
		dev_t a, b;
		atomic_uint flags;
	} pairs[KNOWN_PAIRS];
};

/* The flags noted for the pair (a, b), which is not the pair (b, a); 0 where none are. Any
 * thread. */
unsigned known_flags(struct known *known, dev_t a, dev_t b);

/* Adds flags to the pair. Where the table is full nothing is noted: the caller tries again next
 * time, which costs time only. Any thread. */
void known_note(struct known *known, dev_t a, dev_t b, unsigned flags);

#endif
