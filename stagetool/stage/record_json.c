#include "stage/record.h"

#include "base/cleanup.h"
#include "stage/fields.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define STRING_MAX (SPEC_MAX_BYTES + 4096)
/* As many as specs have room: the shortest is "in /a:b,sync" and has two. */
#define OUTCOMES_MAX (2 * SPEC_MAX_BYTES / 12)

static const char *const state_names[] = {
	[RECORD_PLANNED] = "planned",
	[RECORD_STAGING] = "staging",
	[RECORD_READY] = "ready",
	[RECORD_RETURNING] = "returning",
	[RECORD_KEPT] = "kept",
	[RECORD_FAILED] = "failed",
	[RECORD_DONE] = "done",
};

#define N_STATES (sizeof(state_names) / sizeof(state_names[0]))

static const struct {
	const char *key;
	size_t offset; /* of a char * in struct record */
	bool required;
} strings[] = {
#define STRING(name, required) #name, offsetof(struct record, name), required
	{ STRING(job_id, true) },
	{ STRING(user, false) },
	{ STRING(node, true) },
	{ STRING(boot_id, false) },
	{ STRING(tier, true) },
	{ STRING(tier_path, true) },
	{ STRING(specs, true) },
	{ STRING(job_name, false) },
	{ STRING(array_job_id, false) },
	{ STRING(array_task_id, false) },
	{ STRING(node_index, false) },
	{ STRING(output, false) },
	{ STRING(job_state, false) },
	{ STRING(notice, false) },
	{ STRING(reason, false) },
#undef STRING
};

static const struct {
	const char *key;
	size_t offset; /* of an uint64_t in struct record */
	uint64_t max;
} numbers[] = {
#define NUMBER(name, max) #name, offsetof(struct record, name), max
	{ NUMBER(restart, UINT32_MAX) },
	{ NUMBER(uid, UINT32_MAX - 1) },
	{ NUMBER(gid, UINT32_MAX - 1) },
	{ NUMBER(stage_dev, INT64_MAX) },
	{ NUMBER(stage_ino, INT64_MAX) },
	{ NUMBER(tier_ino, INT64_MAX) },
	{ NUMBER(reserved_bytes, INT64_MAX) },
	{ NUMBER(reserved_inodes, INT64_MAX) },
	{ NUMBER(staged_bytes, INT64_MAX) },
	{ NUMBER(staged_inodes, INT64_MAX) },
	{ NUMBER(project_id, UINT32_MAX - 1) },
	{ NUMBER(node_count, UINT32_MAX) },
	{ NUMBER(created, INT64_MAX) },
	{ NUMBER(changed, INT64_MAX) },
	{ NUMBER(until, INT64_MAX) },
	{ NUMBER(tries, UINT32_MAX) },
	{ NUMBER(next_try, INT64_MAX) },
	{ NUMBER(superseded, UINT32_MAX) },
	{ NUMBER(told, 1) },
#undef NUMBER
};

#define N_STRINGS (sizeof(strings) / sizeof(strings[0]))
#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

const char *record_state_name(enum record_state state)
{
	return state_names[state];
}

static char **record_string(const struct record *record, size_t i)
{
	return (char **)((char *)(uintptr_t)record + strings[i].offset);
}

static uint64_t *record_number(const struct record *record, size_t i)
{
	return (uint64_t *)((char *)(uintptr_t)record + numbers[i].offset);
}

json_t *record_json(const struct record *record)
{
	json_t *object = json_object(), *outcomes = json_array();
	size_t left = OUTCOME_PROBLEMS_ALL;
	int failed = fields_set_number(object, "version", RECORD_VERSION) ||
		     fields_set_bytes(object, "state", record_state_name(record->state)) ||
		     json_object_set_new(object, "present", json_boolean(record->present));

	for (size_t i = 0; i < N_STRINGS && !failed; i++)
		failed = fields_set_bytes(object, strings[i].key, *record_string(record, i));
	for (size_t i = 0; i < N_NUMBERS && !failed; i++)
		failed = fields_set_number(object, numbers[i].key, *record_number(record, i));
	for (size_t i = 0; i < record->n_outcomes && !failed; i++)
		failed = json_array_append_new(outcomes, outcome_json(&record->outcomes[i], &left));
	if (json_object_set_new(object, "outcomes", outcomes) || failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int record_read_state(const json_t *object, struct record *record, struct error *err)
{
	autofree char *name = NULL;
	int code = fields_get_bytes(object, "state", true, 32, &name, err);

	for (size_t i = 0; !code && i < N_STATES; i++) {
		if (!strcmp(name, state_names[i])) {
			record->state = (enum record_state)i;
			return 0;
		}
	}
	return code ? code : error_set(err, -EBADMSG, "\"state\": unknown state '%s'", name);
}

static int record_read_outcomes(const json_t *object, struct record *record, struct error *err)
{
	const json_t *array = json_object_get(object, "outcomes");
	size_t count = json_array_size(array);
	int code = 0;

	if (!json_is_array(array) || count > OUTCOMES_MAX)
		return error_set(err, -EBADMSG, "\"outcomes\": expected a list");
	record->outcomes = calloc(count ? count : 1, sizeof(*record->outcomes));
	if (!record->outcomes)
		return error_sys(err, -ENOMEM, "record");
	for (size_t i = 0; i < count && !code; i++) {
		code = outcome_from_json(json_array_get(array, i), &record->outcomes[i], err);
		record->n_outcomes += !code;
	}
	return code;
}

/* What a type does not say. */
static int record_validate(const struct record *record, struct error *err)
{
	if (!record_is_job_id(record->job_id))
		return error_set(err, -EBADMSG, "\"job_id\": expected a number");
	if (record->tier_path[0] != '/')
		return error_set(err, -EBADMSG, "\"tier_path\": expected an absolute path");
	if (record->output && record->output[0] != '/')
		return error_set(err, -EBADMSG, "\"output\": expected an absolute path");
	return 0;
}

static int record_read(const json_t *object, struct record *record, struct error *err)
{
	uint64_t version;
	int code = fields_get_number(object, "version", UINT32_MAX, &version, err);

	if (!code && version != RECORD_VERSION)
		return error_set(err, -EBADMSG, "version %ju, expected %d", (uintmax_t)version,
			RECORD_VERSION);
	/* a number that is missing is 0, and user 0 is root */
	if (!code && (!json_object_get(object, "uid") || !json_object_get(object, "gid")))
		return error_set(err, -EBADMSG, "\"uid\" and \"gid\": expected");
	if (!code)
		code = record_read_state(object, record, err);
	if (!code)
		code = fields_get_bool(object, "present", &record->present, err);
	for (size_t i = 0; i < N_STRINGS && !code; i++)
		code = fields_get_bytes(object, strings[i].key, strings[i].required, STRING_MAX,
			record_string(record, i), err);
	for (size_t i = 0; i < N_NUMBERS && !code; i++)
		code = fields_get_number(
			object, numbers[i].key, numbers[i].max, record_number(record, i), err);
	if (!code)
		code = record_read_outcomes(object, record, err);
	return code ? code : record_validate(record, err);
}

int record_from_json(const json_t *object, struct record **record, struct error *err)
{
	struct record *read = calloc(1, sizeof(*read));
	int code;

	if (!read)
		return error_sys(err, -ENOMEM, "record");
	code = record_read(object, read, err);
	if (code) {
		record_free(read);
		return code;
	}
	*record = read;
	return 0;
}

void record_free(struct record *record)
{
	if (!record)
		return;
	for (size_t i = 0; i < N_STRINGS; i++)
		free(*record_string(record, i));
	outcome_free_all(record->outcomes, record->n_outcomes);
	free(record);
}
