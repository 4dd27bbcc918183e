#include "stage/manifest_private.h"

#include <errno.h>
#include <string.h>

#define RECORD_VERSION 1

void manifest_pack(unsigned char *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

uint64_t manifest_unpack(const unsigned char *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static void pack_big(unsigned char *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (unsigned char)(value >> (8 * (bytes - 1 - i)));
}

int manifest_key_make(uint32_t tree, uint64_t dir, const void *name, size_t name_size,
	struct manifest_key *key, struct error *err)
{
	if (name_size > MANIFEST_NAME_MAX)
		return error_set(err, -ENAMETOOLONG, "manifest: a name of %zu bytes, at most %d",
			name_size, MANIFEST_NAME_MAX);
	pack_big(key->bytes, tree, 4);
	pack_big(key->bytes + 4, dir, 8);
	memcpy(key->bytes + MANIFEST_KEY_HEAD, name, name_size);
	key->size = MANIFEST_KEY_HEAD + name_size;
	return 0;
}

static unsigned char *pack_next(unsigned char *at, uint64_t value, unsigned bytes)
{
	manifest_pack(at, value, bytes);
	return at + bytes;
}

static unsigned char *pack_identity(unsigned char *at, const struct manifest_identity *identity)
{
	at = pack_next(at, identity->size, 8);
	at = pack_next(at, identity->ino, 8);
	at = pack_next(at, (uint64_t)identity->mtime_sec, 8);
	at = pack_next(at, identity->mtime_nsec, 4);
	at = pack_next(at, (uint64_t)identity->ctime_sec, 8);
	return pack_next(at, identity->ctime_nsec, 4);
}

void manifest_record_pack(
	const struct manifest_entry *entry, unsigned char record[MANIFEST_RECORD_SIZE])
{
	unsigned char *at = pack_next(record, RECORD_VERSION, 1);

	at = pack_next(at, entry->type, 4);
	at = pack_next(at, entry->mode, 4);
	at = pack_next(at, entry->uid, 4);
	at = pack_next(at, entry->gid, 4);
	at = pack_next(at, entry->pair, 4);
	at = pack_next(at, entry->run, 4);
	at = pack_next(at, entry->dir, 8);
	at = pack_identity(at, &entry->local);
	pack_identity(at, &entry->shared);
}

static uint64_t unpack_next(const unsigned char **at, unsigned bytes)
{
	uint64_t value = manifest_unpack(*at, bytes);

	*at += bytes;
	return value;
}

static void unpack_identity(const unsigned char **at, struct manifest_identity *identity)
{
	identity->size = unpack_next(at, 8);
	identity->ino = unpack_next(at, 8);
	identity->mtime_sec = (int64_t)unpack_next(at, 8);
	identity->mtime_nsec = (uint32_t)unpack_next(at, 4);
	identity->ctime_sec = (int64_t)unpack_next(at, 8);
	identity->ctime_nsec = (uint32_t)unpack_next(at, 4);
}

int manifest_record_unpack(
	const void *record, size_t size, struct manifest_entry *entry, struct error *err)
{
	const unsigned char *at = record;

	if (size != MANIFEST_RECORD_SIZE)
		return error_set(err, -EBADMSG, "manifest: a record of %zu bytes, expected %d",
			size, MANIFEST_RECORD_SIZE);
	if (*at != RECORD_VERSION)
		return error_set(err, -EBADMSG, "manifest: a record of version %u, expected %d",
			*at, RECORD_VERSION);
	at++;
	entry->type = (uint32_t)unpack_next(&at, 4);
	entry->mode = (uint32_t)unpack_next(&at, 4);
	entry->uid = (uint32_t)unpack_next(&at, 4);
	entry->gid = (uint32_t)unpack_next(&at, 4);
	entry->pair = (uint32_t)unpack_next(&at, 4);
	entry->run = (uint32_t)unpack_next(&at, 4);
	entry->dir = unpack_next(&at, 8);
	unpack_identity(&at, &entry->local);
	unpack_identity(&at, &entry->shared);
	if (entry->type & ~(uint32_t)S_IFMT || (entry->type != S_IFDIR && entry->dir))
		return error_set(err, -EBADMSG,
			"manifest: a record of type %o with directory id %llu", entry->type,
			(unsigned long long)entry->dir);
	return 0;
}

void manifest_identity_from(const struct stat *st, struct manifest_identity *identity)
{
	identity->size = (uint64_t)st->st_size;
	identity->ino = st->st_ino;
	identity->mtime_sec = st->st_mtim.tv_sec;
	identity->mtime_nsec = (uint32_t)st->st_mtim.tv_nsec;
	identity->ctime_sec = st->st_ctim.tv_sec;
	identity->ctime_nsec = (uint32_t)st->st_ctim.tv_nsec;
}

bool manifest_identity_equal(const struct manifest_identity *a, const struct manifest_identity *b)
{
	return a->size == b->size && a->ino == b->ino && a->mtime_sec == b->mtime_sec &&
	       a->mtime_nsec == b->mtime_nsec && a->ctime_sec == b->ctime_sec &&
	       a->ctime_nsec == b->ctime_nsec;
}
