#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "stage/fields.h"
#include "stage/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char top[] = "/tmp/test_record.XXXXXX";
static struct state state;

static int setup(void **unused)
{
	char path[128];

	(void)unused;
	if (!mkdtemp(top))
		return -1;
	snprintf(path, sizeof(path), "%s/a/state", top);
	return state_open(path, &state, NULL);
}

static int teardown(void **unused)
{
	char command[64];

	(void)unused;
	state_close(&state);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void set(char **field, const char *text)
{
	assert_int_equal(record_set(field, text, NULL), 0);
}

static struct record *new_record(const char *job, uint64_t restart)
{
	struct record *record = calloc(1, sizeof(*record));

	assert_non_null(record);
	record->restart = restart;
	record->uid = 1000;
	record->gid = 1000;
	set(&record->job_id, job);
	set(&record->node, "n1");
	set(&record->tier, "nvme");
	set(&record->tier_path, "/local/\xff\n\"x");
	set(&record->specs, "in /proj/x:data");
	return record;
}

static void add_outcome(struct record *record)
{
	struct outcome *outcome = calloc(1, sizeof(*outcome));

	assert_non_null(outcome);
	outcome->text = strdup("results:/proj/\xfe");
	outcome->out = true;
	outcome->spec = 1;
	outcome->summary.counts.files = 12;
	outcome->summary.counts.bytes = 1ULL << 40;
	outcome->summary.removed = 3;
	outcome->summary.seconds = 1.5;
	for (int i = 0; i < 20; i++)
		summary_add_problem(&outcome->summary, "a\xff", "failed", "write: No space");
	outcome->summary.n_unnamed = 5;
	record->outcomes = outcome;
	record->n_outcomes = 1;
}

static void test_round_trip(void **unused)
{
	struct record *record = new_record("123", 2), *read;
	struct error err = ERROR_INIT;
	struct stat st;

	(void)unused;
	record->present = true;
	record->until = 1234567890;
	record->next_try = 1234560000;
	record->superseded = 3;
	record->told = 1;
	record->tier_ino = 128;
	record->project_id = 4294967294;
	set(&record->output, "/home/u/slurm \xc3\xa4.out");
	add_outcome(record);
	if (record_save(&state, record, RECORD_KEPT, &err))
		fail_msg("%s", err.text);
	assert_int_equal(fstatat(state.jobs, "123.2.json", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	if (record_load(&state, "123.2", &read, &err))
		fail_msg("%s", err.text);
	assert_int_equal(read->state, RECORD_KEPT);
	assert_string_equal(read->tier_path, record->tier_path);
	assert_string_equal(read->output, record->output);
	assert_true(read->present);
	assert_null(read->job_name);
	assert_int_equal(read->until, 1234567890);
	assert_int_equal(read->next_try, 1234560000);
	assert_int_equal(read->superseded, 3);
	assert_int_equal(read->told, 1);
	assert_int_equal(read->tier_ino, 128);
	assert_int_equal(read->project_id, 4294967294);
	assert_int_equal(read->uid, 1000);
	assert_int_equal(read->n_outcomes, 1);
	assert_string_equal(read->outcomes[0].text, "results:/proj/\xfe");
	assert_int_equal(read->outcomes[0].summary.counts.bytes, 1ULL << 40);
	assert_int_equal(read->outcomes[0].summary.removed, 3);
	assert_int_equal(read->outcomes[0].summary.n_problems, OUTCOME_PROBLEMS);
	assert_int_equal(read->outcomes[0].summary.n_unnamed, 5 + 20 - OUTCOME_PROBLEMS);
	record_free(read);
	record_free(record);
}

static void write_file(const char *name, const char *text)
{
	int fd = openat(state.jobs, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void expect_bad(const char *text, const char *why)
{
	struct error err = ERROR_INIT;
	struct record *read = NULL;

	write_file("7.0.json", text);
	assert_int_equal(record_load(&state, "7.0", &read, &err), -EBADMSG);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
	assert_null(read);
}

/* The record with one field exchanged; value NULL takes it out. */
static void expect_bad_field(const char *key, json_t *value, const char *why)
{
	struct record *record = new_record("7", 0);
	json_t *object = record_json(record);
	char *text;

	if (value)
		json_object_set_new(object, key, value);
	else
		json_object_del(object, key);
	text = json_dumps(object, 0);
	expect_bad(text, why);
	free(text);
	json_decref(object);
	record_free(record);
}

static void test_validation(void **unused)
{
	struct record *read;

	(void)unused;
	expect_bad("", "line 1");
	expect_bad("{\"version\":1", "line 1");
	expect_bad("[]", "version");
	expect_bad_field("version", json_integer(2), "version 2, expected 1");
	expect_bad_field("state", json_string("running?"), "unknown state");
	expect_bad_field("job_id", json_string("../7"), "job_id");
	expect_bad_field("job_id", json_string("8"), "it is the record of 8.0");
	expect_bad_field("restart", json_integer(1), "it is the record of 7.1");
	expect_bad_field("uid", json_integer(-1), "uid");
	expect_bad_field("uid", json_string("0"), "uid");
	expect_bad_field("uid", json_integer(UINT32_MAX), "uid");
	expect_bad_field("uid", NULL, "uid");
	expect_bad_field("gid", NULL, "gid");
	expect_bad_field("specs", NULL, "specs");
	expect_bad_field("specs", json_pack("{s:s}", "hex", "0"), "specs");
	expect_bad_field("specs", json_pack("{s:s}", "hex", "4100"), "specs");
	expect_bad_field("tier_path", json_string("x"), "absolute");
	expect_bad_field("present", json_integer(1), "present");
	expect_bad_field("outcomes", json_pack("[{}]"), "seconds");
	expect_bad_field("outcomes", json_object(), "outcomes");
	assert_int_equal(record_load(&state, "8.0", &read, NULL), -ENOENT);
	assert_int_equal(symlinkat("7.0.json", state.jobs, "9.0.json"), 0);
	assert_int_equal(record_load(&state, "9.0", &read, NULL), -ELOOP);
	unlinkat(state.jobs, "9.0.json", 0);
	unlinkat(state.jobs, "7.0.json", 0);
}

static int count(void *ctx, const char *name, struct error *err)
{
	(void)name;
	(void)err;
	(*(int *)ctx)++;
	return 0;
}

static int count_files(const char *job, const char *suffix)
{
	int n = 0;

	assert_int_equal(record_each(&state, job, suffix, count, &n, NULL), 0);
	return n;
}

static void test_each(void **unused)
{
	(void)unused;
	write_file("55.0.json", "{}");
	write_file("55.1.json", "{}");
	write_file("55.1.lock", "");
	write_file("555.0.json", "{}");
	write_file(".tmp.55.2.json", "{}");
	write_file("55.x.json", "{}");
	assert_int_equal(count_files("55", ".json"), 2);
	assert_int_equal(count_files("55", ".lock"), 1);
	assert_int_equal(count_files("5", ".json"), 0);
	assert_int_equal(record_remove(&state, "55.1", NULL), 0);
	assert_int_equal(record_remove(&state, "55.1", NULL), 0);
	assert_int_equal(count_files("55", ".json"), 1);
	assert_int_equal(count_files("55", ".lock"), 1);
}

static void test_state_dir(void **unused)
{
	char path[128];
	struct state other;
	struct error err = ERROR_INIT;
	struct stat st;

	(void)unused;
	assert_int_equal(fstatat(state.fd, "steps", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0711);
	assert_int_equal(fstatat(state.fd, "jobs", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	snprintf(path, sizeof(path), "%s/open", top);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(state_open(path, &other, &err), -EPERM);
	assert_non_null(strstr(err.text, "others may write"));
	if (geteuid() != 0)
		return;
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(state_open(path, &other, &err), -EPERM);
}

/* As many specs as a job can have, each with as many problems as are named. */
static void test_many_outcomes(void **unused)
{
	enum { OUTCOMES = 10000 };
	static char path[500];
	struct record *record = new_record("9", 0), *read;
	struct error err = ERROR_INIT;

	(void)unused;
	memset(path, 0xff, sizeof(path) - 1);
	record->outcomes = calloc(OUTCOMES, sizeof(*record->outcomes));
	assert_non_null(record->outcomes);
	for (; record->n_outcomes < OUTCOMES; record->n_outcomes++) {
		struct outcome *outcome = &record->outcomes[record->n_outcomes];

		outcome->text = strdup("/a:b,sync");
		outcome->spec = record->n_outcomes / 2;
		outcome->summary.counts.bytes = 1ULL << 50;
		for (int i = 0; i < OUTCOME_PROBLEMS; i++)
			summary_add_problem(&outcome->summary, path, "failed", path);
	}
	if (record_save(&state, record, RECORD_KEPT, &err) ||
		record_load(&state, "9.0", &read, &err))
		fail_msg("%s", err.text);
	assert_int_equal(read->n_outcomes, OUTCOMES);
	assert_int_equal(read->outcomes[0].summary.n_problems, OUTCOME_PROBLEMS);
	assert_int_equal(read->outcomes[OUTCOMES - 1].summary.n_problems, 0);
	assert_int_equal(read->outcomes[OUTCOMES - 1].summary.n_unnamed, OUTCOME_PROBLEMS);
	record_free(read);
	record_free(record);
}

static void test_lock(void **unused)
{
	int lock = state_lock(state.jobs, "l.lock", 0, NULL), again;
	pid_t child;
	int status;

	(void)unused;
	assert_true(lock >= 0);
	assert_int_equal(state_lock(state.jobs, "l.lock", 0, NULL), -EBUSY);
	child = fork();
	if (!child) {
		/* waits until the holder has let go of it, and must then hold the file that is there */
		int mine = close(lock) ? -1 : state_lock(state.jobs, "l.lock", 20, NULL);
		struct stat there, held;

		_exit(mine < 0 || fstat(mine, &held) || fstatat(state.jobs, "l.lock", &there, 0) ||
			there.st_ino != held.st_ino);
	}
	nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	state_unlock_remove(state.jobs, "l.lock", lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	again = state_lock(state.jobs, "l.lock", 0, NULL);
	assert_true(again >= 0);
	state_unlock_remove(state.jobs, "l.lock", again);
	assert_int_equal(faccessat(state.jobs, "l.lock", F_OK, 0), -1);
}

/* A process that was given a copy of the lock, and lives on, has it. */
static void test_lock_copy(void **unused)
{
	int lock = state_lock(state.jobs, "c.lock", 0, NULL), copy = dup(lock);

	(void)unused;
	assert_true(lock >= 0 && copy >= 0);
	state_unlock_remove(state.jobs, "c.lock", lock);
	assert_int_equal(state_lock(state.jobs, "c.lock", 0, NULL), -EBUSY);
	close(copy);
	lock = state_lock(state.jobs, "c.lock", 0, NULL);
	assert_true(lock >= 0);
	close(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_validation),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_state_dir),
		cmocka_unit_test(test_many_outcomes),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_lock_copy),
	};

	return cmocka_run_group_tests_name("record", tests, setup, teardown);
}
