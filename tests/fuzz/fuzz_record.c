/*
 * The record of a job, and in it the outcomes that a worker, which is the user's, tells root. What
 * is accepted can be written, and what was written can be read and is the same again.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"
#include "stage/record.h"

static struct record *read_record(const char *text, size_t size)
{
	struct record *record = NULL;
	struct error err = ERROR_INIT;
	json_t *object = json_loadb(text, size, 0, NULL);

	if (object && record_from_json(object, &record, &err))
		fuzz_require(!record && err.code < 0 && *err.text);
	json_decref(object);
	return record;
}

static void check(const struct record *record)
{
	fuzz_require(record_is_job_id(record->job_id) && record->node && record->tier);
	fuzz_require(
		record->specs && *record->tier_path == '/' && record_state_name(record->state));
	for (size_t i = 0; i < record->n_outcomes; i++) {
		autofree char *reason = outcome_reason(&record->outcomes[i]);
		autofree char *line = summary_line(&record->outcomes[i].summary);

		fuzz_require(reason && line && record->outcomes[i].text);
	}
}

static char *write_record(const struct record *record)
{
	json_t *object = record_json(record);
	char *text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;

	fuzz_require(text);
	json_decref(object);
	return text;
}

static void forget_problems(json_t *object)
{
	json_t *outcome;
	size_t i;

	json_array_foreach(json_object_get(object, "outcomes"), i, outcome)
		json_object_del(outcome, "problems");
}

/* The same, but for the texts of problems, which are cut and escaped each time they are written. */
static void check_equal(const char *text, const char *text_again)
{
	json_t *one = json_loads(text, 0, NULL), *other = json_loads(text_again, 0, NULL);

	forget_problems(one);
	forget_problems(other);
	fuzz_require(one && other && json_equal(one, other));
	json_decref(one);
	json_decref(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record *record = read_record((const char *)data, size), *again;
	autofree char *text = NULL, *text_again = NULL;

	if (!record)
		return 0;
	check(record);
	text = write_record(record);
	record_free(record);
	again = read_record(text, strlen(text));
	fuzz_require(again);
	text_again = write_record(again);
	record_free(again);
	check_equal(text, text_again);
	return 0;
}
