/*
 * The manifest, which is the user's to change. The first byte of the input says what the rest is:
 *
 *   R  the value of one record
 *
 *   D  records of a database: each a letter for the part it belongs to, the sizes of its name and
 *      its value (a byte each), name and value
 *
 *   M  changes of a sound database file: each a place in the head of one of LMDB's two meta pages
 *      (2 bytes, big-endian) and the byte that comes there; a place behind them cuts the file off
 *
 * The rest of its pages LMDB believes: one that was changed can end the process, which is why only
 * a process of the user's opens a manifest, and its death is a failed stage-out whose results stay.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"
#include "stage/manifest_private.h"

#include <fcntl.h>
#include <unistd.h>

#define FILE_SIZE_MAX (256 * 1024)
#define META_PAGE 4096
/* Of a meta page, what is checked before it is believed: flags, magic, version, size of map and
 * page. */
#define META_HEAD 44
/* Of a walk: a damaged manifest may hold a directory that is inside itself. */
#define DEPTH_MAX 3

static int stage = -1;
static char sound[FILE_SIZE_MAX];
static size_t sound_size;

/* The directory of the manifest; LMDB takes a path. */
static const char *directory(void)
{
	static char path[96];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/" MANIFEST_STAGE_DIR "/manifest", stage);
	return path;
}

static int open_data(int flags)
{
	int fd = openat(
		stage, MANIFEST_STAGE_DIR "/manifest/data.mdb", flags | O_CREAT | O_CLOEXEC, 0600);

	fuzz_require(fd >= 0);
	return fd;
}

/* A manifest as stagetool makes it. */
static void make_sound(void)
{
	struct manifest_entry entry = { .type = S_IFREG, .mode = 0644, .pair = 1 };
	autoclose int fd = -1;
	struct manifest *manifest;
	uint64_t dir;
	uint32_t pair;

	fuzz_require(!manifest_open(stage, true, &manifest, NULL));
	fuzz_require(!manifest_pair(manifest, "in", "/proj/x", true, &pair, NULL));
	fuzz_require(!manifest_make_dirs(manifest, 0, "in/a/b", &dir, NULL));
	fuzz_require(!manifest_put(manifest, 0, dir, "file", &entry, NULL));
	fuzz_require(!manifest_sync(manifest, NULL));
	manifest_close(manifest);
	fd = open_data(O_RDONLY);
	sound_size = (size_t)read(fd, sound, sizeof(sound));
	fuzz_require(sound_size > 2 * META_PAGE && sound_size < sizeof(sound));
}

static int walk_directory(struct manifest *manifest, uint32_t tree, uint64_t dir, unsigned depth);

struct walk {
	struct manifest *manifest;
	uint32_t tree;
	uint64_t dir;
	unsigned depth;
};

static int walk_entry(
	void *ctx, const char *name, const struct manifest_entry *entry, struct error *err)
{
	const struct walk *walk = ctx;
	struct manifest_entry again;

	(void)err;
	fuzz_require(!manifest_get(walk->manifest, walk->tree, walk->dir, name, &again, NULL));
	fuzz_require(again.type == entry->type && again.dir == entry->dir);
	return entry->type == S_IFDIR && walk->depth < DEPTH_MAX
		       ? walk_directory(walk->manifest, walk->tree, entry->dir, walk->depth + 1)
		       : 0;
}

static int walk_directory(struct manifest *manifest, uint32_t tree, uint64_t dir, unsigned depth)
{
	struct walk walk = { manifest, tree, dir, depth };
	struct error err = ERROR_INIT;
	int rc = manifest_each(manifest, tree, dir, walk_entry, &walk, &err);

	fuzz_require(!rc || (rc < 0 && *err.text) || depth < DEPTH_MAX);
	return rc;
}

static void read_pairs(struct manifest *manifest)
{
	uint32_t id;

	for (uint32_t pair = 1; pair <= manifest_pair_count(manifest); pair++) {
		char *local = NULL, *shared = NULL;

		if (!manifest_pair_roots(manifest, pair, &local, &shared, NULL))
			fuzz_require(local && shared);
		free(local);
		free(shared);
	}
	manifest_pair(manifest, "in", "/proj/x", false, &id, NULL);
}

static void read_all(void)
{
	struct manifest *manifest = NULL;
	struct manifest_entry entry;
	struct error err = ERROR_INIT;
	bool rebooted;

	if (manifest_open(stage, false, &manifest, &err)) {
		fuzz_require(err.code < 0 && *err.text && !manifest);
		return;
	}
	read_pairs(manifest);
	manifest_rebooted(manifest, &rebooted, NULL);
	manifest_find(manifest, 0, "in/a/b/file", &entry, NULL);
	walk_directory(manifest, 0, 0, 0);
	walk_directory(manifest, 1, 0, 0);
	manifest_close(manifest);
}

static void test_record(const uint8_t *data, size_t size)
{
	unsigned char packed[MANIFEST_RECORD_SIZE];
	struct manifest_entry entry;
	struct error err = ERROR_INIT;

	if (manifest_record_unpack(data, size, &entry, &err)) {
		fuzz_require(err.code == -EBADMSG && *err.text);
		return;
	}
	manifest_record_pack(&entry, packed);
	fuzz_require(size == sizeof(packed) && !memcmp(data, packed, size));
}

/* The key of a record whose part is called so; a wrong letter is a key without any form. */
static void make_key(uint8_t part, const uint8_t *name, size_t size, struct manifest_key *key)
{
	static const struct {
		char letter;
		uint32_t tree;
		uint64_t dir;
	} parts[] = {
		{ 's', MANIFEST_META, META_STATE },
		{ 'r', MANIFEST_META, META_PAIR_ROOTS },
		{ 'i', MANIFEST_META, META_PAIR_IDS },
		{ 'e', 0, 0 },
		{ 'f', 0, 1 },
		{ 't', 1, 0 },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (part != parts[i].letter)
			continue;
		manifest_key_make(parts[i].tree, parts[i].dir, name, size, key, NULL);
		return;
	}
	memcpy(key->bytes, name, size);
	key->size = size;
}

static void put_records(MDB_txn *txn, MDB_dbi dbi, const uint8_t *data, size_t size)
{
	while (size >= 3 && size - 3 >= (size_t)data[1] + data[2]) {
		struct manifest_key key;
		MDB_val name, value = { data[2], (void *)(uintptr_t)(data + 3 + data[1]) };

		make_key(data[0], data + 3, data[1], &key);
		name = (MDB_val){ key.size, key.bytes };
		/* a key that LMDB does not take is not there */
		mdb_put(txn, dbi, &name, &value, 0);
		size -= 3 + (size_t)data[1] + data[2];
		data += 3 + (size_t)data[1] + data[2];
	}
}

static void test_database(const uint8_t *data, size_t size)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;

	close(open_data(O_WRONLY | O_TRUNC));
	fuzz_require(!mdb_env_create(&env));
	fuzz_require(!mdb_env_open(env, directory(), MDB_NOLOCK | MDB_NOSYNC, 0600));
	fuzz_require(!mdb_txn_begin(env, NULL, 0, &txn) && !mdb_dbi_open(txn, NULL, 0, &dbi));
	put_records(txn, dbi, data, size);
	fuzz_require(!mdb_txn_commit(txn));
	mdb_env_close(env);
	read_all();
}

static void test_meta_pages(const uint8_t *data, size_t size)
{
	char *file = malloc(sound_size);
	size_t file_size = sound_size;
	autoclose int fd = open_data(O_WRONLY | O_TRUNC);

	fuzz_require(file);
	memcpy(file, sound, sound_size);
	for (; size >= 3; size -= 3, data += 3) {
		size_t place = (size_t)data[0] << 8 | data[1];

		if (place < 2 * META_PAGE && place % META_PAGE < META_HEAD)
			file[place] = (char)data[2];
		else if (place >= 2 * META_PAGE && place < file_size)
			file_size = place;
	}
	fuzz_require(write(fd, file, file_size) == (ssize_t)file_size);
	free(file);
	read_all();
}

static void set_up(void)
{
	stage = fuzz_scratch();
	make_sound();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (stage < 0)
		set_up();
	if (!size)
		return 0;
	switch (*data) {
	case 'R':
		test_record(data + 1, size - 1);
		break;
	case 'D':
		test_database(data + 1, size - 1);
		break;
	case 'M':
		test_meta_pages(data + 1, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
