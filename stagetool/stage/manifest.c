#include "stage/manifest_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Bytes of an arena from which it is written although it holds few items. */
#define ARENA_FULL (1024 * 1024)
/* So many puts or reads may touch pages of a big map before they are given back. */
#define TRIM_EVERY 64

int manifest_error(struct error *err, int code, const char *what)
{
	switch (code) {
	case MDB_PAGE_NOTFOUND:
	case MDB_CORRUPTED:
	case MDB_PANIC:
	case MDB_VERSION_MISMATCH:
	case MDB_INVALID:
	case MDB_INCOMPATIBLE:
	case MDB_BAD_TXN:
		return error_set(
			err, -EBADMSG, "manifest: %s: damaged (%s)", what, mdb_strerror(code));
	}
	if (code > 0)
		return error_sys(err, -code, "manifest: %s", what);
	return error_set(err, -EIO, "manifest: %s: %s", what, mdb_strerror(code));
}

static int write_state(struct manifest *manifest, MDB_txn *txn)
{
	struct manifest_key key;
	unsigned char state[12];
	MDB_val name = { 0, key.bytes }, value = { sizeof(state), state };

	manifest_key_make(MANIFEST_META, META_STATE, "state", 5, &key, NULL);
	name.mv_size = key.size;
	manifest_pack(state, atomic_load(&manifest->next_dir), 8);
	manifest_pack(state + 8, manifest->run, 4);
	return mdb_put(txn, manifest->dbi, &name, &value, 0);
}

static int write_items(struct manifest *manifest, const struct manifest_buffer *buffer,
	const uint16_t *order, MDB_txn *txn)
{
	for (unsigned i = 0; i < buffer->count; i++) {
		const struct manifest_buffered *item = &buffer->items[order[i]];
		MDB_val key = { item->key_size, buffer->arena + item->key_at };
		MDB_val value = { item->value_size, buffer->arena + item->value_at };
		int rc = item->deleted ? mdb_del(txn, manifest->dbi, &key, NULL)
				       : mdb_put(txn, manifest->dbi, &key, &value, 0);

		if (rc && rc != MDB_NOTFOUND)
			return rc;
		if (i % TRIM_EVERY == TRIM_EVERY - 1)
			manifest_map_trim(manifest);
	}
	return write_state(manifest, txn);
}

/* Returns an LMDB code. The transaction is gone afterwards. */
static int write_transaction(
	struct manifest *manifest, const struct manifest_buffer *buffer, const uint16_t *order)
{
	MDB_txn *txn;
	int rc = mdb_txn_begin(manifest->env, NULL, 0, &txn);

	if (rc)
		return rc;
	rc = write_items(manifest, buffer, order, txn);
	if (rc) {
		mdb_txn_abort(txn);
		return rc;
	}
	pthread_rwlock_wrlock(&manifest->map_lock);
	rc = mdb_txn_commit(txn);
	pthread_rwlock_unlock(&manifest->map_lock);
	return rc;
}

static int write_once(
	struct manifest *manifest, const struct manifest_buffer *buffer, const uint16_t *order)
{
	int rc;

	manifest_guard_enter();
	rc = write_transaction(manifest, buffer, order);
	manifest_guard_leave();
	return rc;
}

static int grow(struct manifest *manifest)
{
	MDB_envinfo info;
	int rc;

	pthread_rwlock_wrlock(&manifest->map_lock);
	rc = mdb_env_info(manifest->env, &info);
	if (!rc)
		rc = mdb_env_set_mapsize(manifest->env, info.me_mapsize * 2);
	manifest->map = NULL;
	manifest_map_find(manifest);
	pthread_rwlock_unlock(&manifest->map_lock);
	return rc;
}

static int write_batch(
	struct manifest *manifest, const struct manifest_buffer *buffer, struct error *err)
{
	uint16_t order[MANIFEST_BUFFER_ITEMS];
	int rc;

	manifest_buffer_sort(buffer, order);
	while ((rc = write_once(manifest, buffer, order)) == MDB_MAP_FULL) {
		rc = grow(manifest);
		if (rc)
			break;
	}
	if (rc)
		return manifest_error(err, rc, "writing a batch");
	pthread_rwlock_wrlock(&manifest->map_lock);
	manifest_map_find(manifest);
	pthread_rwlock_unlock(&manifest->map_lock);
	manifest_map_trim(manifest);
	return 0;
}

static int failed_before(const struct manifest *manifest, struct error *err)
{
	return manifest->failed ? error_set(err, manifest->failed, "%s", manifest->failed_text) : 0;
}

static bool is_full(const struct manifest_buffer *buffer)
{
	return buffer->count >= MANIFEST_BATCH || buffer->used >= ARENA_FULL;
}

static void swap_buffers(struct manifest *manifest)
{
	struct manifest_buffer *active = manifest->active;

	manifest->active = manifest->flushing;
	manifest->flushing = active;
}

/* A batch that could not be written is kept, and tried again by the next flush that is asked for: a
 * disk that was full may have room by then. */
static void batch_done(struct manifest *manifest, int rc, const struct error *err)
{
	pthread_mutex_lock(&manifest->buffer_lock);
	manifest->failed = rc;
	if (rc < 0) {
		snprintf(manifest->failed_text, sizeof(manifest->failed_text), "%.255s", err->text);
	} else {
		atomic_fetch_sub(&manifest->pending, manifest->flushing->count);
		manifest_buffer_clear(manifest->flushing);
	}
	pthread_mutex_unlock(&manifest->buffer_lock);
}

/* With the lock of flushes held: writes the batch that failed before, or else what is active. 1:
 * done; 0: there was nothing to do. */
static int flush_next(struct manifest *manifest, bool only_full, struct error *err)
{
	struct error failed = ERROR_INIT;
	bool work;
	int rc;

	pthread_mutex_lock(&manifest->buffer_lock);
	rc = only_full ? failed_before(manifest, err) : 0;
	work = manifest->flushing->count > 0;
	if (!work && (only_full ? is_full(manifest->active) : manifest->active->count > 0)) {
		swap_buffers(manifest);
		work = true;
	}
	pthread_mutex_unlock(&manifest->buffer_lock);
	if (rc < 0 || !work)
		return rc;
	rc = write_batch(manifest, manifest->flushing, &failed);
	batch_done(manifest, rc, &failed);
	return rc < 0 ? error_set(err, rc, "%s", failed.text) : 1;
}

static int flush_if(struct manifest *manifest, bool only_full, struct error *err)
{
	int rc;

	pthread_mutex_lock(&manifest->flush_lock);
	do
		rc = flush_next(manifest, only_full, err);
	while (rc == 1);
	pthread_mutex_unlock(&manifest->flush_lock);
	return rc;
}

int manifest_flush(struct manifest *manifest, struct error *err)
{
	return manifest->writer ? flush_if(manifest, false, err) : 0;
}

static int put_buffered(struct manifest *manifest, const struct manifest_key *key,
	const void *value, size_t size, bool *full, struct error *err)
{
	unsigned before = manifest->active->count;
	int rc = failed_before(manifest, err);

	if (rc < 0)
		return rc;
	rc = manifest_buffer_put(manifest->active, key, value, size);
	if (rc < 0)
		return error_sys(err, rc, "manifest");
	atomic_fetch_add(&manifest->pending, manifest->active->count - before);
	*full = is_full(manifest->active);
	return 0;
}

int manifest_put_value(struct manifest *manifest, const struct manifest_key *key, const void *value,
	size_t size, struct error *err)
{
	bool full = false;
	int rc;

	if (!manifest->writer)
		return error_set(err, -EROFS, "manifest: opened to read only");
	pthread_mutex_lock(&manifest->buffer_lock);
	while (manifest->active->count == MANIFEST_BUFFER_ITEMS) {
		pthread_mutex_unlock(&manifest->buffer_lock);
		rc = flush_if(manifest, true, err);
		if (rc < 0)
			return rc;
		pthread_mutex_lock(&manifest->buffer_lock);
	}
	rc = put_buffered(manifest, key, value, size, &full, err);
	pthread_mutex_unlock(&manifest->buffer_lock);
	return rc == 0 && full ? flush_if(manifest, true, err) : rc;
}

int manifest_put(struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name,
	const struct manifest_entry *entry, struct error *err)
{
	unsigned char record[MANIFEST_RECORD_SIZE];
	struct manifest_key key;
	int rc = manifest_key_make(tree, dir, name, strlen(name), &key, err);

	if (rc < 0)
		return rc;
	manifest_record_pack(entry, record);
	return manifest_put_value(manifest, &key, record, sizeof(record), err);
}

int manifest_delete(
	struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name, struct error *err)
{
	struct manifest_key key;
	int rc = manifest_key_make(tree, dir, name, strlen(name), &key, err);

	return rc < 0 ? rc : manifest_put_value(manifest, &key, NULL, 0, err);
}
