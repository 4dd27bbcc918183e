#include "stage/manifest_private.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

/* So many bytes of mapped files may count as this process's memory. A fault maps the pages around
 * it, too: what is mapped is more than what was touched. */
#define MAPPED_MOST (24UL * 1024 * 1024)

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
	if (manifest->map || manifest->map_used < MAPPED_MOST ||
		mdb_txn_begin(manifest->env, NULL, MDB_RDONLY, &txn))
		return;
	find_mapping(manifest, (uintptr_t)some_value(manifest, txn));
	mdb_txn_abort(txn);
}

/* Bytes of files (and shared memory) that are mapped and present. */
static size_t mapped_bytes(void)
{
	autoclose int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	unsigned long pages = 0;

	if (got <= 0)
		return SIZE_MAX;
	text[got] = '\0';
	if (sscanf(text, "%*u %*u %lu", &pages) != 1)
		return SIZE_MAX;
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

void manifest_map_trim(const struct manifest *manifest)
{
	if (manifest->map && manifest->map_used >= MAPPED_MOST && mapped_bytes() > MAPPED_MOST)
		madvise(manifest->map, manifest->map_length, MADV_DONTNEED);
}
