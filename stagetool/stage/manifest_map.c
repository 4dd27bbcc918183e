#include "stage/manifest_private.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/cleanup.h"

/* Below this the whole map may stay in memory. */
#define TRIM_FROM (8UL * 1024 * 1024)

/* A pointer into the map: LMDB itself does not say where it is. */
static const void *some_value(struct manifest *manifest, MDB_txn *txn)
{
	struct manifest_key key;
	MDB_val name = { 0, key.bytes }, value;

	manifest_key_make(MANIFEST_META, META_STATE, "state", 5, &key, NULL);
	name.mv_size = key.size;
	return mdb_get(txn, manifest->dbi, &name, &value) ? NULL : value.mv_data;
}

static void find_mapping(struct manifest *manifest, uintptr_t inside)
{
	autofile FILE *maps = fopen("/proc/self/maps", "re");
	autofree char *line = NULL;
	size_t room = 0;

	while (maps && getline(&line, &room, maps) > 0) {
		char *after;
		uintptr_t start = strtoull(line, &after, 16);
		uintptr_t end = *after == '-' ? strtoull(after + 1, NULL, 16) : 0;

		if (start <= inside && inside < end) {
			manifest->map =
				(void *)start; /* NOLINT: an address is what the kernel tells */
			manifest->map_length = end - start;
			return;
		}
	}
}

void manifest_map_find(struct manifest *manifest)
{
	MDB_envinfo info;
	MDB_stat stat;
	MDB_txn *txn;

	if (mdb_env_info(manifest->env, &info) || mdb_env_stat(manifest->env, &stat))
		return;
	atomic_store(&manifest->map_used, (info.me_last_pgno + 1) * stat.ms_psize);
	if (manifest->map || manifest->map_used < TRIM_FROM ||
		mdb_txn_begin(manifest->env, NULL, MDB_RDONLY, &txn))
		return;
	find_mapping(manifest, (uintptr_t)some_value(manifest, txn));
	mdb_txn_abort(txn);
}

void manifest_map_trim(const struct manifest *manifest)
{
	if (manifest->map && manifest->map_used >= TRIM_FROM)
		madvise(manifest->map, manifest->map_length, MADV_DONTNEED);
}
