#include "stage/node_return.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "stage/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LINE_MAX_BYTES 4000

/* What one stage-out came to. Caller frees. */
static char *notice_outcome(const struct outcome *outcome)
{
	autofree char *line = NULL;
	char *text = NULL;

	if (!outcome->delivered && !outcome->missing)
		return outcome_reason(outcome);
	if (outcome->delivered)
		line = summary_line(&outcome->summary);
	else
		line = strdup("nothing was sent, it is not in the stage");
	if (!line || asprintf(&text, "stage-out %s: %s", outcome->text, line) < 0)
		return NULL;
	return text;
}

/* Whether the lines about the stage-outs do not say what went wrong. */
static bool notice_needs_reason(const struct record *record)
{
	for (size_t i = 0; i < record->n_outcomes; i++) {
		const struct outcome *outcome = &record->outcomes[i];

		if (outcome->out && !outcome->delivered && outcome->summary.n_problems)
			return false;
	}
	return record->reason != NULL;
}

static void notice_print(FILE *stream, const struct record *record, const char *text)
{
	char line[LINE_MAX_BYTES];

	fprintf(stream, "stagetool: %s: %s\n", record->node, log_escape(text, line, sizeof(line)));
}

static void notice_print_kept(FILE *stream, const struct record *record)
{
	autofree char *dir = stage_path(record), *text = NULL;
	bool why = notice_needs_reason(record);
	time_t until = (time_t)record->until;
	char date[64] = "";
	struct tm tm;

	if (localtime_r(&until, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
	if (!dir ||
		asprintf(&text,
			"not all results are back%s%s: the data is kept in %s on %s until %s",
			why ? ", " : "", why ? record->reason : "", dir, record->node, date) < 0)
		return;
	notice_print(stream, record, text);
}

char *node_return_notice(const struct record *record)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	for (size_t i = 0; i < record->n_outcomes; i++) {
		const struct outcome *outcome = &record->outcomes[i];
		autofree char *line = NULL;

		if (!outcome->out || outcome->skipped)
			continue;
		line = notice_outcome(outcome);
		if (line)
			notice_print(stream, record, line);
	}
	if (record->state == RECORD_KEPT)
		notice_print_kept(stream, record);
	else if (record->state == RECORD_FAILED && record->reason)
		notice_print(stream, record, record->reason);
	if (fclose(stream) == EOF || !*text) {
		free(text);
		return NULL;
	}
	return text;
}
