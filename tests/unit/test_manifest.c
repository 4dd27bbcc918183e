#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "stage/manifest_private.h"
#include "stage/records.h"

struct place {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/test_manifest.XXXXXX");
	if (!mkdtemp(place->path))
		return -1;
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY);
	*state = place;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct place *place = *state;

	close(place->fd);
	nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(place);
	return 0;
}

static struct manifest *opened(const struct place *place)
{
	struct manifest *manifest = NULL;
	struct error err = ERROR_INIT;

	if (manifest_open(place->fd, true, &manifest, &err) < 0)
		fail_msg("%s", err.text);
	return manifest;
}

static struct manifest *reopened(const struct place *place, struct manifest *manifest)
{
	assert_int_equal(manifest_sync(manifest, NULL), 0);
	manifest_close(manifest);
	return opened(place);
}

static struct manifest_entry file_entry(uint64_t seed)
{
	return (struct manifest_entry){
		.type = S_IFREG,
		.mode = 0640,
		.uid = 1000,
		.gid = 1001,
		.pair = 3,
		.run = 7,
		.local = { seed, seed + 1, -5, INT64_MAX, 999999999, 1 },
		.shared = { seed + 2, UINT64_MAX, INT64_MIN, 6, 7, 8 },
	};
}

static void put(
	struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name, uint64_t seed)
{
	struct manifest_entry entry = file_entry(seed);

	assert_int_equal(manifest_put(manifest, tree, dir, name, &entry, NULL), 0);
}

static void expect(
	struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name, uint64_t seed)
{
	struct manifest_entry entry, want = file_entry(seed);

	assert_int_equal(manifest_get(manifest, tree, dir, name, &entry, NULL), 0);
	assert_int_equal(entry.type, want.type);
	assert_int_equal(entry.mode, want.mode);
	assert_int_equal(entry.uid, want.uid);
	assert_int_equal(entry.gid, want.gid);
	assert_int_equal(entry.pair, want.pair);
	assert_int_equal(entry.run, want.run);
	assert_int_equal(entry.dir, want.dir);
	assert_true(manifest_identity_equal(&entry.local, &want.local));
	assert_true(manifest_identity_equal(&entry.shared, &want.shared));
}

static void expect_none(struct manifest *manifest, uint32_t tree, uint64_t dir, const char *name)
{
	struct manifest_entry entry;
	struct error err = ERROR_INIT;

	assert_int_equal(manifest_get(manifest, tree, dir, name, &entry, &err), -ENOENT);
	assert_int_equal(err.code, 0);
}

static void identity_notices_every_field(void **state)
{
	struct manifest_identity a = { 1, 2, 3, 4, 5, 6 }, b = a;

	(void)state;
	assert_true(manifest_identity_equal(&a, &b));
#define NOTICES(field)                                                                             \
	b = a;                                                                                     \
	b.field++;                                                                                 \
	assert_false(manifest_identity_equal(&a, &b));
	NOTICES(size)
	NOTICES(ino)
	NOTICES(mtime_sec)
	NOTICES(mtime_nsec)
	NOTICES(ctime_sec)
	NOTICES(ctime_nsec)
}

static void record_refuses_what_it_did_not_write(void **state)
{
	unsigned char record[MANIFEST_RECORD_SIZE + 1] = { 0 };
	struct manifest_entry entry = file_entry(1);

	(void)state;
	manifest_record_pack(&entry, record);
	assert_int_equal(manifest_record_unpack(record, MANIFEST_RECORD_SIZE, &entry, NULL), 0);
	assert_int_equal(
		manifest_record_unpack(record, MANIFEST_RECORD_SIZE - 1, &entry, NULL), -EBADMSG);
	assert_int_equal(
		manifest_record_unpack(record, MANIFEST_RECORD_SIZE + 1, &entry, NULL), -EBADMSG);
	assert_int_equal(manifest_record_unpack(record, 0, &entry, NULL), -EBADMSG);
	record[0] = 2;
	assert_int_equal(
		manifest_record_unpack(record, MANIFEST_RECORD_SIZE, &entry, NULL), -EBADMSG);
	entry.dir = 5;
	manifest_record_pack(&entry, record);
	assert_int_equal(
		manifest_record_unpack(record, MANIFEST_RECORD_SIZE, &entry, NULL), -EBADMSG);
}

static void sees_what_was_put_before_and_after_a_sync(void **state)
{
	struct manifest *manifest = opened(*state);

	put(manifest, 0, 1, "a", 10);
	put(manifest, 0, 1, "\xff\xfe\n", 11);
	expect(manifest, 0, 1, "a", 10);
	put(manifest, 0, 1, "a", 12);
	expect(manifest, 0, 1, "a", 12);
	expect_none(manifest, 0, 2, "a");
	expect_none(manifest, 1, 1, "a");
	manifest = reopened(*state, manifest);
	expect(manifest, 0, 1, "a", 12);
	expect(manifest, 0, 1, "\xff\xfe\n", 11);
	assert_int_equal(manifest_delete(manifest, 0, 1, "a", NULL), 0);
	expect_none(manifest, 0, 1, "a");
	manifest = reopened(*state, manifest);
	expect_none(manifest, 0, 1, "a");
	manifest_close(manifest);
}

static void names_have_a_limit(void **state)
{
	struct manifest *manifest = opened(*state);
	struct manifest_entry entry = file_entry(1);
	char name[257];

	memset(name, 'n', 256);
	name[256] = '\0';
	assert_int_equal(manifest_put(manifest, 0, 0, name, &entry, NULL), -ENAMETOOLONG);
	name[255] = '\0';
	put(manifest, 0, 0, name, 4);
	manifest = reopened(*state, manifest);
	expect(manifest, 0, 0, name, 4);
	manifest_close(manifest);
}

struct listing {
	struct manifest *manifest;
	char names[64][8];
	unsigned count, stop;
};

static int list(void *ctx, const char *name, const struct manifest_entry *entry, struct error *err)
{
	struct listing *listing = ctx;
	struct manifest_entry again;

	assert_int_equal(manifest_get(listing->manifest, 0, 5, name, &again, err), 0);
	assert_int_equal(again.local.size, entry->local.size);
	snprintf(listing->names[listing->count++], 8, "%s", name);
	return listing->count == listing->stop ? 42 : 0;
}

static void each_lists_one_directory_in_order(void **state)
{
	struct listing listing = { .manifest = opened(*state) };

	put(listing.manifest, 0, 5, "b", 1);
	put(listing.manifest, 0, 4, "zz", 1);
	put(listing.manifest, 0, 6, "", 1);
	put(listing.manifest, 1, 5, "c", 1);
	put(listing.manifest, 0, 5, "a.", 1);
	put(listing.manifest, 0, 5, "a", 1);
	put(listing.manifest, 0, 5, "\xff", 1);
	put(listing.manifest, 0, 5, "x", 1);
	assert_int_equal(manifest_delete(listing.manifest, 0, 5, "x", NULL), 0);
	assert_int_equal(manifest_each(listing.manifest, 0, 5, list, &listing, NULL), 0);
	assert_int_equal(listing.count, 4);
	assert_string_equal(listing.names[0], "a");
	assert_string_equal(listing.names[1], "a.");
	assert_string_equal(listing.names[2], "b");
	assert_string_equal(listing.names[3], "\xff");
	listing.count = 0;
	listing.stop = 2;
	assert_int_equal(manifest_each(listing.manifest, 0, 5, list, &listing, NULL), 42);
	assert_int_equal(listing.count, 2);
	manifest_close(listing.manifest);
}

static int count_entries(
	void *ctx, const char *name, const struct manifest_entry *entry, struct error *err)
{
	(void)name, (void)entry, (void)err;
	++*(unsigned *)ctx;
	return 0;
}

static void a_large_directory_grows_the_map(void **state)
{
	struct manifest *manifest = opened(*state);
	const unsigned many = 150000; /* beyond the first map size */
	unsigned count = 0;
	MDB_envinfo info;
	char name[16];

	assert_int_equal(manifest_bulk(manifest, NULL), 0);
	for (unsigned i = 0; i < many; i++) {
		snprintf(name, sizeof(name), "%08x", i * 2654435761u);
		put(manifest, 0, 1, name, i);
	}
	manifest = reopened(*state, manifest);
	assert_int_equal(mdb_env_info(manifest->env, &info), 0);
	assert_true(info.me_mapsize > 16 * 1024 * 1024);
	assert_non_null(manifest->map);
	assert_int_equal(manifest_each(manifest, 0, 1, count_entries, &count, NULL), 0);
	assert_int_equal(count, many);
	for (unsigned i = 0; i < many; i += 997) {
		snprintf(name, sizeof(name), "%08x", i * 2654435761u);
		expect(manifest, 0, 1, name, i);
	}
	manifest_close(manifest);
}

static void pairs_keep_their_ids(void **state)
{
	struct manifest *manifest = opened(*state);
	autofree char *local = NULL, *shared = NULL, *far = NULL;
	uint32_t first, second, again;

	far = malloc(9001);
	memset(far, 'f', 9000);
	far[9000] = '\0';
	assert_int_equal(manifest_pair(manifest, "data", "/p/data", false, &first, NULL), 0);
	assert_int_equal(first, 0);
	assert_int_equal(manifest_pair(manifest, "data", "/p/data", true, &first, NULL), 0);
	assert_int_equal(manifest_pair(manifest, "dat", "a/p/data", true, &second, NULL), 0);
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(manifest_pair(manifest, far, far, true, &again, NULL), 0);
	assert_int_equal(again, 3);
	manifest = reopened(*state, manifest);
	assert_int_equal(manifest_pair_count(manifest), 3);
	assert_int_equal(manifest_pair(manifest, "data", "/p/data", true, &again, NULL), 0);
	assert_int_equal(again, first);
	assert_int_equal(manifest_pair(manifest, "new", "/p/data", true, &again, NULL), 0);
	assert_int_equal(again, 4);
	assert_int_equal(manifest_pair_roots(manifest, second, &local, &shared, NULL), 0);
	assert_string_equal(local, "dat");
	assert_string_equal(shared, "a/p/data");
	free(take_ptr(local));
	free(take_ptr(shared));
	assert_int_equal(manifest_pair_roots(manifest, 3, &local, &shared, NULL), 0);
	assert_string_equal(shared, far);
	assert_int_equal(manifest_pair_roots(manifest, 9, &local, &shared, NULL), -ENOENT);
	manifest_close(manifest);
}

static void directories_are_found_by_path(void **state)
{
	struct manifest *manifest = opened(*state);
	struct manifest_entry entry;
	uint64_t deep, again;

	assert_int_equal(manifest_make_dirs(manifest, 0, ".", &deep, NULL), 0);
	assert_int_equal(deep, 0);
	assert_int_equal(manifest_make_dirs(manifest, 0, "a/./b//c/", &deep, NULL), 0);
	put(manifest, 0, deep, "file", 5);
	manifest = reopened(*state, manifest);
	assert_int_equal(manifest_make_dirs(manifest, 0, "a/b/c", &again, NULL), 0);
	assert_int_equal(again, deep);
	assert_int_equal(manifest_find(manifest, 0, "a/b/c/file", &entry, NULL), 0);
	assert_int_equal(entry.type, S_IFREG);
	assert_int_equal(manifest_find(manifest, 0, "", &entry, NULL), 0);
	assert_int_equal(entry.type, S_IFDIR);
	assert_int_equal(entry.dir, 0);
	assert_int_equal(manifest_find(manifest, 0, "a/b/c/file/x", &entry, NULL), -ENOENT);
	assert_int_equal(manifest_find(manifest, 0, "a/x/c", &entry, NULL), -ENOENT);
	assert_int_equal(manifest_make_dirs(manifest, 0, "a/b/c/file/x", &again, NULL), 0);
	assert_int_equal(manifest_find(manifest, 0, "a/b/c/file", &entry, NULL), 0);
	assert_int_equal(entry.type, S_IFDIR);
	assert_true(manifest_new_dir(manifest) > again);
	manifest_close(manifest);
}

static void directory_ids_and_runs_are_never_used_again(void **state)
{
	struct manifest *manifest = opened(*state);
	uint64_t id = manifest_new_dir(manifest);
	uint32_t run = manifest_run(manifest);

	put(manifest, 0, id, "x", 1);
	manifest = reopened(*state, manifest);
	assert_true(manifest_new_dir(manifest) > id);
	assert_int_equal(manifest_run(manifest), run + 1);
	manifest_close(manifest);
}

static void one_writes_and_several_read(void **state)
{
	const struct place *place = *state;
	struct manifest *manifest = opened(place), *other = NULL, *third = NULL;
	struct manifest_entry entry = file_entry(1);
	struct error err = ERROR_INIT;
	char who[32];

	put(manifest, 0, 0, "x", 3);
	assert_int_equal(manifest_open(place->fd, true, &other, &err), -EBUSY);
	snprintf(who, sizeof(who), "process %ld)", (long)getpid());
	assert_non_null(strstr(err.text, who));
	assert_int_equal(manifest_open(place->fd, false, &other, &err), -EBUSY);
	assert_int_equal(manifest_sync(manifest, NULL), 0);
	manifest_close(manifest);
	assert_int_equal(manifest_open(place->fd, false, &other, &err), 0);
	assert_int_equal(manifest_open(place->fd, false, &third, &err), 0);
	expect(other, 0, 0, "x", 3);
	expect(third, 0, 0, "x", 3);
	assert_int_equal(manifest_put(other, 0, 0, "y", &entry, &err), -EROFS);
	assert_int_equal(manifest_open(place->fd, true, &manifest, &err), -EBUSY);
	manifest_close(other);
	manifest_close(third);
}

static void a_reader_wants_one_to_be_there(void **state)
{
	const struct place *place = *state;
	struct manifest *manifest = NULL;
	struct error err = ERROR_INIT;

	assert_int_equal(manifest_open(place->fd, false, &manifest, &err), -ENOENT);
	assert_int_equal(faccessat(place->fd, MANIFEST_STAGE_DIR, F_OK, 0), -1);
	manifest_close(opened(place));
	assert_int_equal(manifest_open(place->fd, false, &manifest, &err), 0);
	manifest_close(manifest);
}

static int data_fd(const struct place *place)
{
	int fd = openat(place->fd, MANIFEST_STAGE_DIR "/manifest/data.mdb", O_RDWR);

	assert_true(fd >= 0);
	return fd;
}

static void expect_refused(const struct place *place, const char *reason)
{
	struct manifest *manifest = NULL;
	struct error err = ERROR_INIT;

	assert_int_equal(manifest_open(place->fd, true, &manifest, &err), -EBADMSG);
	assert_non_null(strstr(err.text, reason));
	assert_int_equal(manifest_open(place->fd, false, &manifest, &err), -EBADMSG);
}

static void damage_is_refused(void **state)
{
	const struct place *place = *state;
	struct manifest *manifest = opened(place);
	char garbage[8192];
	int fd;

	for (uint64_t i = 0; i < 3000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", (unsigned)i);
		put(manifest, 0, 0, name, i);
	}
	manifest_close(reopened(place, manifest));
	fd = data_fd(place);
	assert_int_equal(ftruncate(fd, 16384), 0);
	expect_refused(place, "lost its end");
	assert_int_equal(ftruncate(fd, 4096), 0);
	expect_refused(place, "damaged");
	assert_int_equal(ftruncate(fd, 10), 0);
	expect_refused(place, "10 bytes");
	memset(garbage, 'g', sizeof(garbage));
	assert_int_equal(pwrite(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	expect_refused(place, "not a manifest");
	memset(garbage, 0, sizeof(garbage));
	garbage[41] = 16;
	assert_int_equal(pwrite(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	expect_refused(place, "damaged");
	close(fd);
}

static void another_programs_database_is_refused(void **state)
{
	const struct place *place = *state;
	char x[] = "x";
	MDB_val text = { 1, x };
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	char path[128];

	assert_int_equal(mkdirat(place->fd, MANIFEST_STAGE_DIR, 0700), 0);
	assert_int_equal(mkdirat(place->fd, MANIFEST_STAGE_DIR "/manifest", 0700), 0);
	close(openat(place->fd, MANIFEST_STAGE_DIR "/manifest/lock", O_WRONLY | O_CREAT, 0600));
	snprintf(path, sizeof(path), "%s/" MANIFEST_STAGE_DIR "/manifest", place->path);
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_open(env, path, MDB_NOLOCK, 0600), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
	assert_int_equal(mdb_put(txn, dbi, &text, &text, 0), 0);
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
	expect_refused(place, "some other program's");
}

static void a_symlink_in_its_place_is_not_followed(void **state)
{
	const struct place *place = *state;
	struct manifest *manifest = NULL;
	struct error err = ERROR_INIT;

	assert_int_equal(symlinkat("/tmp", place->fd, MANIFEST_STAGE_DIR), 0);
	assert_int_equal(manifest_open(place->fd, true, &manifest, &err), -ENOTDIR);
}

static void a_crash_of_the_machine_in_bulk_mode_is_noticed(void **state)
{
	const struct place *place = *state;
	struct manifest *manifest = opened(place);
	int fd;

	put(manifest, 0, 0, "x", 1);
	assert_int_equal(manifest_sync(manifest, NULL), 0);
	assert_int_equal(manifest_bulk(manifest, NULL), 0);
	put(manifest, 0, 0, "y", 2);
	assert_int_equal(manifest_flush(manifest, NULL), 0);
	manifest_close(manifest); /* as a killed process leaves it */
	manifest = opened(place);
	expect(manifest, 0, 0, "y", 2);
	manifest_close(manifest);
	fd = openat(place->fd, MANIFEST_STAGE_DIR "/manifest/bulk", O_WRONLY | O_TRUNC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "another boot\n", 13), 13);
	close(fd);
	expect_refused(place, "machine went down");
}

/* What a process leaves that died, or met a full disk, before it could write into it. */
static void an_empty_marker_means_nothing(void **state)
{
	const struct place *place = *state;
	struct manifest *manifest = opened(place);

	put(manifest, 0, 0, "x", 1);
	assert_int_equal(manifest_sync(manifest, NULL), 0);
	manifest_close(manifest);
	close(openat(place->fd, MANIFEST_STAGE_DIR "/manifest/bulk", O_WRONLY | O_CREAT, 0600));
	manifest = opened(place);
	expect(manifest, 0, 0, "x", 1);
	manifest_close(manifest);
}

static void a_walk_of_a_damaged_manifest_ends(void **state)
{
	static const uint64_t inside[] = { 0, 1 };
	const struct records_ops ops = { NULL, NULL, NULL };
	struct manifest *manifest = opened(*state);
	struct manifest_entry entry = { .type = S_IFDIR };
	struct error err = ERROR_INIT;

	entry.dir = manifest_new_dir(manifest);
	assert_int_equal(manifest_put(manifest, 0, 0, "a", &entry, NULL), 0);
	assert_int_equal(records_walk(manifest, ".", &ops, NULL, NULL), 0);
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		uint64_t id = entry.dir;

		entry.dir = inside[i];
		assert_int_equal(manifest_put(manifest, 0, id, "b", &entry, NULL), 0);
		assert_int_equal(records_walk(manifest, ".", &ops, NULL, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "inside itself"));
		entry.dir = id;
	}
	manifest_close(manifest);
}

#define THREADS 4
#define PER_THREAD 20000

struct writer {
	struct manifest *manifest;
	unsigned number;
	int failed;
};

static void *write_and_read(void *argument)
{
	struct writer *writer = argument;

	for (unsigned i = 0; i < PER_THREAD && !writer->failed; i++) {
		struct manifest_entry entry = file_entry(i), got;
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		writer->failed =
			manifest_put(writer->manifest, 0, writer->number, name, &entry, NULL);
		snprintf(name, sizeof(name), "%u", i / 2);
		if (!writer->failed)
			writer->failed =
				manifest_get(writer->manifest, 0, writer->number, name, &got, NULL);
		if (!writer->failed && got.local.size != i / 2)
			writer->failed = -EIO;
	}
	return NULL;
}

static void threads_see_their_own(void **state)
{
	struct writer writers[THREADS];
	pthread_t threads[THREADS];
	struct manifest *manifest = opened(*state);

	for (unsigned i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ manifest, i, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, write_and_read, &writers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(writers[i].failed, 0);
	}
	manifest = reopened(*state, manifest);
	for (unsigned i = 0; i < THREADS; i++) {
		unsigned count = 0;

		assert_int_equal(manifest_each(manifest, 0, i, count_entries, &count, NULL), 0);
		assert_int_equal(count, PER_THREAD);
	}
	manifest_close(manifest);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_notices_every_field),
		cmocka_unit_test(record_refuses_what_it_did_not_write),
		TEST(sees_what_was_put_before_and_after_a_sync),
		TEST(names_have_a_limit),
		TEST(each_lists_one_directory_in_order),
		TEST(a_large_directory_grows_the_map),
		TEST(pairs_keep_their_ids),
		TEST(directories_are_found_by_path),
		TEST(directory_ids_and_runs_are_never_used_again),
		TEST(one_writes_and_several_read),
		TEST(a_reader_wants_one_to_be_there),
		TEST(damage_is_refused),
		TEST(another_programs_database_is_refused),
		TEST(a_symlink_in_its_place_is_not_followed),
		TEST(a_crash_of_the_machine_in_bulk_mode_is_noticed),
		TEST(an_empty_marker_means_nothing),
		TEST(a_walk_of_a_damaged_manifest_ends),
		TEST(threads_see_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
