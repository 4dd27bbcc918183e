#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "stage/project.h"
#include "stage/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static char top[] = "/tmp/test_project.XXXXXX";
static struct state state;

static int setup(void **unused)
{
	char path[128];

	(void)unused;
	if (!mkdtemp(top))
		return -1;
	snprintf(path, sizeof(path), "%s/state", top);
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

static struct record *new_record(const char *job, uint32_t project)
{
	struct record *record = calloc(1, sizeof(*record));

	assert_non_null(record);
	set(&record->job_id, job);
	set(&record->node, "n1");
	set(&record->tier, "nvme");
	set(&record->tier_path, "/local/nvme");
	set(&record->specs, "x");
	record->project_id = project;
	return record;
}

static void save(const char *job, uint32_t project, enum record_state at)
{
	struct record *record = new_record(job, project);

	assert_int_equal(record_save(&state, record, at, NULL), 0);
	record_free(record);
}

static void test_next(void **unused)
{
	static uint32_t items[] = { 3, 10, 11, 11, 13, UINT32_MAX - 1 };
	const struct project_ids ids = { items, sizeof(items) / sizeof(items[0]) }, none = { 0 };

	(void)unused;
	assert_int_equal(project_next(&none, 10, 20), 10);
	assert_int_equal(project_next(&none, 10, 10), 10);
	assert_int_equal(project_next(&none, 21, 20), 0);
	assert_int_equal(project_next(&ids, 10, 20), 12);
	assert_int_equal(project_next(&ids, 13, 20), 14);
	assert_int_equal(project_next(&ids, 10, 11), 0);
	assert_int_equal(project_next(&ids, 4, 20), 4);
	assert_int_equal(project_next(&ids, UINT32_MAX - 1, UINT32_MAX - 1), 0);
	assert_int_equal(project_next(&ids, UINT32_MAX - 2, UINT32_MAX - 1), UINT32_MAX - 2);
}

/* An id is its record's, whatever state that has come to, until it is taken out. */
static void test_load(void **unused)
{
	struct record *self = new_record("4", 0);
	struct project_ids ids = { 0 };
	int fd;

	(void)unused;
	save("1", 12, RECORD_KEPT);
	save("2", 10, RECORD_PLANNED);
	save("3", 0, RECORD_READY);
	save("4", 11, RECORD_STAGING);
	save("5", 4000000000, RECORD_FAILED);
	fd = openat(state.jobs, "6.0.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{", 1), 1);
	close(fd);
	assert_int_equal(project_ids_load(&state, self, &ids, NULL), 0);
	assert_int_equal(ids.count, 3);
	assert_int_equal(ids.items[0], 10);
	assert_int_equal(ids.items[1], 12);
	assert_int_equal(ids.items[2], 4000000000);
	assert_int_equal(project_next(&ids, 10, 20), 11);
	project_ids_free(&ids);
	save("1", 0, RECORD_DONE);
	assert_int_equal(project_ids_load(&state, self, &ids, NULL), 0);
	assert_int_equal(ids.count, 2);
	project_ids_free(&ids);
	record_free(self);
}

/* Where there are no quotas: who wants one is told, and nothing is left to be taken back. */
static void test_without(void **unused)
{
	struct conf_tier tier = { .project_first = 10, .project_last = 20 };
	struct record *record = new_record("7", 0);
	char name[] = "nvme", path[] = "/proc";
	struct error err = ERROR_INIT;
	autoclose int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)unused;
	tier.name = name;
	tier.path = path;
	assert_int_equal(quota_enforced(fd, NULL), -EOPNOTSUPP);
	assert_int_equal(project_hold(&state, &tier, fd, record, 1 << 20, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "tier nvme: /proc: project_ids = 10-20: "));
	assert_int_equal(record->project_id, 0);
	err.code = 0;
	record->project_id = 10;
	if (geteuid() == 0) {
		assert_int_equal(project_release(fd, record, &err), 0);
		assert_int_equal(record->project_id, 0);
	}
	assert_int_equal(err.code, 0);
	record_free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_without),
	};

	return cmocka_run_group_tests_name("project", tests, setup, teardown);
}
