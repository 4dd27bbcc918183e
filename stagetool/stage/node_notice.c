#include "stage/node_return.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "stage/notice.h"
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

static const char *notice_date(uint64_t seconds, char *date, size_t size)
{
	time_t time = (time_t)seconds;
	struct tm tm;

	if (!localtime_r(&time, &tm) || !strftime(date, size, "%Y-%m-%d %H:%M", &tm))
		date[0] = '\0';
	return date;
}

static void notice_print_kept(FILE *stream, const struct record *record)
{
	autofree char *dir = stage_path(record), *text = NULL;
	bool why = notice_needs_reason(record);
	char date[64];

	if (!dir ||
		asprintf(&text,
			"not all results are back%s%s: the data is kept in %s on %s until %s "
			"(stagetool resume %s there tries again)",
			why ? ", " : "", why ? record->reason : "", dir, record->node,
			notice_date(record->until, date, sizeof(date)), record->job_id) < 0)
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

static char *notice_one(const struct record *record, const char *text)
{
	char *whole = NULL;
	size_t size;
	FILE *stream = open_memstream(&whole, &size);

	if (!stream)
		return NULL;
	notice_print(stream, record, text);
	if (fclose(stream) == EOF) {
		free(whole);
		return NULL;
	}
	return whole;
}

char *node_superseded_notice(const struct record *record)
{
	autofree char *dir = stage_path(record), *text = NULL;
	char date[64];

	if (!dir ||
		asprintf(&text,
			"results of restart %" PRIu64 " were not sent, restart %" PRIu64
			" of the job came after it: they are kept in %s on %s until %s "
			"(stagetool out --dir=... sends them)",
			record->restart, record->superseded, dir, record->node,
			notice_date(record->until, date, sizeof(date))) < 0)
		return NULL;
	return notice_one(record, text);
}

char *node_expired_notice(const struct record *record)
{
	autofree char *dir = stage_path(record), *text = NULL;
	char date[64];

	if (!dir ||
		asprintf(&text,
			"not all results could be sent until %s (%s): what is left in %s on %s is "
			"removed now",
			notice_date(record->until, date, sizeof(date)),
			record->reason ? record->reason : "the reason is not known", dir,
			record->node) < 0)
		return NULL;
	return notice_one(record, text);
}

int node_tell(const struct record *record, const char *text, struct error *err)
{
	struct priv_user user;
	int code;

	if (!text || !record->output)
		return 0;
	code = priv_user_get((uid_t)record->uid, (gid_t)record->gid, &user, err);
	if (code)
		return code;
	code = notice_append(&user, record->output, text, err);
	priv_user_free(&user);
	return code;
}
