#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stage/plan.h"

struct place {
	char path[64];
	int fd; /* of path/stage */
	struct spec_list list;
	struct plan *plan;
	struct error err;
	struct plan_context context;
};

static const struct symbols symbols = {
	.job_id = "7", .job_name = "train", .user = "me", .node = "n1", .node_index = "0"
};

static void run_in(const struct place *place, const char *script)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && { %s; }", place->path, script);
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/test_plan.XXXXXX");
	if (!mkdtemp(place->path))
		return -1;
	run_in(place, "mkdir stage shared; cd shared; mkdir d; echo 1 >d/f; echo 22 >g; ln -s d l");
	run_in(place, "cd stage; mkdir r; echo 1 >r/a; ln -s r inside; ln -s /etc outside");
	place->context = (struct plan_context){ -1, &symbols, NULL, 0, 1 };
	char stage[128];

	snprintf(stage, sizeof(stage), "%s/stage", place->path);
	place->context.stagefd = open(stage, O_RDONLY | O_DIRECTORY);
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

	plan_free(place->plan);
	spec_list_free(&place->list);
	close(place->context.stagefd);
	nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(place);
	return 0;
}

/* base is the directory of the test, so FROM "shared/d" is what it looks like. */
static void add(struct place *place, enum spec_side side, const char *text)
{
	if (spec_list_add(&place->list, side, text, place->path, &place->err) < 0)
		fail_msg("%s", place->err.text);
}

static int plan(struct place *place, enum spec_side side)
{
	plan_free(place->plan);
	place->plan = NULL;
	place->err = (struct error)ERROR_INIT;
	return (side == SPEC_IN ? plan_in : plan_out)(
		&place->list, &place->context, &place->plan, &place->err);
}

static void planned(struct place *place, enum spec_side side, size_t count)
{
	if (plan(place, side) < 0)
		fail_msg("%s", place->err.text);
	assert_int_equal(place->plan->count, count);
}

static void refused(struct place *place, enum spec_side side, int code, const char *text)
{
	assert_int_equal(plan(place, side), code);
	if (!strstr(place->err.text, text))
		fail_msg("not said: %s\nbut: %s", text, place->err.text);
}

static void is_below(const struct place *place, const char *path, const char *below)
{
	size_t length = strlen(place->path);

	assert_memory_equal(path, place->path, length);
	assert_string_equal(path + length, below);
}

static void in_follows_a_symlink_and_keeps_its_name(void **state)
{
	struct place *place = *state;

	add(place, SPEC_IN, "shared/l:x/");
	planned(place, SPEC_IN, 1);
	is_below(place, place->plan->items[0].shared, "/shared/l");
	is_below(place, place->plan->items[0].resolved, "/shared/d");
	assert_string_equal(place->plan->items[0].local, "x/l");
	assert_true(place->plan->items[0].is_dir);
}

static void in_expands_globs_and_symbols(void **state)
{
	struct place *place = *state;

	add(place, SPEC_IN, "shared/[dg]:%x.%j/");
	planned(place, SPEC_IN, 2);
	assert_string_equal(place->plan->items[0].local, "train.7/d");
	assert_string_equal(place->plan->items[1].local, "train.7/g");
	assert_false(place->plan->items[1].is_dir);
}

static void in_says_what_is_missing(void **state)
{
	struct place *place = *state;

	add(place, SPEC_IN, "shared/none");
	refused(place, SPEC_IN, -ENOENT, "stage-in shared/none: ");
	spec_list_free(&place->list);
	place->list = (struct spec_list){ 0 };
	add(place, SPEC_IN, "shared/q*:x/");
	refused(place, SPEC_IN, -ENOENT, "nothing matches");
	spec_list_free(&place->list);
	place->list = (struct spec_list){ 0 };
	add(place, SPEC_IN, "shared/none:a,optional");
	add(place, SPEC_IN, "shared/q*:x/,optional");
	add(place, SPEC_IN, "shared/g:b");
	planned(place, SPEC_IN, 1);
}

static void in_refuses_what_it_may_not_read(void **state)
{
	struct place *place = *state;

	run_in(place, "mkfifo shared/p");
	add(place, SPEC_IN, "shared/p");
	refused(place, SPEC_IN, -EINVAL, "neither a file nor a directory");
	if (geteuid() == 0)
		return;
	run_in(place, "rm shared/p; chmod 0 shared/g");
	spec_list_free(&place->list);
	place->list = (struct spec_list){ 0 };
	add(place, SPEC_IN, "shared/g");
	refused(place, SPEC_IN, -EACCES, "stage-in shared/g: ");
}

static void in_names_both_of_two_with_one_target(void **state)
{
	struct place *place = *state;

	run_in(place, "mkdir shared/e; echo 3 >shared/e/f");
	add(place, SPEC_IN, "shared/[de]/f:x/");
	refused(place, SPEC_IN, -EEXIST, "/shared/d/f and ");
	refused(place, SPEC_IN, -EEXIST, "/shared/e/f have the same target x/f");
}

static void sources_hold_against_symlinks_and_dots(void **state)
{
	struct place *place = *state;
	char source[128], *sources[] = { source };
	struct conf conf = { .sources = sources, .n_sources = 1 };

	snprintf(source, sizeof(source), "%s/shared/d", place->path);
	place->context.conf = &conf;
	add(place, SPEC_IN, "shared/l");
	planned(place, SPEC_IN, 1);
	add(place, SPEC_IN, "shared/d/../g");
	refused(place, SPEC_IN, -EPERM, "not below one of the sources");
	spec_list_free(&place->list);
	place->list = (struct spec_list){ 0 };
	run_in(place, "ln -s /etc shared/d/away; mkdir shared/dd");
	add(place, SPEC_IN, "shared/d/away/passwd");
	refused(place, SPEC_IN, -EPERM, "/etc/passwd is not below");
	spec_list_free(&place->list);
	place->list = (struct spec_list){ 0 };
	add(place, SPEC_IN, "shared/dd");
	refused(place, SPEC_IN, -EPERM, "not below");
	/* A source that is a symlink itself is what it leads to. */
	snprintf(source, sizeof(source), "%s/shared/l", place->path);
	spec_list_free(&place->list);
	place->list = (struct spec_list){ 0 };
	add(place, SPEC_IN, "shared/d/f");
	planned(place, SPEC_IN, 1);
}

static void first_is_for_the_first_node(void **state)
{
	struct place *place = *state;

	add(place, SPEC_IN, "shared/d:d,dist=first,sync");
	add(place, SPEC_IN, "shared/g:g");
	planned(place, SPEC_IN, 2);
	place->context.node_count = 2;
	place->context.node_index = 1;
	planned(place, SPEC_IN, 1);
	assert_string_equal(place->plan->items[0].local, "g");
	planned(place, SPEC_OUT, 0);
}

static void measure_counts_what_is_there(void **state)
{
	struct place *place = *state;

	run_in(place, "cd shared/d; mkdir n; ln f n/f2; truncate -s 10M hole; ln -s f s; mkfifo p");
	run_in(place, "head -c 5000 /dev/zero >shared/d/n/b");
	add(place, SPEC_IN, "shared/d");
	planned(place, SPEC_IN, 1);
	assert_int_equal(plan_measure(place->plan, 2, NULL, &place->err), 0);
	/* d n f hole s p n/b; d and n and f at 4 KiB, n/b at 8. */
	assert_int_equal(place->plan->inodes, 7);
	assert_int_equal(place->plan->bytes, 3 * 4096 + 8192);
	assert_int_equal(place->plan->items[0].bytes, place->plan->bytes);
}

static void measure_leaves_out_what_is_filtered(void **state)
{
	struct place *place = *state;

	run_in(place,
		"cd shared/d; mkdir n; echo >n/x.dat; echo >n/x.txt; mkdir big; echo >big/y.dat");
	add(place, SPEC_IN, "shared/d:d,exclude=*.txt,exclude=big/");
	planned(place, SPEC_IN, 1);
	assert_int_equal(plan_measure(place->plan, 2, NULL, &place->err), 0);
	assert_int_equal(place->plan->inodes, 4); /* d f n n/x.dat */
}

static void out_makes_targets(void **state)
{
	struct place *place = *state;

	add(place, SPEC_OUT, "r:shared/%x");
	add(place, SPEC_OUT, "inside:shared/into/");
	planned(place, SPEC_OUT, 2);
	is_below(place, place->plan->items[0].shared, "/shared/train");
	is_below(place, place->plan->items[1].shared, "/shared/into/inside");
	assert_string_equal(place->plan->items[1].local, "r");
	assert_true(place->plan->items[1].is_dir);
}

static void out_gathers_in_subdirectories(void **state)
{
	struct place *place = *state;

	add(place, SPEC_OUT, "r:shared/a");
	add(place, SPEC_OUT, "r:shared/b,gather=merge");
	add(place, SPEC_OUT, "r:shared/c.%N");
	add(place, SPEC_OUT, "r:shared/d/");
	place->context.node_count = 2;
	planned(place, SPEC_OUT, 4);
	is_below(place, place->plan->items[0].shared, "/shared/a/n1");
	is_below(place, place->plan->items[1].shared, "/shared/b");
	is_below(place, place->plan->items[2].shared, "/shared/c.n1");
	is_below(place, place->plan->items[3].shared, "/shared/d/n1/r");
	place->context.node_count = 1;
	planned(place, SPEC_OUT, 4);
	is_below(place, place->plan->items[0].shared, "/shared/a");
}

static void out_makes_a_problem_of_one_item_only(void **state)
{
	struct place *place = *state;

	add(place, SPEC_OUT, "none:shared/a");
	add(place, SPEC_OUT, "none:shared/b,optional");
	add(place, SPEC_OUT, "outside/passwd:shared/c");
	add(place, SPEC_OUT, "q*:shared/e/");
	add(place, SPEC_OUT, "r/a:shared/f");
	planned(place, SPEC_OUT, 5);
	assert_true(place->plan->items[0].missing);
	assert_non_null(strstr(place->plan->items[0].problem, "No such file"));
	assert_true(place->plan->items[1].missing);
	assert_null(place->plan->items[1].problem);
	assert_non_null(strstr(place->plan->items[2].problem, "leads outside of the stage"));
	assert_non_null(strstr(place->plan->items[3].problem, "nothing matches"));
	assert_false(place->plan->items[4].missing);
	assert_false(place->plan->items[4].is_dir);
}

static void out_knows_sources_too(void **state)
{
	struct place *place = *state;
	char source[128], *sources[] = { source };
	struct conf conf = { .sources = sources, .n_sources = 1 };

	snprintf(source, sizeof(source), "%s/shared/d", place->path);
	run_in(place, "ln -s /tmp shared/d/away");
	place->context.conf = &conf;
	add(place, SPEC_OUT, "r:shared/d/new/deep");
	add(place, SPEC_OUT, "r:shared/d/away/x");
	planned(place, SPEC_OUT, 2);
	assert_false(place->plan->items[0].missing);
	assert_non_null(strstr(place->plan->items[1].problem, "not below one of the sources"));
}

static void out_does_not_send_what_the_tool_keeps(void **state)
{
	struct place *place = *state;

	run_in(place, "mkdir stage/.stagetool");
	add(place, SPEC_OUT, ".*:shared/x/");
	planned(place, SPEC_OUT, 1);
	assert_non_null(place->plan->items[0].problem);
}

static void sync_goes_back_to_from(void **state)
{
	struct place *place = *state;

	run_in(place, "mkdir stage/d");
	add(place, SPEC_IN, "shared/d:d,sync");
	add(place, SPEC_OUT, "r:shared/a");
	planned(place, SPEC_OUT, 2);
	is_below(place, place->plan->items[1].shared, "/shared/d");
	assert_string_equal(place->plan->items[1].local, "d");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(in_follows_a_symlink_and_keeps_its_name),
		TEST(in_expands_globs_and_symbols),
		TEST(in_says_what_is_missing),
		TEST(in_refuses_what_it_may_not_read),
		TEST(in_names_both_of_two_with_one_target),
		TEST(sources_hold_against_symlinks_and_dots),
		TEST(first_is_for_the_first_node),
		TEST(measure_counts_what_is_there),
		TEST(measure_leaves_out_what_is_filtered),
		TEST(out_makes_targets),
		TEST(out_gathers_in_subdirectories),
		TEST(out_makes_a_problem_of_one_item_only),
		TEST(out_knows_sources_too),
		TEST(out_does_not_send_what_the_tool_keeps),
		TEST(sync_goes_back_to_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
