/*
 * What the files of the manifest share.
 */
#ifndef STAGE_MANIFEST_PRIVATE_H
#define STAGE_MANIFEST_PRIVATE_H

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "stage/manifest.h"
#include "stage/manifest_guard.h"

/* Keys: big-endian tree and directory, then the name as it is. */
#define MANIFEST_KEY_HEAD 12
#define MANIFEST_NAME_MAX 255
struct manifest_key {
	size_t size;
	unsigned char bytes[MANIFEST_KEY_HEAD + MANIFEST_NAME_MAX];
};

/* The tree of what is no entry, and its directories. */
#define MANIFEST_META UINT32_MAX
enum manifest_meta_dir { META_STATE, META_PAIR_ROOTS, META_PAIR_IDS };

#define MANIFEST_RECORD_SIZE 113

/* -ENAMETOOLONG for a name that no filesystem of ours has. */
int manifest_key_make(uint32_t tree, uint64_t dir, const void *name, size_t name_size,
	struct manifest_key *key, struct error *err);
void manifest_record_pack(
	const struct manifest_entry *entry, unsigned char record[MANIFEST_RECORD_SIZE]);
/* -EBADMSG for what was not made by manifest_record_pack. */
int manifest_record_unpack(
	const void *record, size_t size, struct manifest_entry *entry, struct error *err);
void manifest_pack(unsigned char *at, uint64_t value, unsigned bytes);
uint64_t manifest_unpack(const unsigned char *at, unsigned bytes);

/* Puts that are not yet in the database: bytes in an arena, found through a hash table. */
#define MANIFEST_BATCH 1024
#define MANIFEST_BUFFER_ITEMS (MANIFEST_BATCH + 1024)
#define MANIFEST_BUFFER_SLOTS 8192
struct manifest_buffered {
	size_t key_at, value_at;
	size_t key_size, value_size;
	bool deleted;
};
struct manifest_buffer {
	unsigned char *arena;
	size_t used, room;
	unsigned count;
	struct manifest_buffered items[MANIFEST_BUFFER_ITEMS];
	uint16_t slots[MANIFEST_BUFFER_SLOTS]; /* index in items + 1; 0: free */
};

/* Adds or replaces; value NULL: deleted. The buffer has room for an item (count <
 * MANIFEST_BUFFER_ITEMS). -ENOMEM. */
int manifest_buffer_put(struct manifest_buffer *buffer, const struct manifest_key *key,
	const void *value, size_t value_size);
/* NULL: nothing is known of key. */
const struct manifest_buffered *manifest_buffer_find(
	const struct manifest_buffer *buffer, const struct manifest_key *key);
/* Indexes of items in the order of their keys, which is the database's. */
void manifest_buffer_sort(
	const struct manifest_buffer *buffer, uint16_t order[MANIFEST_BUFFER_ITEMS]);
void manifest_buffer_clear(struct manifest_buffer *buffer);

struct manifest {
	MDB_env *env;
	MDB_dbi dbi;
	int dirfd, lockfd;
	bool writer, bulk;
	bool marked; /* a run of this boot that died left its marker */
	bool follows_death; /* marked when it was opened */
	uint32_t run;
	atomic_uint_fast64_t next_dir;
	atomic_uint pairs;

	pthread_mutex_t buffer_lock; /* active, flushing, failed */
	struct manifest_buffer *active, *flushing;
	atomic_uint pending; /* items in both; 0: nobody needs the lock to read */
	int failed;          /* what a flush failed with: no put succeeds after it */
	char failed_text[256];

	pthread_mutex_t flush_lock; /* one flush at a time */
	pthread_mutex_t pair_lock;
	/* LMDB's own locks are off: one process writes (flock), and no read spans a commit or a
	 * change of the map's size, which take this to write. */
	pthread_rwlock_t map_lock;
	void *map; /* where the database is mapped; NULL: not known */
	size_t map_length;
	atomic_size_t map_used; /* bytes of the file that hold pages */
	atomic_uint reads;
};

int manifest_error(struct error *err, int code, const char *what);

/* Generic access by key. manifest_value: caller frees *value; -ENOENT, err untouched, for none. */
int manifest_put_value(struct manifest *manifest, const struct manifest_key *key, const void *value,
	size_t size, struct error *err);
int manifest_value(struct manifest *manifest, const struct manifest_key *key, void **value,
	size_t *size, struct error *err);

/* The records of one directory of any tree, raw, in chunks that are read before they are handed on.
 */
int manifest_each_value(struct manifest *manifest, uint32_t tree, uint64_t dir,
	int (*each)(void *ctx, const char *name, size_t name_size, const void *value, size_t size,
		struct error *err),
	void *ctx, struct error *err);

/* Writes all that is buffered to the database. */
int manifest_flush(struct manifest *manifest, struct error *err);

/* Finds where the database is mapped; for after an open or a change of its size. */
void manifest_map_find(struct manifest *manifest);
/* Gives back the pages of the map that this process has touched: they would count as its memory. */
void manifest_map_trim(const struct manifest *manifest);

#endif
