#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage/manifest_private.h"
#include "stage/transfer.h"

/* A job's stage, a shared directory, and what one would do with the other. */
struct job {
	char path[64];
	int stagefd;
	struct spec_list list;
	struct error err;
	struct summary total;
};

static const struct symbols symbols = { .job_id = "7", .user = "me", .node = "n1" };

/* Runs a shell script in the directory of the test. */
static int shell(const struct job *job, const char *script)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && { %s\n}", job->path, script);
	return system(command);
}

static void assert_shell(const struct job *job, const char *script)
{
	if (shell(job, script) != 0)
		fail_msg("%s", script);
}

static int setup(void **state)
{
	struct job *job = calloc(1, sizeof(*job));
	char stage[128];

	strcpy(job->path, "/tmp/test_transfer.XXXXXX");
	if (!mkdtemp(job->path))
		return -1;
	assert_shell(job, "mkdir stage shared shared/d; echo 1 >shared/d/f; echo 2 >shared/d/g");
	snprintf(stage, sizeof(stage), "%s/stage", job->path);
	job->stagefd = open(stage, O_RDONLY | O_DIRECTORY);
	*state = job;
	return 0;
}

static int teardown(void **state)
{
	struct job *job = *state;

	close(job->stagefd);
	spec_list_free(&job->list);
	summary_free(&job->total);
	assert_shell(job, "chmod -R u+rwX . && rm -r stage shared other 2>/dev/null; :");
	rmdir(job->path);
	free(job);
	return 0;
}

static void add(struct job *job, enum spec_side side, const char *text)
{
	if (spec_list_add(&job->list, side, text, job->path, &job->err) < 0)
		fail_msg("%s", job->err.text);
}

/* Plans and carries out one way, and adds the results up in total. */
static void go(struct job *job, bool in)
{
	struct plan_context planning = { job->stagefd, &symbols, NULL, 0, 1 };
	struct transfer_context context = { .stagefd = job->stagefd,
		.private_stage = true,
		.conflict_suffix = "conflict-7-n1",
		.job_id = "7",
		.node = "n1" };
	struct summary results[16];
	struct plan *plan = NULL;

	memset(results, 0, sizeof(results));
	summary_free(&job->total);
	job->total = (struct summary){ 0 };
	if ((in ? plan_in : plan_out)(&job->list, &planning, &plan, &job->err) < 0)
		fail_msg("%s", job->err.text);
	if ((in ? transfer_in : transfer_out)(&context, plan, results, &job->err) < 0)
		fail_msg("%s", job->err.text);
	for (size_t i = 0; i < plan->count; i++) {
		summary_merge(&job->total, &results[i]);
		summary_free(&results[i]);
	}
	plan_free(plan);
}

/* As if the machine had gone down since the stage-in. */
static void reboot(const struct job *job)
{
	struct manifest *manifest;
	struct manifest_key key;

	assert_int_equal(manifest_open(job->stagefd, true, &manifest, NULL), 0);
	manifest_key_make(MANIFEST_META, META_STATE, "boot", 4, &key, NULL);
	assert_int_equal(manifest_put_value(manifest, &key, "before", 6, NULL), 0);
	assert_int_equal(manifest_sync(manifest, NULL), 0);
	manifest_close(manifest);
}

static void what_a_job_changed_goes_back(void **state)
{
	struct job *job = *state;

	add(job, SPEC_IN, "shared/d:d,sync");
	go(job, true);
	assert_int_equal(job->total.counts.files, 2);
	assert_shell(job, "echo 11 >stage/d/f; echo 3 >stage/d/new");
	go(job, false);
	assert_int_equal(job->total.counts.files, 2);
	assert_int_equal(job->total.counts.conflicts, 0);
	assert_shell(job, "diff -r stage/d shared/d");
}

static void after_a_crash_what_was_staged_in_replaces_nothing(void **state)
{
	struct job *job = *state;

	add(job, SPEC_IN, "shared/d:d");
	go(job, true);
	add(job, SPEC_OUT, "d:shared/d,delete,conflict=overwrite");
	assert_shell(job, ": >stage/d/f; rm stage/d/g; echo result >stage/d/new");
	reboot(job);
	go(job, false);
	assert_int_equal(job->total.counts.conflicts, 1);
	assert_true(job->total.counts.failed > 0);
	assert_int_equal(job->total.removed, 0);
	assert_shell(job, "[ \"$(cat shared/d/f shared/d/g)\" = \"$(printf '1\\n2')\" ]");
	assert_shell(job, "[ -e shared/d/f.conflict-7-n1 ] && cmp stage/d/new shared/d/new");
}

static void what_was_sent_before_a_crash_is_replaced_after_it(void **state)
{
	struct job *job = *state;

	add(job, SPEC_IN, "shared/d:d,sync");
	go(job, true);
	assert_shell(job, "echo 11 >stage/d/f");
	go(job, false);
	reboot(job);
	assert_shell(job, "echo 111 >stage/d/f");
	go(job, false);
	assert_int_equal(job->total.counts.conflicts, 0);
	assert_shell(job, "cmp stage/d/f shared/d/f");
}

static void no_temporary_name_is_used_in_a_private_stage(void **state)
{
	struct job *job = *state;

	add(job, SPEC_IN, "shared/d:d");
	assert_shell(job, "mkdir other; mkfifo shared/d/p");
	go(job, true);
	assert_shell(job, "diff shared/d/f stage/d/f && [ -p stage/d/p ]");
	assert_shell(job, "[ -z \"$(find stage -name '.stagetool-tmp*')\" ]");
}

static void what_is_missing_is_one_failed_item(void **state)
{
	struct job *job = *state;

	add(job, SPEC_IN, "shared/d:d");
	go(job, true);
	add(job, SPEC_OUT, "none:other/x");
	add(job, SPEC_OUT, "none:other/y,optional");
	add(job, SPEC_OUT, "d/f:other/z");
	assert_shell(job, "echo 5 >stage/d/f");
	go(job, false);
	assert_int_equal(job->total.counts.failed, 1);
	assert_int_equal(job->total.counts.files, 1);
	assert_shell(job, "cmp stage/d/f other/z && [ \"$(ls other)\" = z ]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_job_changed_goes_back),
		TEST(after_a_crash_what_was_staged_in_replaces_nothing),
		TEST(what_was_sent_before_a_crash_is_replaced_after_it),
		TEST(no_temporary_name_is_used_in_a_private_stage),
		TEST(what_is_missing_is_one_failed_item),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
