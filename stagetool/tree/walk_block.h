/*
 * Inside of the walk: the entries of one buffer of a directory on their way to the callbacks.
 *
 * The worker that read them begins with them; whoever becomes idle is given half of what is left.
 */
#ifndef TREE_WALK_BLOCK_H
#define TREE_WALK_BLOCK_H

#include <stddef.h>

#include "tree/walk_dir.h"

/* What getdents64 fills a buffer with. */
struct walk_record {
	uint64_t d_ino;
	int64_t d_off;
	unsigned short d_reclen;
	unsigned char d_type;
	char d_name[];
};

struct walk_block;

/* Takes the entries with a name that are no directories out of a buffer (copies them), and holds
 * dir. *block is NULL where there are none. -ENOMEM. */
int walk_block_new(
	struct walk_dir *dir, const char *buffer, size_t size, struct walk_block **block);

/* Hands all of it over and takes it: it goes, and lets dir go, when the last of it is through. */
void walk_block_run(struct walk_block *block, unsigned worker);

#endif
