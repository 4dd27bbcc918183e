#include "stage/outcome.h"

#include "base/cleanup.h"
#include "stage/fields.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define PATH_SHOWN 400
#define TEXT_SHOWN 600
#define SPEC_TEXT_MAX SPEC_MAX_BYTES
/* Escapes make a byte four. */
#define SHOWN_MAX 4096

static const struct {
	const char *key;
	size_t offset; /* of an uint64_t in struct summary */
} numbers[] = {
#define COUNT(name) #name, offsetof(struct summary, counts.name)
	{ COUNT(files) },
	{ COUNT(directories) },
	{ COUNT(symlinks) },
	{ COUNT(others) },
	{ COUNT(bytes) },
	{ COUNT(unchanged) },
	{ COUNT(failed) },
	{ COUNT(vanished) },
	{ COUNT(changed) },
	{ COUNT(conflicts) },
	{ COUNT(attributes) },
	{ COUNT(dropped) },
	{ COUNT(special) },
#undef COUNT
	{ "removed", offsetof(struct summary, removed) },
};

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

bool outcome_complete(const struct summary *summary, const struct spec *spec, bool out)
{
	const struct copy_counts *counts = &summary->counts;

	/* what is not there twice was not removed, it can not be read: it must not go with the stage */
	if (counts->failed || counts->changed || (out && counts->vanished))
		return false;
	return !counts->conflicts || (out && spec->conflict != SPEC_CONFLICT_FAIL);
}

static bool outcome_is_fatal(const char *kind, bool out)
{
	return (out && !strcmp(kind, "vanished")) || !strcmp(kind, "failed") ||
	       !strcmp(kind, "changed") || !strcmp(kind, "conflict");
}

char *outcome_reason(const struct outcome *outcome)
{
	const struct copy_counts *counts = &outcome->summary.counts;
	uint64_t wrong = counts->failed + counts->changed + counts->conflicts +
			 (outcome->out ? counts->vanished : 0);
	const char *what = outcome->out ? "stage-out" : "stage-in";
	const struct summary_problem *first = NULL;
	char more[64] = "";
	char *reason;

	for (size_t i = 0; i < outcome->summary.n_problems && !first; i++)
		if (outcome_is_fatal(outcome->summary.problems[i].kind, outcome->out))
			first = &outcome->summary.problems[i];
	if (wrong > 1)
		snprintf(more, sizeof(more), ", and %ju more", (uintmax_t)wrong - 1);
	if (asprintf(&reason, "%s %s: %s%s%s%s", what, outcome->text, first ? first->path : "",
		    first && *first->path ? ": " : "", first ? first->text : "not complete",
		    more) < 0)
		return NULL;
	return reason;
}

/* text with its middle taken out where it is longer than max. Caller frees. */
static char *outcome_cut(const char *text, size_t max)
{
	size_t length = strlen(text);
	char *cut = NULL;

	if (length <= max)
		return strdup(text);
	if (asprintf(&cut, "%.*s...%s", (int)(max / 2), text, text + length - max / 2) < 0)
		return NULL;
	return cut;
}

static json_t *outcome_problem_json(const struct summary_problem *problem)
{
	autofree char *path = outcome_cut(problem->path, PATH_SHOWN);
	autofree char *text = outcome_cut(problem->text, TEXT_SHOWN);

	if (!path || !text)
		return NULL;
	return json_pack("{s:o, s:s, s:o}", "path", summary_json_bytes(path), "kind", problem->kind,
		"text", summary_json_bytes(text));
}

json_t *outcome_json(const struct outcome *outcome, size_t *left)
{
	const struct summary *summary = &outcome->summary;
	json_t *object = json_object(), *problems = json_array();
	size_t most = left && *left < OUTCOME_PROBLEMS ? *left : OUTCOME_PROBLEMS, shown = 0;
	int failed = fields_set_number(object, "spec", outcome->spec) ||
		     fields_set_bytes(object, "text", outcome->text) ||
		     json_object_set_new(object, "out", json_boolean(outcome->out)) ||
		     json_object_set_new(object, "missing", json_boolean(outcome->missing)) ||
		     json_object_set_new(object, "delivered", json_boolean(outcome->delivered)) ||
		     json_object_set_new(object, "seconds", json_real(summary->seconds));

	for (size_t i = 0; i < N_NUMBERS && !failed; i++)
		failed = fields_set_number(object, numbers[i].key,
			*(const uint64_t *)((const char *)summary + numbers[i].offset));
	for (; shown < summary->n_problems && shown < most && !failed; shown++)
		failed = json_array_append_new(
			problems, outcome_problem_json(&summary->problems[shown]));
	if (left)
		*left -= shown;
	failed = failed || fields_set_number(object, "problems_unnamed",
				   summary->n_unnamed + summary->n_problems - shown);
	if (json_object_set_new(object, "problems", problems) || failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int outcome_read_problem(const json_t *value, struct summary *summary, struct error *err)
{
	autofree char *path = NULL;
	autofree char *kind = NULL;
	autofree char *text = NULL;
	int code = fields_get_bytes(value, "path", true, SHOWN_MAX, &path, err);

	if (code)
		return code;
	code = fields_get_bytes(value, "kind", true, 32, &kind, err);
	if (code)
		return code;
	if (kind[strspn(kind, "abcdefghijklmnopqrstuvwxyz")])
		return error_set(err, -EBADMSG, "\"kind\": expected a word");
	code = fields_get_bytes(value, "text", true, SHOWN_MAX, &text, err);
	if (!code)
		summary_add_problem(summary, path, kind, text);
	return code;
}

static int outcome_read_problems(const json_t *object, struct summary *summary, struct error *err)
{
	const json_t *problems = json_object_get(object, "problems");
	uint64_t unnamed = 0;
	int code = fields_get_number(object, "problems_unnamed", INT64_MAX, &unnamed, err);

	if (!code && (!json_is_array(problems) || json_array_size(problems) > OUTCOME_PROBLEMS))
		return error_set(
			err, -EBADMSG, "\"problems\": expected at most %d", OUTCOME_PROBLEMS);
	for (size_t i = 0; !code && i < json_array_size(problems); i++)
		code = outcome_read_problem(json_array_get(problems, i), summary, err);
	summary->n_unnamed += unnamed;
	return code;
}

int outcome_from_json(const json_t *object, struct outcome *outcome, struct error *err)
{
	struct outcome read = { 0 };
	const json_t *seconds = json_object_get(object, "seconds");
	uint64_t spec;
	int code = fields_get_number(object, "spec", SPEC_MAX_BYTES, &spec, err);

	if (!code && (!json_is_number(seconds) || !(json_number_value(seconds) >= 0)))
		code = error_set(err, -EBADMSG, "\"seconds\": expected a number");
	if (!code)
		code = fields_get_bool(object, "out", &read.out, err);
	if (!code)
		code = fields_get_bool(object, "missing", &read.missing, err);
	if (!code)
		code = fields_get_bool(object, "skipped", &read.skipped, err);
	if (!code)
		code = fields_get_bool(object, "delivered", &read.delivered, err);
	for (size_t i = 0; i < N_NUMBERS && !code; i++)
		code = fields_get_number(object, numbers[i].key, INT64_MAX,
			(uint64_t *)((char *)&read.summary + numbers[i].offset), err);
	if (!code)
		code = fields_get_bytes(object, "text", true, SPEC_TEXT_MAX, &read.text, err);
	if (!code)
		code = outcome_read_problems(object, &read.summary, err);
	if (code) {
		outcome_free(&read);
		return code;
	}
	read.spec = spec;
	read.summary.seconds = json_number_value(seconds);
	read.summary.verb = read.out ? "staged out" : "staged in";
	*outcome = read;
	return 0;
}

void outcome_free(struct outcome *outcome)
{
	free(outcome->text);
	summary_free(&outcome->summary);
	outcome->text = NULL;
}

void outcome_free_all(struct outcome *outcomes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		outcome_free(&outcomes[i]);
	free(outcomes);
}
