#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stage/fields.h"
#include "stage/node.h"
#include "stage/outcome.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void test_bytes(void **state)
{
	static const char *const texts[] = { "", "plain", "\xc3\xa4 \n\"\\", "\xff\xfe/x", "\x01" };
	json_t *object = json_object();

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text, *dump;
		json_t *again;

		assert_int_equal(fields_set_bytes(object, "k", texts[i]), 0);
		dump = json_dumps(object, 0);
		again = json_loads(dump, 0, NULL);
		assert_int_equal(fields_get_bytes(again, "k", true, 100, &text, NULL), 0);
		assert_string_equal(text, texts[i]);
		free(text);
		free(dump);
		json_decref(again);
	}
	json_decref(object);
}

static void expect_no_bytes(const char *json, size_t max)
{
	json_t *object = json_loads(json, 0, NULL);
	struct error err = ERROR_INIT;
	char *text = NULL;

	assert_non_null(object);
	assert_int_equal(fields_get_bytes(object, "k", true, max, &text, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "\"k\""));
	assert_null(text);
	json_decref(object);
}

static void test_no_bytes(void **state)
{
	(void)state;
	expect_no_bytes("{}", 10);
	expect_no_bytes("{\"k\": 1}", 10);
	expect_no_bytes("{\"k\": null}", 10);
	expect_no_bytes("{\"k\": {\"hex\": 1}}", 10);
	expect_no_bytes("{\"k\": {\"hex\": \"4\"}}", 10);
	expect_no_bytes("{\"k\": {\"hex\": \"4G\"}}", 10);
	expect_no_bytes("{\"k\": {\"hex\": \"410042\"}}", 10);
	expect_no_bytes("{\"k\": \"12345678901\"}", 10);
	expect_no_bytes("{\"k\": {\"hex\": \"4141414141414141414141\"}}", 10);
}

static void test_numbers(void **state)
{
	json_t *object =
		json_pack("{s:i, s:i, s:f, s:s}", "max", 10, "minus", -1, "real", 1.0, "text", "1");
	uint64_t number;

	(void)state;
	assert_int_equal(fields_get_number(object, "max", 10, &number, NULL), 0);
	assert_int_equal(number, 10);
	assert_int_equal(fields_get_number(object, "max", 9, &number, NULL), -EBADMSG);
	assert_int_equal(fields_get_number(object, "minus", 10, &number, NULL), -EBADMSG);
	assert_int_equal(fields_get_number(object, "real", 10, &number, NULL), -EBADMSG);
	assert_int_equal(fields_get_number(object, "text", 10, &number, NULL), -EBADMSG);
	assert_int_equal(fields_get_number(object, "missing", 10, &number, NULL), 0);
	assert_int_equal(number, 0);
	json_decref(object);
}

static void test_complete(void **state)
{
	struct spec keep = { .conflict = SPEC_CONFLICT_KEEP },
		    fail = { .conflict = SPEC_CONFLICT_FAIL };
	struct summary summary = { .counts.files = 5, .counts.vanished = 1, .counts.special = 1 };

	(void)state;
	assert_true(outcome_complete(&summary, &keep, false));
	assert_false(outcome_complete(&summary, &keep, true));
	summary.counts.vanished = 0;
	assert_true(outcome_complete(&summary, &keep, true));
	summary.counts.conflicts = 1;
	assert_true(outcome_complete(&summary, &keep, true));
	assert_false(outcome_complete(&summary, &fail, true));
	assert_false(outcome_complete(&summary, &keep, false));
	summary.counts.conflicts = 0;
	summary.counts.changed = 1;
	assert_false(outcome_complete(&summary, &keep, true));
	summary.counts.changed = 0;
	summary.counts.failed = 1;
	assert_false(outcome_complete(&summary, &keep, true));
}

static void expect_reason(const struct outcome *outcome, const char *want)
{
	char *reason = outcome_reason(outcome);

	assert_string_equal(reason, want);
	free(reason);
}

static void test_reason(void **state)
{
	char text[] = "a:b";
	struct outcome outcome = { .text = text, .out = true };

	(void)state;
	expect_reason(&outcome, "stage-out a:b: not complete");
	summary_add_problem(&outcome.summary, "x", "attribute", "chmod");
	summary_add_problem(&outcome.summary, "d/f", "failed", "write: No space left on device");
	outcome.summary.counts.failed = 3;
	expect_reason(&outcome, "stage-out a:b: d/f: write: No space left on device, and 2 more");
	outcome.out = false;
	outcome.summary.counts.failed = 1;
	expect_reason(&outcome, "stage-in a:b: d/f: write: No space left on device");
	summary_free(&outcome.summary);
}

/* However long names are, a message and a record stay small. */
static void test_small(void **state)
{
	static char path[200000];
	char text[] = "a:b", *dump;
	struct outcome outcome = { .text = text };
	json_t *object;

	(void)state;
	memset(path, 0xff, sizeof(path) - 1);
	for (int i = 0; i < 50; i++)
		summary_add_problem(&outcome.summary, path, "failed", path);
	object = outcome_json(&outcome, NULL);
	dump = json_dumps(object, JSON_COMPACT);
	assert_true(strlen(dump) < 60000);
	summary_free(&outcome.summary);
	assert_int_equal(outcome_from_json(object, &outcome, NULL), 0);
	assert_int_equal(outcome.summary.n_unnamed, 50 - OUTCOME_PROBLEMS);
	outcome_free(&outcome);
	free(dump);
	json_decref(object);
}

/* What is taken from a worker can always be written into the record. */
static void test_words(void **state)
{
	char text[] = "a:b";
	struct outcome outcome = { .text = text }, read;
	json_t *object, *problem;

	(void)state;
	summary_add_problem(&outcome.summary, "a", "failed", "b");
	object = outcome_json(&outcome, NULL);
	problem = json_array_get(json_object_get(object, "problems"), 0);
	assert_int_equal(outcome_from_json(object, &read, NULL), 0);
	outcome_free(&read);
	json_object_set_new(problem, "kind", json_pack("{s:s}", "hex", "ff"));
	assert_int_equal(outcome_from_json(object, &read, NULL), -EBADMSG);
	json_object_set_new(problem, "kind", json_string("fai led"));
	assert_int_equal(outcome_from_json(object, &read, NULL), -EBADMSG);
	summary_free(&outcome.summary);
	json_decref(object);
}

/* A worker may say only what it was asked about. */
static void test_take(void **state)
{
	struct spec items[2] = {
		{ .side = SPEC_IN, .text = (char *)(uintptr_t) "in", .sync = true },
		{ .side = SPEC_OUT, .text = (char *)(uintptr_t) "out" },
	};
	struct spec_list list = { .items = items, .count = 2 };
	struct record *record = calloc(1, sizeof(*record));
	struct outcome told = { .text = (char *)(uintptr_t) "forged", .spec = 1, .out = true };
	json_t *message;

	(void)state;
	assert_int_equal(node_expect(record, &list, NULL), 0);
	assert_int_equal(record->n_outcomes, 3);
	told.delivered = true;
	told.summary.counts.files = 7;
	message = outcome_json(&told, NULL);
	assert_int_equal(node_take_outcome(record, message, NULL), 0);
	assert_true(record->outcomes[2].delivered);
	assert_int_equal(record->outcomes[2].summary.counts.files, 7);
	assert_string_equal(record->outcomes[2].text, "out");
	assert_false(record->outcomes[1].delivered);
	json_object_set_new(message, "out", json_false());
	assert_int_equal(node_take_outcome(record, message, NULL), -EBADMSG);
	json_object_set_new(message, "out", json_true());
	json_object_set_new(message, "spec", json_integer(9));
	assert_int_equal(node_take_outcome(record, message, NULL), -EBADMSG);
	json_object_set_new(message, "spec", json_integer(1));
	json_object_set_new(message, "files", json_integer(-1));
	assert_int_equal(node_take_outcome(record, message, NULL), -EBADMSG);
	json_decref(message);
	record_free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_no_bytes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_reason),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_take),
	};

	return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
