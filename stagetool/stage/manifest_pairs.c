#include "stage/manifest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"

/* A pair is stored twice: its roots under its id, and its id under a hash of its roots (a key has
 * no room for two paths). Where two pairs have one hash, the next seed is tried. */
#define PAIR_VERSION 1
#define PAIR_HEAD 5

static int ids_key(const char *local, const char *shared, uint64_t seed, struct manifest_key *key,
	struct error *err)
{
	XXH3_state_t *state = XXH3_createState();
	XXH128_canonical_t hash;

	if (!state)
		return error_sys(err, -ENOMEM, "manifest");
	XXH3_128bits_reset_withSeed(state, seed);
	XXH3_128bits_update(state, local, strlen(local) + 1);
	XXH3_128bits_update(state, shared, strlen(shared));
	XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(state));
	XXH3_freeState(state);
	return manifest_key_make(
		MANIFEST_META, META_PAIR_IDS, hash.digest, sizeof(hash.digest), key, err);
}

static void roots_key(uint32_t id, struct manifest_key *key)
{
	unsigned char name[4];

	manifest_pack(name, id, 4);
	manifest_key_make(MANIFEST_META, META_PAIR_ROOTS, name, sizeof(name), key, NULL);
}

int manifest_pair_roots(
	struct manifest *manifest, uint32_t id, char **local, char **shared, struct error *err)
{
	autofree unsigned char *roots = NULL;
	autofree char *first = NULL, *second = NULL;
	void *value = NULL;
	struct manifest_key key;
	size_t size, local_size;
	int rc;

	roots_key(id, &key);
	rc = manifest_value(manifest, &key, &value, &size, err);
	roots = value;
	if (rc < 0)
		return rc == -ENOENT ? error_set(err, rc, "manifest: there is no pair %u", id) : rc;
	local_size = size < PAIR_HEAD ? 0 : manifest_unpack(roots + 1, 4);
	if (size < PAIR_HEAD || roots[0] != PAIR_VERSION || local_size > size - PAIR_HEAD)
		return error_set(err, -EBADMSG, "manifest: pair %u is damaged", id);
	first = strndup((char *)roots + PAIR_HEAD, local_size);
	second = strndup((char *)roots + PAIR_HEAD + local_size, size - PAIR_HEAD - local_size);
	if (!first || !second)
		return error_sys(err, -ENOMEM, "manifest");
	*local = take_ptr(first);
	*shared = take_ptr(second);
	return 0;
}

static int put_roots(struct manifest *manifest, uint32_t id, const char *local, const char *shared,
	struct error *err)
{
	size_t local_size = strlen(local), shared_size = strlen(shared);
	size_t size = PAIR_HEAD + local_size + shared_size;
	autofree unsigned char *roots = malloc(size);
	struct manifest_key key;

	if (!roots)
		return error_sys(err, -ENOMEM, "manifest");
	roots[0] = PAIR_VERSION;
	manifest_pack(roots + 1, local_size, 4);
	memcpy(roots + PAIR_HEAD, local, local_size);
	memcpy(roots + PAIR_HEAD + local_size, shared, shared_size);
	roots_key(id, &key);
	return manifest_put_value(manifest, &key, roots, size, err);
}

static int pair_new(struct manifest *manifest, const struct manifest_key *key, const char *local,
	const char *shared, uint32_t *id, struct error *err)
{
	unsigned char packed[4];
	int rc;

	*id = atomic_load(&manifest->pairs) + 1;
	rc = put_roots(manifest, *id, local, shared, err);
	if (rc < 0)
		return rc;
	atomic_store(&manifest->pairs, *id);
	manifest_pack(packed, *id, 4);
	return manifest_put_value(manifest, key, packed, sizeof(packed), err);
}

/* 1: the id stored under key is that of these roots; 0: of others. */
static int pair_matches(struct manifest *manifest, uint32_t id, const char *local,
	const char *shared, struct error *err)
{
	autofree char *its_local = NULL, *its_shared = NULL;
	int rc = manifest_pair_roots(manifest, id, &its_local, &its_shared, err);

	if (rc < 0 || !its_local || !its_shared)
		return rc;
	return strcmp(local, its_local) == 0 && strcmp(shared, its_shared) == 0;
}

static int pair_find(struct manifest *manifest, const char *local, const char *shared, bool create,
	uint32_t *id, struct error *err)
{
	for (uint64_t seed = 0;; seed++) {
		autofree unsigned char *stored = NULL;
		void *value = NULL;
		struct manifest_key key;
		size_t size;
		int rc = ids_key(local, shared, seed, &key, err);

		if (rc == 0)
			rc = manifest_value(manifest, &key, &value, &size, err);
		stored = value;
		if (rc == -ENOENT)
			return create ? pair_new(manifest, &key, local, shared, id, err) : 0;
		if (rc == 0 && size != 4)
			rc = error_set(err, -EBADMSG, "manifest: a pair's id of %zu bytes", size);
		if (rc < 0)
			return rc;
		*id = (uint32_t)manifest_unpack(stored, 4);
		rc = pair_matches(manifest, *id, local, shared, err);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		*id = 0;
	}
}

int manifest_pair(struct manifest *manifest, const char *local, const char *shared, bool create,
	uint32_t *id, struct error *err)
{
	int rc;

	*id = 0;
	pthread_mutex_lock(&manifest->pair_lock);
	rc = pair_find(manifest, local, shared, create, id, err);
	pthread_mutex_unlock(&manifest->pair_lock);
	return rc;
}

uint32_t manifest_pair_count(struct manifest *manifest)
{
	return atomic_load(&manifest->pairs);
}
