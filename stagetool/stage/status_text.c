#include "stage/status.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "report/numbers.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SHOWN_MAX 4096

static uint64_t status_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *status_string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value && *value ? value : NULL;
}

/* Prints a string that could hold anything. */
static void status_print(FILE *stream, const char *before, const char *text)
{
	char shown[SHOWN_MAX];

	if (text)
		fprintf(stream, "%s%s", before, log_escape(text, shown, sizeof(shown)));
}

static void status_print_time(FILE *stream, const char *before, uint64_t seconds)
{
	time_t time = (time_t)seconds;
	char text[64];
	struct tm tm;

	if (seconds && localtime_r(&time, &tm) &&
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		fprintf(stream, "%s%s", before, text);
}

static void status_print_amount(FILE *stream, const json_t *counts)
{
	uint64_t files = status_number(counts, "files") + status_number(counts, "symlinks") +
			 status_number(counts, "others");
	char number[64], size[64];

	fprintf(stream, "%s, %s", numbers_count(files, "file", "files", number, sizeof(number)),
		parse_format_size(status_number(counts, "bytes"), size, sizeof(size)));
}

static void status_print_progress(FILE *stream, const json_t *progress)
{
	uint64_t bytes = status_number(progress, "bytes");
	uint64_t total = status_number(progress, "total_bytes");
	double rate = json_number_value(json_object_get(progress, "bytes_per_second"));
	char size[64];

	fputs("\n  so far ", stream);
	status_print_amount(stream, progress);
	if (total)
		fprintf(stream, " of %s (%.0f %%)", parse_format_size(total, size, sizeof(size)),
			bytes < total ? 100.0 * (double)bytes / (double)total : 100.0);
	if (rate >= 1 && rate < 1e18)
		fprintf(stream, ", %s/s", parse_format_size((uint64_t)rate, size, sizeof(size)));
}

static const char *status_item_word(const json_t *item, const char *state)
{
	bool out = json_is_true(json_object_get(item, "out"));

	if (json_is_true(json_object_get(item, "delivered")))
		return out ? "sent" : "here";
	if (json_is_true(json_object_get(item, "skipped")))
		return "not asked for (when=)";
	if (json_is_true(json_object_get(item, "missing")))
		return "FROM is not there";
	if (out && state && (!strcmp(state, "kept") || !strcmp(state, "failed")))
		return "NOT SENT";
	return out ? "at the end of the job" : "to come";
}

static void status_print_item(FILE *stream, const json_t *item, const char *state)
{
	const char *word = status_item_word(item, state);
	uint64_t wrong = status_number(item, "failed") + status_number(item, "changed") +
			 status_number(item, "conflicts");

	status_print(stream,
		json_is_true(json_object_get(item, "out")) ? "\n  stage-out " : "\n  stage-in ",
		status_string(item, "text"));
	fprintf(stream, ": %s", word);
	if (!strcmp(word, "sent") || !strcmp(word, "here") || wrong) {
		fputs(", ", stream);
		status_print_amount(stream, item);
	}
	if (wrong)
		fprintf(stream, ", %ju not as it should be", (uintmax_t)wrong);
}

static void status_print_head(FILE *stream, const json_t *status)
{
	status_print(stream, "job ", status_string(status, "job"));
	if (status_number(status, "restart"))
		fprintf(stream, " (restart %ju)", (uintmax_t)status_number(status, "restart"));
	status_print(stream, " of ", status_string(status, "user"));
	status_print(stream, " on ", status_string(status, "node"));
	status_print(stream, ": ", status_string(status, "state"));
	status_print_time(stream, " since ", status_number(status, "changed"));
	status_print(stream, "\n  stage ", status_string(status, "dir"));
	if (status_string(status, "dir"))
		status_print(stream, " on tier ", status_string(status, "tier"));
	status_print_time(stream, "\n  kept until ", status_number(status, "until"));
	if (status_number(status, "superseded"))
		fputs("\n  not sent over the results of a later attempt", stream);
	else
		status_print_time(stream, "\n  next try ", status_number(status, "next_try"));
	status_print(stream, "\n  reason: ", status_string(status, "reason"));
}

char *status_text(const json_t *status)
{
	const json_t *items = json_object_get(status, "items");
	const json_t *progress = json_object_get(status, "progress");
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	status_print_head(stream, status);
	if (progress)
		status_print_progress(stream, progress);
	for (size_t i = 0; i < json_array_size(items); i++)
		status_print_item(stream, json_array_get(items, i), status_string(status, "state"));
	fputc('\n', stream);
	if (fclose(stream) == EOF) {
		free(text);
		return NULL;
	}
	return text;
}
