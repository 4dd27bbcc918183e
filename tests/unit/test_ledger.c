#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "stage/ledger.h"
#include "stage/stage.h"
#include "stage/tier.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MIB (UINT64_C(1) << 20)
#define NOBODY 65534

static char top[] = "/tmp/test_ledger.XXXXXX";
static struct state state;
static struct conf_tier tier;
static char tier_name[] = "nvme", tier_path[64];
static int tierfd = -1;
static bool mounted;

/* A tier of 64 MiB and 1000 inodes, in a mount namespace of this test's own. */
static int setup(void **unused)
{
	char path[128];

	(void)unused;
	if (!mkdtemp(top) || chmod(top, 0711))
		return -1;
	snprintf(tier_path, sizeof(tier_path), "%s/tier", top);
	snprintf(path, sizeof(path), "%s/state", top);
	tier = (struct conf_tier){ .name = tier_name, .path = tier_path, .min_free_percent = -1 };
	if (mkdir(tier_path, 0711) || chmod(tier_path, 0711) || state_open(path, &state, NULL))
		return -1;
	mounted = geteuid() == 0 && !unshare(CLONE_NEWNS) &&
		  !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		  !mount("t", tier_path, "tmpfs", 0, "size=64m,nr_inodes=1000,mode=0711");
	tierfd = tier_open(&tier, NULL);
	return tierfd < 0 ? -1 : 0;
}

static int teardown(void **unused)
{
	char command[64];

	(void)unused;
	close(tierfd);
	if (mounted)
		umount(tier_path);
	state_close(&state);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void set(char **field, const char *text)
{
	assert_int_equal(record_set(field, text, NULL), 0);
}

static struct record *new_record(const char *job)
{
	struct record *record = calloc(1, sizeof(*record));
	struct stat st;

	assert_non_null(record);
	set(&record->job_id, job);
	set(&record->node, "n1");
	set(&record->tier, tier.name);
	set(&record->tier_path, tier.path);
	set(&record->specs, "x");
	set(&record->boot_id, "boot");
	record->uid = record->gid = geteuid() == 0 ? NOBODY : geteuid();
	assert_int_equal(fstat(tierfd, &st), 0);
	record->stage_dev = st.st_dev;
	return record;
}

static int lock_of(const struct record *record)
{
	autofree char *name = record_name(record, ".lock");

	return state_lock(state.jobs, name, 0, NULL);
}

static int reserve(struct record *record, uint64_t bytes, uint64_t inodes, struct error *err)
{
	uint64_t most = 0;
	int rc = ledger_reserve(&state, &tier, tierfd, record,
		&(struct ledger_amount){ bytes, inodes }, &most, err);

	if (rc == 0)
		assert_true(most >= bytes);
	return rc;
}

static void expect_refused(struct record *record, uint64_t bytes, uint64_t inodes, const char *why)
{
	struct error err = ERROR_INIT;

	assert_int_equal(reserve(record, bytes, inodes, &err), -ENOSPC);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
}

static void forget(struct record *record, int lock)
{
	autofree char *name = record_name(record, "");

	record_remove(&state, name, NULL);
	close(lock);
	record_free(record);
}

static void test_promises(void **unused)
{
	struct record *a = new_record("1"), *b = new_record("2");
	int lock_a, lock_b;

	(void)unused;
	if (!mounted)
		skip();
	lock_a = lock_of(a);
	lock_b = lock_of(b);
	expect_refused(a, 65 * MIB, 1, "65.0 MiB of space are needed, 64.0 MiB are available");
	expect_refused(a, 1, 1001, "1001 inodes are needed");
	assert_int_equal(reserve(a, 40 * MIB, 500, NULL), 0);
	assert_int_equal(a->state, RECORD_STAGING);
	expect_refused(b, 30 * MIB, 1, "promised to 1 other jobs 40.0 MiB");
	expect_refused(b, 1, 600, "inodes");
	/* what a has copied is not free any more and not promised any more */
	ledger_note(&state, a, &(struct ledger_amount){ 20 * MIB, 400 });
	assert_int_equal(reserve(b, 40 * MIB, 600 - 10, NULL), 0);
	ledger_note(&state, a, &(struct ledger_amount){ 0, 0 });
	expect_refused(b, 30 * MIB, 1, "promised");
	/* a's process is gone, and nothing was ready */
	close(lock_a);
	assert_int_equal(reserve(b, 60 * MIB, 900, NULL), 0);
	/* a is a running job that was promised more than it staged */
	a->staged_bytes = 10 * MIB;
	assert_int_equal(record_save(&state, a, RECORD_READY, NULL), 0);
	expect_refused(b, 40 * MIB, 1, "promised to 1 other jobs 30.0 MiB");
	/* what is kept is said; it makes no promise, its space is used */
	a->until = 1798761600; /* 2027-01-01 in UTC */
	assert_int_equal(record_save(&state, a, RECORD_KEPT, NULL), 0);
	expect_refused(b, 65 * MIB, 1, ", results of 1 job are kept, those until 202");
	assert_int_equal(reserve(b, 60 * MIB, 900, NULL), 0);
	/* it is over, or the node was rebooted since */
	assert_int_equal(record_save(&state, a, RECORD_RETURNING, NULL), 0);
	assert_int_equal(reserve(b, 60 * MIB, 900, NULL), 0);
	set(&a->boot_id, "an older one");
	assert_int_equal(record_save(&state, a, RECORD_READY, NULL), 0);
	assert_int_equal(reserve(b, 60 * MIB, 900, NULL), 0);
	forget(a, -1);
	forget(b, lock_b);
}

static void test_min_free(void **unused)
{
	struct record *a = new_record("3");
	int lock = lock_of(a);

	(void)unused;
	if (!mounted)
		skip();
	tier.min_free_bytes = 60 * MIB;
	expect_refused(a, 5 * MIB, 1, "kept free 60.0 MiB");
	tier.min_free_percent = 50;
	expect_refused(a, 33 * MIB, 1, "kept free 32.0 MiB");
	expect_refused(a, 1, 600, "kept free 500");
	assert_int_equal(reserve(a, 30 * MIB, 400, NULL), 0);
	tier.min_free_percent = -1;
	tier.min_free_bytes = 0;
	forget(a, lock);
}

/* Twelve processes ask for 10 MiB each at once: six of them can have it. */
static void test_concurrent(void **unused)
{
	pid_t children[12];
	int go[2], asked[2], had = 0, status;
	char byte;

	(void)unused;
	if (!mounted)
		skip();
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(asked), 0);
	for (int i = 0; i < 12; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			char job[16];
			struct record *record;
			int code;

			snprintf(job, sizeof(job), "%d", 100 + i);
			record = new_record(job);
			if (lock_of(record) < 0)
				_exit(9);
			code = reserve(record, 10 * MIB, 1, NULL);
			close(go[1]);
			/* keeps its lock until all have asked */
			if (write(asked[1], "", 1) != 1 || read(go[0], &byte, 1) < 0)
				_exit(9);
			_exit(code == 0 ? 0 : code == -ENOSPC ? 1 : 2);
		}
	}
	close(go[0]);
	for (int i = 0; i < 12; i++)
		assert_int_equal(read(asked[0], &byte, 1), 1);
	close(go[1]);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		had += WEXITSTATUS(status) == 0;
	}
	close(asked[0]);
	close(asked[1]);
	assert_int_equal(had, 6);
}

static void test_tier(void **unused)
{
	struct conf_tier bad = tier;
	struct error err = ERROR_INIT;
	struct stat st;
	char missing[128];

	(void)unused;
	assert_int_equal(tier_probe(&tier, tierfd, "1.0", &err), 0);
	assert_int_equal(fstatat(tierfd, ".stagetool-probe.1.0", &st, 0), -1);
	snprintf(missing, sizeof(missing), "%s/missing", top);
	bad.path = missing;
	assert_int_equal(tier_open(&bad, &err), -ENOENT);
	assert_non_null(strstr(err.text, missing));
	assert_int_equal(mkdir(missing, 0700), 0);
	assert_int_equal(tier_open(&bad, &err), -EPERM);
	assert_int_equal(chmod(missing, 0777), 0);
	assert_int_equal(tier_open(&bad, &err), -EPERM);
	if (!mounted)
		return;
	bad = tier;
	bad.dax = CONF_DAX_REQUIRE;
	assert_int_equal(tier_probe(&bad, tierfd, "1.0", &err), -EOPNOTSUPP);
	assert_int_equal(mount(NULL, tier_path, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(tier_probe(&tier, tierfd, "1.0", &err), -EROFS);
	assert_int_equal(mount(NULL, tier_path, NULL, MS_REMOUNT, NULL), 0);
}

static void test_stage(void **unused)
{
	struct record *record = new_record("77");
	autofree char *path = stage_path(record), *moved = NULL;
	struct error err = ERROR_INIT;
	struct stat st;
	int fd;

	(void)unused;
	assert_non_null(strstr(path, "/tier/77.0"));
	umask(0);
	fd = stage_create(tierfd, record, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, record->uid);
	assert_int_equal(stage_create(tierfd, record, &err), -EEXIST);
	close(openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	close(fd);
	fd = stage_open(tierfd, record, &err);
	assert_true(fd >= 0);
	close(fd);
	record->stage_ino++;
	assert_int_equal(stage_open(tierfd, record, &err), -ESTALE);
	assert_int_equal(stage_remove(tierfd, record, &err), -ESTALE);
	assert_int_equal(stage_set_aside(tierfd, record, &moved, &err), 0);
	assert_non_null(moved);
	assert_int_equal(fstatat(tierfd, moved, &st, 0), 0);
	record->stage_ino--;
	record->present = true;
	assert_int_equal(renameat(tierfd, moved, tierfd, "77.0"), 0);
	assert_int_equal(stage_remove(tierfd, record, &err), 0);
	assert_false(record->present);
	assert_int_equal(fstatat(tierfd, "77.0", &st, 0), -1);
	err.code = 0;
	assert_int_equal(stage_remove(tierfd, record, &err), 0);
	assert_int_equal(err.code, 0);
	record_free(record);
}

/* A symlink in the place of the stage is never entered. */
static void test_planted(void **unused)
{
	struct record *record = new_record("78");
	struct error err = ERROR_INIT;
	char precious[128];

	(void)unused;
	snprintf(precious, sizeof(precious), "%s/precious", top);
	assert_int_equal(mkdir(precious, 0755), 0);
	assert_int_equal(symlinkat(precious, tierfd, "78.0"), 0);
	assert_int_equal(stage_create(tierfd, record, &err), -EEXIST);
	assert_true(stage_open(tierfd, record, &err) < 0);
	assert_true(stage_remove(tierfd, record, &err) < 0);
	assert_int_equal(access(precious, F_OK), 0);
	assert_int_equal(unlinkat(tierfd, "78.0", 0), 0);
	record_free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promises),
		cmocka_unit_test(test_min_free),
		cmocka_unit_test(test_concurrent),
		cmocka_unit_test(test_tier),
		cmocka_unit_test(test_stage),
		cmocka_unit_test(test_planted),
	};

	return cmocka_run_group_tests_name("ledger", tests, setup, teardown);
}
