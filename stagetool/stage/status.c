#include "stage/status.h"

#include "base/cleanup.h"
#include "stage/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static int status_set_text(json_t *object, const char *key, const char *text)
{
	return text && json_object_set_new(object, key, summary_json_bytes(text));
}

static int status_set_number(json_t *object, const char *key, uint64_t number)
{
	return number &&
	       json_object_set_new(object, key, json_integer((json_int_t)(number & INT64_MAX)));
}

static int status_set_outcomes(json_t *object, const struct record *record)
{
	json_t *items = json_array();
	size_t left = OUTCOME_PROBLEMS_ALL;
	int failed = 0;

	for (size_t i = 0; i < record->n_outcomes && !failed; i++) {
		json_t *item = outcome_json(&record->outcomes[i], &left);

		failed = !item ||
			 json_object_set_new(
				 item, "text", summary_json_bytes(record->outcomes[i].text)) ||
			 json_array_append_new(items, item);
	}
	return json_object_set_new(object, "items", items) || failed;
}

static int status_set_progress(json_t *object, const struct status_progress *progress)
{
	double rate = progress->seconds > 0 ? (double)progress->bytes / progress->seconds : 0;

	return json_object_set_new(object, "progress",
		json_pack("{s:I, s:I, s:I, s:I, s:f}", "files", (json_int_t)progress->files,
			"bytes", (json_int_t)progress->bytes, "total_bytes",
			(json_int_t)progress->total_bytes, "total_inodes",
			(json_int_t)progress->total_inodes, "bytes_per_second", rate));
}

json_t *status_json(const struct record *record, const struct status_progress *progress)
{
	json_t *object = json_object();
	autofree char *dir = stage_path(record);
	int failed =
		!dir || status_set_text(object, "job", record->job_id) ||
		json_object_set_new(object, "restart", json_integer((json_int_t)record->restart)) ||
		json_object_set_new(object, "uid", json_integer((json_int_t)record->uid)) ||
		status_set_text(object, "user", record->user) ||
		status_set_text(object, "name", record->job_name) ||
		status_set_text(object, "node", record->node) ||
		status_set_text(object, "state", record_state_name(record->state)) ||
		status_set_text(object, "tier", record->tier) ||
		status_set_text(object, "dir", record->present ? dir : NULL) ||
		status_set_text(object, "job_state", record->job_state) ||
		status_set_text(object, "notice", record->notice) ||
		status_set_text(object, "reason", record->reason) ||
		status_set_number(object, "created", record->created) ||
		status_set_number(object, "changed", record->changed) ||
		status_set_number(object, "until", record->until) ||
		status_set_number(object, "next_try", record->next_try) ||
		status_set_number(object, "superseded", record->superseded) ||
		status_set_number(object, "reserved_bytes", record->reserved_bytes) ||
		status_set_outcomes(object, record) ||
		(progress && status_set_progress(object, progress));

	if (failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* Lets one user list a directory that is closed to all others. Without ACLs it is open, and shows
 * no more than the ids of jobs: what is in the files is their owner's alone. */
static int status_let_in(int fd, uid_t uid)
{
	const struct __attribute__((packed)) {
		uint32_t version;
		struct __attribute__((packed)) {
			uint16_t tag, permissions;
			uint32_t id;
		} entries[5];
	} acl = {
		.version = 2,
		.entries = {
			{ 0x01, 7, UINT32_MAX }, /* the owner: rwx */
			{ 0x02, 5, uid },        /* the user: r-x */
			{ 0x04, 0, UINT32_MAX }, /* the group */
			{ 0x10, 5, UINT32_MAX }, /* the mask */
			{ 0x20, 0, UINT32_MAX }, /* all others */
		},
	};

	if (fsetxattr(fd, "system.posix_acl_access", &acl, sizeof(acl), 0) == 0)
		return 0;
	if (errno != EOPNOTSUPP)
		return -errno;
	return fchmod(fd, 0755) ? -errno : 0;
}

static int status_open_dir(
	const struct state *state, const struct record *record, bool make, struct error *err)
{
	autoclose int fd = -1;
	char name[24];
	int code;

	snprintf(name, sizeof(name), "%" PRIu64, record->uid);
	if (make && mkdirat(state->status, name, 0700) && errno != EEXIST)
		return error_errno(err, "%s/status/%s: mkdir", state->path, name);
	fd = openat(state->status, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, "%s/status/%s", state->path, name);
	code = make ? status_let_in(fd, (uid_t)record->uid) : 0;
	if (code)
		return error_sys(err, code, "%s/status/%s: let the user in", state->path, name);
	return take_fd(fd);
}

/* With the record the user can send the results themselves: it says what was asked for. */
static bool status_is_for_resume(const struct record *record)
{
	return record->state == RECORD_RETURNING || record->state == RECORD_KEPT;
}

int status_publish(const struct state *state, const struct record *record,
	const struct status_progress *progress, struct error *err)
{
	autofree char *name = record_name(record, ".json"), *text = NULL;
	autoclose int dir = status_open_dir(state, record, true, err);
	json_t *object;

	if (dir < 0)
		return dir;
	object = status_json(record, progress);
	if (status_is_for_resume(record) && object &&
		json_object_set_new(object, STATUS_RECORD, record_json(record))) {
		json_decref(object);
		object = NULL;
	}
	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!name || !text)
		return error_sys(err, -ENOMEM, "status of job %s", record->job_id);
	return state_write(dir, name, text, strlen(text), false, (uid_t)record->uid, err);
}

void status_withdraw(const struct state *state, const struct record *record)
{
	autofree char *name = record_name(record, ".json");
	autoclose int dir = status_open_dir(state, record, false, NULL);

	if (name && dir >= 0)
		unlinkat(dir, name, 0);
}
