#include "stage/manifest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* So many reads may touch pages of a big map before they are given back. */
#define TRIM_EVERY 128
/* Records of a directory that are read at a time. */
#define CHUNK_RECORDS 256

/* 1: found and copied to *value (caller frees), or deleted (*value NULL); 0: not known here. */
static int read_buffered(const struct manifest_buffer *buffer, const struct manifest_key *key,
	void **value, size_t *size)
{
	const struct manifest_buffered *item = manifest_buffer_find(buffer, key);

	if (!item)
		return 0;
	*value = NULL;
	if (item->deleted)
		return 1;
	*value = malloc(item->value_size + 1);
	if (!*value)
		return -ENOMEM;
	memcpy(*value, buffer->arena + item->value_at, item->value_size);
	*size = item->value_size;
	return 1;
}

static int read_pending(
	struct manifest *manifest, const struct manifest_key *key, void **value, size_t *size)
{
	int rc;

	if (!atomic_load(&manifest->pending))
		return 0;
	pthread_mutex_lock(&manifest->buffer_lock);
	rc = read_buffered(manifest->active, key, value, size);
	if (rc == 0)
		rc = read_buffered(manifest->flushing, key, value, size);
	pthread_mutex_unlock(&manifest->buffer_lock);
	return rc;
}

static int copy_value(const MDB_val *found, void **value, size_t *size)
{
	*value = malloc(found->mv_size + 1);
	if (!*value)
		return ENOMEM;
	memcpy(*value, found->mv_data, found->mv_size);
	*size = found->mv_size;
	return 0;
}

static int read_database(struct manifest *manifest, const struct manifest_key *key, void **value,
	size_t *size, struct error *err)
{
	MDB_val name = { key->size, (void *)(uintptr_t)key->bytes }, found;
	MDB_txn *txn;
	int rc;

	pthread_rwlock_rdlock(&manifest->map_lock);
	manifest_guard_enter();
	rc = mdb_txn_begin(manifest->env, NULL, MDB_RDONLY, &txn);
	if (!rc) {
		rc = mdb_get(txn, manifest->dbi, &name, &found);
		if (!rc)
			rc = copy_value(&found, value, size);
		mdb_txn_abort(txn);
	}
	manifest_guard_leave();
	if (atomic_fetch_add(&manifest->reads, 1) % TRIM_EVERY == TRIM_EVERY - 1)
		manifest_map_trim(manifest);
	pthread_rwlock_unlock(&manifest->map_lock);
	if (rc == MDB_NOTFOUND)
		return -ENOENT;
	return rc ? manifest_error(err, rc, "reading a record") : 0;
}

int manifest_value(struct manifest *manifest, const struct manifest_key *key, void **value,
	size_t *size, struct error *err)
{
	int rc = read_pending(manifest, key, value, size);

	if (rc < 0)
		return error_sys(err, rc, "manifest");
	if (rc == 0)
		return read_database(manifest, key, value, size, err);
	return *value ? 0 : -ENOENT;
}

int manifest_get(struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name,
	struct manifest_entry *entry, struct error *err)
{
	struct manifest_key key;
	autofree void *value = NULL;
	size_t size = 0;
	int rc = manifest_key_make(tree, dir, name, strlen(name), &key, err);

	if (rc == 0)
		rc = manifest_value(manifest, &key, &value, &size, err);
	return rc < 0 ? rc : manifest_record_unpack(value, size, entry, err);
}

/* Some records of a directory, copied out of the database. */
struct chunk {
	struct manifest_key last; /* the next chunk begins after it */
	bool more;
	unsigned count;
	struct chunk_record {
		size_t name_size, size;
		void *value;
		char name[MANIFEST_NAME_MAX + 1];
	} records[CHUNK_RECORDS];
};

static void chunk_clear(struct chunk *chunk)
{
	for (unsigned i = 0; i < chunk->count; i++)
		free(chunk->records[i].value);
	chunk->count = 0;
}

static int chunk_add(struct chunk *chunk, const MDB_val *key, const MDB_val *value)
{
	struct chunk_record *record = &chunk->records[chunk->count];
	int rc = copy_value(value, &record->value, &record->size);

	if (rc)
		return rc;
	record->name_size = key->mv_size - MANIFEST_KEY_HEAD;
	memcpy(record->name, (char *)key->mv_data + MANIFEST_KEY_HEAD, record->name_size);
	record->name[record->name_size] = '\0';
	memcpy(chunk->last.bytes, key->mv_data, key->mv_size);
	chunk->last.size = key->mv_size;
	chunk->count++;
	return 0;
}

static int chunk_read(MDB_cursor *cursor, struct chunk *chunk)
{
	struct manifest_key start = chunk->last;
	MDB_val key = { start.size, start.bytes }, value;
	int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);

	if (!rc && key.mv_size == start.size && memcmp(key.mv_data, start.bytes, start.size) == 0)
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	while (!rc && chunk->count < CHUNK_RECORDS) {
		if (key.mv_size < MANIFEST_KEY_HEAD || key.mv_size > sizeof(start.bytes))
			return MDB_CORRUPTED;
		if (memcmp(key.mv_data, start.bytes, MANIFEST_KEY_HEAD) != 0)
			return MDB_NOTFOUND;
		rc = chunk_add(chunk, &key, &value);
		if (!rc)
			rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	return rc;
}

static int chunk_next(struct manifest *manifest, struct chunk *chunk, struct error *err)
{
	MDB_cursor *cursor;
	MDB_txn *txn;
	int rc;

	pthread_rwlock_rdlock(&manifest->map_lock);
	manifest_guard_enter();
	rc = mdb_txn_begin(manifest->env, NULL, MDB_RDONLY, &txn);
	if (!rc) {
		rc = mdb_cursor_open(txn, manifest->dbi, &cursor);
		if (!rc) {
			rc = chunk_read(cursor, chunk);
			mdb_cursor_close(cursor);
		}
		mdb_txn_abort(txn);
	}
	manifest_guard_leave();
	manifest_map_trim(manifest);
	pthread_rwlock_unlock(&manifest->map_lock);
	chunk->more = rc == 0;
	return rc && rc != MDB_NOTFOUND ? manifest_error(err, rc, "listing records") : 0;
}

int manifest_each_value(struct manifest *manifest, uint32_t tree, uint64_t dir,
	int (*each)(void *ctx, const char *name, size_t name_size, const void *value, size_t size,
		struct error *err),
	void *ctx, struct error *err)
{
	autofree struct chunk *chunk = calloc(1, sizeof(*chunk));
	int rc;

	if (!chunk)
		return error_sys(err, -ENOMEM, "manifest");
	rc = manifest_key_make(tree, dir, "", 0, &chunk->last, err);
	if (rc == 0)
		rc = manifest_flush(manifest, err);
	do {
		if (rc == 0)
			rc = chunk_next(manifest, chunk, err);
		for (unsigned i = 0; i < chunk->count && rc == 0; i++) {
			struct chunk_record *record = &chunk->records[i];

			rc = each(ctx, record->name, record->name_size, record->value, record->size,
				err);
		}
		chunk_clear(chunk);
	} while (rc == 0 && chunk->more);
	return rc;
}

struct each_entry {
	int (*each)(
		void *ctx, const char *name, const struct manifest_entry *entry, struct error *err);
	void *ctx;
};

static int each_record(void *ctx, const char *name, size_t name_size, const void *value,
	size_t size, struct error *err)
{
	const struct each_entry *call = ctx;
	struct manifest_entry entry;
	int rc = manifest_record_unpack(value, size, &entry, err);

	if (rc == 0 && strlen(name) != name_size)
		rc = error_set(err, -EBADMSG, "manifest: a name with a NUL byte in it");
	return rc < 0 ? rc : call->each(call->ctx, name, &entry, err);
}

int manifest_each(struct manifest *manifest, uint32_t tree, uint64_t dir,
	int (*each)(
		void *ctx, const char *name, const struct manifest_entry *entry, struct error *err),
	void *ctx, struct error *err)
{
	struct each_entry call = { each, ctx };

	return manifest_each_value(manifest, tree, dir, each_record, &call, err);
}
