#include "verbs/output.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "report/summary.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int output_text(const char *text, struct error *err)
{
	if (fputs(text, stdout) == EOF || fflush(stdout) == EOF)
		return error_errno(err, "standard output");
	return 0;
}

int output_json(json_t *object, struct error *err)
{
	autofree char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;

	json_decref(object);
	if (!text)
		return error_sys(err, -ENOMEM, "JSON");
	if (fputs(text, stdout) == EOF || fputc('\n', stdout) == EOF || fflush(stdout) == EOF)
		return error_errno(err, "standard output");
	return 0;
}

int output_result(const char *verb, json_t *object, int status, const struct error *err)
{
	struct error failure = ERROR_INIT;

	if (!object)
		object = json_object();
	json_object_set_new(object, "verb", json_string(verb));
	json_object_set_new(object, "status", json_integer(status));
	if (err && err->code)
		json_object_set_new(object, "error", summary_json_bytes(err->text));
	if (output_json(object, &failure) < 0) {
		log_error("%s: %s", verb, failure.text);
		return status == VERB_DONE ? VERB_FAILED : status;
	}
	return status;
}
