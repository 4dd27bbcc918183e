#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stage/delta.h"

static struct stat file(off_t size, ino_t ino)
{
	struct stat st = { .st_mode = S_IFREG | 0644, .st_size = size, .st_ino = ino };

	st.st_mtim = (struct timespec){ 100, 5 };
	st.st_ctim = (struct timespec){ 200, 6 };
	return st;
}

static struct manifest_entry recorded(const struct stat *local, const struct stat *shared)
{
	struct manifest_entry entry = {
		.type = local->st_mode & S_IFMT, .mode = local->st_mode & 07777, .pair = 1, .run = 1
	};

	manifest_identity_from(local, &entry.local);
	manifest_identity_from(shared, &entry.shared);
	return entry;
}

static void in_brings_what_is_not_there(void **state)
{
	struct stat src = file(3, 1);
	struct manifest_entry record = recorded(&src, &src);

	(void)state;
	assert_int_equal(delta_in(&src, NULL, NULL, 1), DELTA_IN_BRING);
	assert_int_equal(delta_in(&src, NULL, &record, 1), DELTA_IN_BRING);
}

static void in_looks_at_every_mark_of_a_source(void **state)
{
	struct stat src = file(3, 1), dst = file(3, 50), other;
	struct manifest_entry record = recorded(&dst, &src);

	(void)state;
	assert_int_equal(delta_in(&src, &dst, &record, 1), DELTA_IN_KEEP);
#define REPLACES(field)                                                                            \
	other = src;                                                                               \
	other.field++;                                                                             \
	assert_int_equal(delta_in(&other, &dst, &record, 1), DELTA_IN_REPLACE);
	REPLACES(st_size)
	REPLACES(st_ino)
	REPLACES(st_mtim.tv_sec)
	REPLACES(st_mtim.tv_nsec)
	REPLACES(st_ctim.tv_sec)
	REPLACES(st_ctim.tv_nsec)
}

static void in_never_replaces_what_is_not_as_staged(void **state)
{
	struct stat src = file(3, 1), dst = file(3, 50), changed;
	struct manifest_entry record = recorded(&dst, &src);

	(void)state;
	changed = dst;
	changed.st_size++;
	assert_int_equal(delta_in(&src, &changed, &record, 1), DELTA_IN_CONFLICT);
	assert_int_equal(delta_in(&src, &changed, NULL, 1), DELTA_IN_CONFLICT);
	changed = dst;
	changed.st_mtim.tv_nsec++;
	assert_int_equal(delta_in(&src, &changed, &record, 1), DELTA_IN_CONFLICT);
	changed = dst;
	changed.st_mode = S_IFDIR | 0755;
	assert_int_equal(delta_in(&src, &changed, NULL, 1), DELTA_IN_CONFLICT);
	changed.st_mode = S_IFLNK | 0777;
	assert_int_equal(delta_in(&src, &changed, NULL, 1), DELTA_IN_CONFLICT);
}

static void in_adopts_an_equal_file_but_not_a_touched_one(void **state)
{
	struct stat src = file(3, 1), dst = file(3, 50);
	struct manifest_entry record = recorded(&dst, &src);

	(void)state;
	assert_int_equal(delta_in(&src, &dst, NULL, 1), DELTA_IN_ADOPT);
	dst.st_ctim.tv_nsec++;
	assert_int_equal(delta_in(&src, &dst, &record, 1), DELTA_IN_KEEP);
}

static void in_does_not_mix_two_sources(void **state)
{
	struct stat src = file(3, 1), dst = file(3, 50), other = file(4, 2);
	struct manifest_entry record = recorded(&dst, &src);

	(void)state;
	assert_int_equal(delta_in(&other, &dst, &record, 2), DELTA_IN_CONFLICT);
	assert_int_equal(delta_in(&other, &dst, &record, 1), DELTA_IN_REPLACE);
	assert_int_equal(delta_in(&src, &dst, &record, 2), DELTA_IN_KEEP);
}

static void in_gives_attributes_to_its_own_directories(void **state)
{
	struct stat src = file(0, 1), dst = file(0, 50);
	struct manifest_entry record;

	(void)state;
	src.st_mode = dst.st_mode = S_IFDIR | 0755;
	record = recorded(&dst, &src);
	assert_int_equal(delta_in(&src, NULL, NULL, 1), DELTA_IN_BRING);
	assert_int_equal(delta_in(&src, &dst, NULL, 1), DELTA_IN_KEEP);
	assert_int_equal(delta_in(&src, &dst, &record, 1), DELTA_IN_KEEP);
	src.st_ctim.tv_sec++;
	assert_int_equal(delta_in(&src, &dst, &record, 1), DELTA_IN_BRING);
	dst.st_mode = S_IFDIR | 0700;
	assert_int_equal(delta_in(&src, &dst, &record, 1), DELTA_IN_KEEP);
	record.mode = MANIFEST_MODE_UNKNOWN;
	assert_int_equal(delta_in(&src, &dst, &record, 1), DELTA_IN_BRING);
	record.pair = 0;
	assert_int_equal(delta_in(&src, &dst, &record, 1), DELTA_IN_KEEP);
}

static void out_sends_any_change_and_nothing_else(void **state)
{
	struct stat local = file(3, 50), shared = file(3, 1), changed;
	struct manifest_entry staged = recorded(&local, &shared);
	struct copy_expect expect;

	(void)state;
	assert_false(delta_out(&local, &staged, NULL, false, &expect));
#define SENDS(field)                                                                               \
	changed = local;                                                                           \
	changed.field++;                                                                           \
	assert_true(delta_out(&changed, &staged, NULL, false, &expect));                           \
	assert_int_equal(expect.kind, COPY_EXPECT_SAME);                                           \
	assert_int_equal(expect.identity.ino, 1);                                                  \
	assert_int_equal(expect.identity.ctime.tv_nsec, 6);
	SENDS(st_size)
	SENDS(st_ino)
	SENDS(st_mtim.tv_sec)
	SENDS(st_mtim.tv_nsec)
	SENDS(st_ctim.tv_sec)
	SENDS(st_ctim.tv_nsec)
	changed = local;
	changed.st_mode = S_IFLNK | 0777;
	assert_true(delta_out(&changed, &staged, NULL, false, &expect));
	assert_true(delta_out(&local, NULL, NULL, false, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_NOTHING);
}

static void out_replaces_what_it_sent_last(void **state)
{
	struct stat local = file(3, 50), now = file(4, 50), shared = file(3, 1), there = file(4, 9);
	struct manifest_entry staged = recorded(&local, &shared), sent = recorded(&now, &there);
	struct copy_expect expect;

	(void)state;
	sent.run = 2;
	assert_false(delta_out(&now, &staged, &sent, false, &expect));
	assert_false(delta_out(&local, &staged, &sent, false, &expect));
	now.st_size++;
	assert_true(delta_out(&now, &staged, &sent, false, &expect));
	assert_int_equal(expect.identity.ino, 9);
	staged.run = 3; /* it was staged in anew since */
	assert_true(delta_out(&now, &staged, &sent, false, &expect));
	assert_int_equal(expect.identity.ino, 1);
}

static void out_of_doubtful_data_replaces_nothing(void **state)
{
	struct stat local = file(3, 50), now = file(4, 50), shared = file(3, 1), there = file(4, 9);
	struct manifest_entry staged = recorded(&local, &shared), sent = recorded(&local, &there);
	struct copy_expect expect;

	(void)state;
	assert_false(delta_out(&local, &staged, NULL, true, &expect));
	assert_true(delta_out(&now, &staged, NULL, true, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_NOTHING);
	sent.run = 2;
	assert_true(delta_out(&now, &staged, &sent, true, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_SAME);
}

static void out_sends_a_directory_for_its_mode_and_owner(void **state)
{
	struct stat local = file(0, 50), shared = file(0, 1);
	struct manifest_entry staged, sent;
	struct copy_expect expect;

	(void)state;
	local.st_mode = shared.st_mode = S_IFDIR | 0755;
	staged = recorded(&local, &shared);
	local.st_mtim.tv_sec++;
	local.st_ctim.tv_sec++;
	assert_false(delta_out(&local, &staged, NULL, false, &expect));
	assert_true(delta_out(&local, NULL, NULL, false, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_NOTHING);
	local.st_mode = S_IFDIR | 0700;
	assert_true(delta_out(&local, &staged, NULL, false, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_ANY);
	sent = recorded(&local, &shared);
	sent.run = 2;
	assert_false(delta_out(&local, &staged, &sent, false, &expect));
	local.st_mode = S_IFDIR | 0755;
	assert_true(delta_out(&local, &staged, &sent, false, &expect));
	staged.mode = MANIFEST_MODE_UNKNOWN;
	assert_true(delta_out(&local, &staged, NULL, false, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_NOTHING);
	local.st_uid++;
	assert_true(delta_out(&local, &staged, NULL, false, &expect));
}

static void a_change_of_type_replaces_no_directory(void **state)
{
	struct stat local = file(3, 50), shared = file(0, 1), dir = file(0, 50);
	struct manifest_entry staged;
	struct copy_expect expect;

	(void)state;
	shared.st_mode = dir.st_mode = S_IFDIR | 0755;
	staged = recorded(&dir, &shared);
	assert_true(delta_out(&local, &staged, NULL, false, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_NOTHING);
	staged = recorded(&local, &local);
	assert_true(delta_out(&dir, &staged, NULL, false, &expect));
	assert_int_equal(expect.kind, COPY_EXPECT_NOTHING);
}

static void one_fifo_is_as_good_as_another(void **state)
{
	struct stat fifo = file(0, 50);
	struct manifest_entry staged;
	struct copy_expect expect;

	(void)state;
	fifo.st_mode = S_IFIFO | 0600;
	staged = recorded(&fifo, &fifo);
	fifo.st_mtim.tv_sec++;
	fifo.st_ino++;
	assert_false(delta_out(&fifo, &staged, NULL, false, &expect));
	assert_int_equal(delta_in(&fifo, &fifo, NULL, 1), DELTA_IN_KEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_brings_what_is_not_there),
		cmocka_unit_test(in_looks_at_every_mark_of_a_source),
		cmocka_unit_test(in_never_replaces_what_is_not_as_staged),
		cmocka_unit_test(in_adopts_an_equal_file_but_not_a_touched_one),
		cmocka_unit_test(in_does_not_mix_two_sources),
		cmocka_unit_test(in_gives_attributes_to_its_own_directories),
		cmocka_unit_test(out_sends_any_change_and_nothing_else),
		cmocka_unit_test(out_replaces_what_it_sent_last),
		cmocka_unit_test(out_of_doubtful_data_replaces_nothing),
		cmocka_unit_test(out_sends_a_directory_for_its_mode_and_owner),
		cmocka_unit_test(a_change_of_type_replaces_no_directory),
		cmocka_unit_test(one_fifo_is_as_good_as_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
