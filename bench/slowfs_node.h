#ifndef BENCH_SLOWFS_NODE_H
#define BENCH_SLOWFS_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel knows of slowfs: names below names. All of it may be called by any thread. */

extern int node_root; /* the directory that is passed through */

/* The node of name in parent, which the kernel then knows once more. Ends the process if there is
 * no memory. */
uint64_t node_get(uint64_t parent, const char *name);
/* The kernel has forgotten it that many times. */
void node_put(uint64_t ino, uint64_t count);

/* The path of ino, or of name (may be NULL) in it, relative to node_root: "." for that. Cut to
 * size. */
void node_path(uint64_t ino, const char *name, char *path, size_t size);

/* The name is gone: who asks for it next gets another node. */
void node_detach(uint64_t parent, const char *name);
/* The name has become another one; what had that is gone, or (exchange) has this one now. */
void node_move(uint64_t parent, const char *name, uint64_t to_parent, const char *to_name,
	bool exchange);

#endif
