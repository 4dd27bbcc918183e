#include "stage/record.h"

#include "base/cleanup.h"
#include "stage/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/* "JOBID.RESTART", each of at most 20 digits. */
#define NAME_SIZE 48

bool record_is_job_id(const char *text)
{
	size_t length = strspn(text, "0123456789");

	return length && length <= 20 && !text[length];
}

char *record_name(const struct record *record, const char *suffix)
{
	char *name;

	if (asprintf(&name, "%s.%" PRIu64 "%s", record->job_id, record->restart, suffix) < 0)
		return NULL;
	return name;
}

int record_set(char **field, const char *text, struct error *err)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return error_sys(err, -ENOMEM, "record");
	free(*field);
	*field = copy;
	return 0;
}

int record_save(
	const struct state *state, struct record *record, enum record_state next, struct error *err)
{
	autofree char *name = record_name(record, ".json"), *text = NULL;
	enum record_state before = record->state;
	json_t *object;
	int code;

	record->state = next;
	record->changed = (uint64_t)time(NULL);
	object = record_json(record);
	text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;
	json_decref(object);
	if (!name || !text)
		code = error_sys(err, -ENOMEM, "record of job %s", record->job_id);
	else
		code = state_write(state->jobs, name, text, strlen(text), true, (uid_t)-1, err);
	if (code) {
		record->state = before;
		return error_prefix(err, code, "%s/jobs", state->path);
	}
	return 0;
}

static int record_parse(
	const char *name, const char *text, size_t size, struct record **record, struct error *err)
{
	autofree char *own = NULL;
	json_error_t where;
	json_t *object = json_loadb(text, size, 0, &where);
	int code;

	if (!object)
		return error_set(err, -EBADMSG, "line %d: %s", where.line, where.text);
	code = record_from_json(object, record, err);
	json_decref(object);
	if (code)
		return code;
	own = record_name(*record, "");
	if (own && !strcmp(own, name))
		return 0;
	record_free(take_ptr(*record));
	return error_set(err, -EBADMSG, "it is the record of %s", own ? own : "something else");
}

int record_load(
	const struct state *state, const char *name, struct record **record, struct error *err)
{
	autofree char *file = NULL, *text = NULL;
	size_t size;
	int code;

	if (asprintf(&file, "%s.json", name) < 0)
		return error_sys(err, -ENOMEM, "record %s", name);
	code = state_read(state->jobs, file, RECORD_MAX_BYTES, &text, &size, err);
	if (code)
		return error_prefix(err, code, "%s/jobs", state->path);
	code = record_parse(name, text, size, record, err);
	return error_prefix(err, code, "%s/jobs/%s", state->path, file);
}

int record_remove(const struct state *state, const char *name, struct error *err)
{
	static const char *const suffixes[] = { ".progress", ".json" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		autofree char *file = NULL;

		if (asprintf(&file, "%s%s", name, suffixes[i]) < 0)
			return error_sys(err, -ENOMEM, "record %s", name);
		if (unlinkat(state->jobs, file, 0) && errno != ENOENT)
			return error_errno(err, "%s/jobs/%s: remove", state->path, file);
	}
	return 0;
}

/* Takes suffix off name, if it is "JOBID.RESTART" and suffix. */
static bool record_is_name(char *name, const char *job_id, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);
	size_t id = strspn(name, "0123456789");
	size_t restart;

	if (length < tail || strcmp(name + length - tail, suffix) || !id || name[id] != '.')
		return false;
	if (length - tail >= NAME_SIZE)
		return false;
	name[length - tail] = '\0';
	restart = strspn(name + id + 1, "0123456789");
	if (!restart || name[id + 1 + restart])
		return false;
	return !job_id || (strlen(job_id) == id && !memcmp(job_id, name, id));
}

struct record_names {
	char (*items)[NAME_SIZE];
	size_t count;
};

/* The names of all files that match, so that the directory may change while they are gone
 * through. */
static int record_names(const struct state *state, const char *job_id, const char *suffix,
	struct record_names *names, struct error *err)
{
	autodir DIR *dir = NULL;
	struct dirent *entry;
	int fd = openat(state->jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, "%s/jobs", state->path);
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return error_sys(err, -ENOMEM, "%s/jobs", state->path);
	}
	while ((errno = 0, entry = readdir(dir))) {
		char(*grown)[NAME_SIZE];

		if (!record_is_name(entry->d_name, job_id, suffix))
			continue;
		grown = reallocarray(names->items, names->count + 1, sizeof(*grown));
		if (!grown)
			return error_sys(err, -ENOMEM, "%s/jobs", state->path);
		names->items = grown;
		memcpy(grown[names->count++], entry->d_name, strlen(entry->d_name) + 1);
	}
	return errno ? error_errno(err, "%s/jobs: read directory", state->path) : 0;
}

int record_each(const struct state *state, const char *job_id, const char *suffix,
	int (*each)(void *ctx, const char *name, struct error *err), void *ctx, struct error *err)
{
	struct record_names names = { NULL, 0 };
	int code = record_names(state, job_id, suffix, &names, err);

	for (size_t i = 0; i < names.count && !code; i++)
		code = each(ctx, names.items[i], err);
	free(names.items);
	return code;
}
