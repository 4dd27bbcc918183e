#include "stage/status.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/* What is shown, and the record. */
#define STATUS_MAX_BYTES (2 * RECORD_MAX_BYTES)

struct status_collect {
	json_t *list;
	unsigned bad;
};

struct status_records {
	const struct state *state;
	struct status_collect *collect;
};

static int status_add(struct status_collect *collect, json_t *status, struct error *err)
{
	if (!status || json_array_append_new(collect->list, status))
		return error_sys(err, -ENOMEM, "status");
	return 0;
}

static int status_add_record(void *ctx, const char *name, struct error *err)
{
	const struct status_records *records = ctx;
	struct status_collect *collect = records->collect;
	struct status_progress progress = { 0 };
	struct ledger_amount noted;
	struct record *record;
	json_t *status;
	int code = record_load(records->state, name, &record, NULL);

	if (code) {
		collect->bad += code != -ENOENT;
		return 0;
	}
	if (record->state == RECORD_STAGING) {
		ledger_noted(records->state, name, &noted);
		progress.files = noted.inodes;
		progress.bytes = noted.bytes;
		progress.total_bytes = record->reserved_bytes;
		progress.total_inodes = record->reserved_inodes;
		progress.seconds = difftime(time(NULL), (time_t)record->changed);
	}
	status = status_json(record, record->state == RECORD_STAGING ? &progress : NULL);
	record_free(record);
	return status_add(collect, status, err);
}

/* The records themselves, without making anything where there is no state_dir yet. */
static int status_list_records(const char *state_dir, const char *job_id,
	struct status_collect *collect, struct error *err)
{
	struct state state;
	struct status_records records = { &state, collect };
	int fd = path_open(state_dir, O_RDONLY | O_DIRECTORY, NULL), code;

	if (fd < 0)
		return fd == -ENOENT ? 0 : error_sys(err, fd, "%s", state_dir);
	close(fd);
	code = state_open(state_dir, &state, err);
	if (code)
		return code;
	code = record_each(&state, job_id, ".json", status_add_record, &records, err);
	state_close(&state);
	return code;
}

static bool status_is_wanted(const char *name, const char *job_id)
{
	size_t length = strlen(name);
	size_t id = strspn(name, "0123456789");

	if (length < 5 || strcmp(name + length - 5, ".json") || !id || name[id] != '.')
		return false;
	return !job_id || (strlen(job_id) == id && !memcmp(job_id, name, id));
}

static int status_add_copy(
	struct status_collect *collect, int dirfd, const char *name, struct error *err)
{
	autofree char *text = NULL;
	json_t *status;
	size_t size;

	if (state_read(dirfd, name, STATUS_MAX_BYTES, &text, &size, NULL))
		return 0; /* it went meanwhile, or was never ours */
	status = json_loadb(text, size, 0, NULL);
	if (!json_is_object(status)) {
		json_decref(status);
		collect->bad++;
		return 0;
	}
	return status_add(collect, status, err);
}

static int status_list_copies(const char *state_dir, const char *job_id,
	struct status_collect *collect, struct error *err)
{
	autofree char *path = NULL;
	autodir DIR *dir = NULL;
	struct dirent *entry;
	int fd, code = 0;

	if (asprintf(&path, "%s/status/%u", state_dir, geteuid()) < 0)
		return error_sys(err, -ENOMEM, "status");
	fd = path_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, NULL);
	if (fd < 0)
		return fd == -ENOENT ? 0 : error_sys(err, fd, "%s", path);
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return error_sys(err, -ENOMEM, "%s", path);
	}
	while (!code && (errno = 0, entry = readdir(dir)))
		if (status_is_wanted(entry->d_name, job_id))
			code = status_add_copy(collect, dirfd(dir), entry->d_name, err);
	if (!code && errno)
		return error_errno(err, "%s: read directory", path);
	return code;
}

int status_list(
	const char *state_dir, const char *job_id, json_t **list, unsigned *bad, struct error *err)
{
	struct status_collect collect = { .list = json_array() };
	int code;

	if (!collect.list)
		return error_sys(err, -ENOMEM, "status");
	code = (geteuid() == 0 ? status_list_records : status_list_copies)(
		state_dir, job_id, &collect, err);
	if (code) {
		json_decref(collect.list);
		return code;
	}
	*list = collect.list;
	*bad = collect.bad;
	return 0;
}
