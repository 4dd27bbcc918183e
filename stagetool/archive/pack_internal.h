/*
 * Inside of packing.
 *
 *   pack.c        a packing as a whole: what waits to be written, in its order
 *   pack_walk.c   the order: directories before what is in them, names by their bytes
 *   pack_read.c   an entry is opened and read, by a worker
 *   pack_write.c  an entry is written
 */
#ifndef ARCHIVE_PACK_INTERNAL_H
#define ARCHIVE_PACK_INTERNAL_H

#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>

#include "archive/library.h"
#include "archive/pack.h"
#include "archive/sink.h"
#include "base/pool.h"
#include "tree/handle.h"
#include "tree/links.h"
#include "tree/meta.h"

/* Entries that are read ahead of the one that is written. */
#define PACK_AHEAD 256
/* Files up to this size are read whole by a worker. */
#define PACK_SMALL_SIZE (128u << 10)
/* What larger ones are read in. */
#define PACK_PIECE (1u << 20)

/* A name of a directory that was listed. */
struct pack_name {
	unsigned char type; /* DT_* */
	char name[];
};

/* A directory on the way down. Counted: entries that are being read hold it. */
struct pack_dir {
	struct pack_dir *parent; /* held */
	atomic_uint refs;
	struct handle handle;
	char *path; /* below the root; "" of the root */
	const char *name; /* in path */
	bool told; /* its own entry went before */
	struct pack_name **names;
	size_t count, at;
};

struct pack_entry {
	struct pool_task task;
	struct pack *pack;
	struct pack_dir *dir; /* held; of the root's own entry: the root */
	char *name; /* "" of the root */
	unsigned char type; /* as it was listed */
	bool done; /* under pack's lock */
	/* What the worker found: */
	int code; /* of what went wrong; 0: nothing */
	struct error error;
	struct error attribute; /* an attribute can not be read */
	struct stat st;
	char *target, *data; /* of a symlink; of a small file */
	void *values_memory;
	struct meta_value *values;
	size_t n_values;
};

struct pack {
	struct pack_options options;
	struct pool *pool;
	struct meta *meta;
	struct links *links;
	struct handle_cache cache;
	struct sink sink;
	struct archive *archive;
	struct archive_entry *entry;
	struct error sunk; /* what went wrong in sink */
	struct pack_dir *at; /* of the walk */
	struct pack_entry *ring[PACK_AHEAD];
	size_t first, next; /* in ring: the oldest, and where the next one goes; they only grow */
	char *piece;
	pthread_mutex_t lock;
	pthread_cond_t change; /* an entry is done */
	uint64_t lost_links, lost_values; /* that the format can not carry */
	locale_t locale, before;
	atomic_ullong files, directories, symlinks, others, bytes, failed, vanished, changed, special,
		attributes, dropped;
};

/* pack.c */
bool pack_stopped(const struct pack *pack);
/* Tells and counts. */
void pack_tell(struct pack *pack, const struct pack_entry *entry, enum copy_outcome outcome,
	const struct error *err);
void pack_tell_path(struct pack *pack, const char *path, enum copy_outcome outcome,
	const struct error *err);
/* The path of an entry below the root; caller frees. */
char *pack_entry_path(const struct pack_entry *entry);

/* pack_walk.c */
int pack_walk_begin(struct pack *pack, int rootfd, struct error *err);
/* The next entry, to be read; NULL: there is none, or memory ran out (err). */
struct pack_entry *pack_walk_next(struct pack *pack, struct error *err);
void pack_walk_end(struct pack *pack);
void pack_entry_free(struct pack_entry *entry);

/* pack_read.c: a task. */
void pack_read_run(struct pool_task *task, unsigned worker);
/* Opens a regular file or directory of entry. Negative errno without text. */
int pack_read_open(const struct pack_entry *entry, int flags);

/* pack_write.c: writes entry, which was read. 0: also where it was told to be missing. Negative: the archive is
 * spoiled. */
int pack_write_entry(struct pack *pack, struct pack_entry *entry, struct error *err);
/* Of libarchive. */
int pack_write_begin(struct pack *pack, struct error *err);
int pack_write_end(struct pack *pack, struct error *err);

#endif
