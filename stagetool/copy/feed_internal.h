/*
 * Inside of feeding: what feed*.c share.
 *
 *   feed.c        a feed as a whole; what waits for what
 *   feed_dir.c    the directories that were met
 *   feed_entry.c  entries that are no regular files
 *   feed_item.c   entries on their way to the workers, several together
 *   feed_big.c    large files, in pieces
 *   feed_buffer.c what both travel in
 *   feed_link.c   hard links
 *   feed_group.c  the names of linked files
 *   feed_set.c    paths by their hashes
 *
 * Order. Whatever is on its way to the workers has the slot of its path busy. An entry whose path came before
 * waits until nothing is on its way; a link waits for the slot of what it is a link to, a directory for that of
 * what had its name. Two paths in one slot cost a wait and nothing else.
 */
#ifndef COPY_FEED_INTERNAL_H
#define COPY_FEED_INTERNAL_H

#include <pthread.h>

#include "copy/feed.h"
#include "copy/file.h"
#include "copy/internal.h"

#define FEED_SLOTS 4096

/* What one task carries: small entries and their bytes, or a piece of a large file. */
#define FEED_BUFFER_SIZE (512u << 10)
#define FEED_BATCH 32
/* Files up to this size go whole. */
#define FEED_SMALL_SIZE (128u << 10)

/* Paths, by hash. Zeroed: empty. */
struct feed_set {
	uint64_t *hashes;
	size_t count, room;
};
bool feed_set_has(const struct feed_set *set, uint64_t hash);
/* -ENOMEM. */
int feed_set_add(struct feed_set *set, uint64_t hash);

#define FEED_HASH_ROOT 0xcbf29ce484222325ull
/* The hash of an entry called name in a directory that has hash. */
uint64_t feed_hash(uint64_t hash, const char *name, size_t length);

/* A directory that was met. */
struct feed_dir {
	struct feed_dir *next; /* in its bucket */
	struct feed_dir *parent;
	struct copy_dir *dir;
	uint64_t hash;
	bool left; /* the caller does not want it, nor what is in it */
	struct meta_source source; /* once its own entry came */
	struct meta_value *values; /* of source */
};

enum feed_kind { FEED_FILE, FEED_OTHER, FEED_DIRECTORY, FEED_LINK };
struct feed_big;

/* Bytes of a small file, in its buffer. */
struct feed_extent {
	struct feed_extent *next;
	uint64_t offset;
	size_t size;
	char *data;
};

/* An entry in a buffer. */
struct feed_item {
	struct feed_item *next;
	enum feed_kind kind;
	bool again;
	uint64_t hash;
	struct copy_entry entry;
	const struct meta_value *values;
	size_t n_values;
	const char *target; /* of a symlink; of a link: oldname */
	struct copy_dir *olddir;
	struct feed_extent *extents, *last;
	struct error *failed; /* of a file whose bytes did not all come */
};

struct feed_buffer {
	struct pool_task task;
	struct copy_feed *feed;
	struct feed_buffer *next;
	size_t used;
	struct feed_item *first, *last;
	unsigned count;
	struct feed_more *more; /* what did not fit */
	struct feed_big *big; /* of a piece: */
	uint64_t offset;
	char data[] __attribute__((aligned(16)));
};

struct copy_feed {
	struct copy *copy;
	struct copy_hooks hooks; /* the caller's */
	mode_t umask;
	bool own_umask; /* it is to be put back */
	/* The feeder's: */
	struct feed_set seen;
	struct feed_dir **dirs, **buckets; /* in the order in which they came; by hash */
	size_t n_dirs, dirs_room, n_buckets;
	struct feed_buffer *batch; /* that is being filled; NULL: none */
	struct feed_item *small; /* in batch, its bytes are coming; NULL: none */
	struct feed_big *big; /* its bytes are coming; NULL: none */
	struct feed_buffer *piece; /* of big, being filled */
	/* Shared: */
	atomic_uint busy[FEED_SLOTS];
	atomic_uint in_flight; /* entries */
	atomic_bool waiting; /* the feeder waits for busy or in_flight */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t change;
	struct feed_buffer *spare;
	unsigned n_buffers;
	struct feed_set failed; /* paths under which nothing of this feed is */
	struct feed_group **groups;
	struct feed_name *names;
};

/* Where an entry goes. */
struct feed_place {
	struct feed_dir *dir;
	char *name; /* "" of the root; the caller's to free */
	uint64_t hash;
	bool again; /* its path came before */
};

/* feed.c */
/* Finds the place of path: it is clean, its directory was met or is now, nothing else with its name is on its
 * way. is_dir: it is a directory's own. Negative errno: err says why it is refused. */
int feed_place(struct copy_feed *feed, const char *path, bool is_dir, struct feed_place *place,
	struct error *err);
void feed_place_free(struct feed_place *place);
/* What is called name in dir, which was opened; always: also if this feed has made dir. Any thread. */
bool feed_look(struct copy_dir *dir, const char *name, bool always, struct stat *st);
void feed_wait_slot(struct copy_feed *feed, uint64_t hash);
void feed_drain(struct copy_feed *feed);
void feed_enter(struct copy_feed *feed, uint64_t hash);
void feed_leave(struct copy_feed *feed, uint64_t hash);
/* Nothing of this feed is under that path. Any thread. */
void feed_note_failed(struct copy_feed *feed, uint64_t hash);
/* Whether the caller wants entry; it is told if not. Fills entry->expect. old: of a link, what it is to be a
 * link to; else NULL. */
bool feed_wanted(struct copy_feed *feed, struct copy_entry *entry, uint64_t hash, bool again,
	const struct stat *old, unsigned worker);

/* feed_dir.c */
/* The directory name in parent (NULL: the root), made known where it was not: with what fed says (NULL: only
 * something in it came so far). NULL on ENOMEM. */
struct feed_dir *feed_dir_get(struct copy_feed *feed, struct feed_dir *parent, const char *name,
	size_t length, const struct copy_fed *fed);
/* The one that was met, else NULL. */
struct feed_dir *feed_dir_find(const struct copy_feed *feed, const struct feed_dir *parent,
	const char *name, size_t length);
/* The entry of one that was met came (again). -ENOMEM. */
int feed_dir_describe(struct copy_feed *feed, struct feed_dir *dir, const struct copy_fed *fed);
void feed_dirs_finish(struct copy_feed *feed);
void feed_dirs_free(struct copy_feed *feed);

/* feed_item.c */
/* A new entry in the batch. NULL on ENOMEM. */
struct feed_item *feed_item_new(struct copy_feed *feed, enum feed_kind kind,
	const struct feed_place *place, const struct copy_fed *fed);
void feed_item_link(struct copy_feed *feed, struct feed_item *item, struct copy_dir *dir,
	const char *name);
/* The entry that was begun is complete: off it goes, if enough are together. */
void feed_item_done(struct copy_feed *feed);
/* Sends what is waiting to go. */
void feed_flush(struct copy_feed *feed);
void feed_entry_init(struct copy_feed *feed, struct copy_entry *entry,
	const struct feed_place *place, const struct copy_fed *fed, const char *name);

/* feed_big.c: as copy_feed_file, _data and _end, of a large file. */
bool feed_big_begin(struct copy_feed *feed, const struct feed_place *place,
	const struct copy_fed *fed);
void feed_big_data(struct copy_feed *feed, const char *data, size_t size, uint64_t offset);
void feed_big_end(struct copy_feed *feed, int64_t size, const struct error *failed);

/* feed_buffer.c */
/* Waits until one can be had. NULL on ENOMEM. */
struct feed_buffer *feed_buffer_new(struct copy_feed *feed);
/* Any thread. */
void feed_buffer_put_back(struct feed_buffer *buffer);
void feed_buffers_free(struct copy_feed *feed);
/* Memory that lives as long as what is in the buffer. NULL on ENOMEM. */
void *feed_buffer_alloc(struct feed_buffer *buffer, size_t size);
char *feed_buffer_string(struct feed_buffer *buffer, const char *text);
/* Copies values into memory, of as many bytes as feed_values_size says. */
size_t feed_values_size(const struct meta_value *values, size_t n);
struct meta_value *feed_values_put(void *memory, const struct meta_value *values, size_t n);
/* Into memory of their own. Caller frees; NULL on ENOMEM. */
struct meta_value *feed_copy_values(const struct meta_value *values, size_t n);

/* feed_link.c */
/* By a worker. */
void feed_link_run(struct copy_feed *feed, struct copy_entry *entry, uint64_t hash, bool again,
	struct copy_dir *olddir, const char *oldname, unsigned worker);

/* feed_group.c */
/* A name of a linked file. */
struct feed_name {
	struct feed_name *next; /* of the same file */
	struct feed_name *older; /* of all files */
	struct copy_dir *dir;
	char name[];
};
/* entry, which is dst now, was made a link to oldname in olddir. Under feed's lock. -ENOMEM. */
int feed_group_add(struct copy_feed *feed, const struct copy_entry *entry, const struct stat *dst,
	struct copy_dir *olddir, const char *oldname);
/* All names of the file that is at name in dir; NULL: it is no linked one. Borrowed. While nothing is on its
 * way. */
const struct feed_name *feed_group_names(const struct copy_feed *feed, struct copy_dir *dir,
	const char *name);
/* Tells what linked files are in the end. */
void feed_groups_finish(struct copy_feed *feed);
void feed_groups_free(struct copy_feed *feed);

#endif
