#include "spank/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

#define VERDICT_START "stage-in failed on "
/* Comments are shown in tables: long enough for a path and an error. */
#define REASON_SIZE 1024

char *verdict_text(const char *node, uint32_t restarts, const char *reason)
{
	char line[REASON_SIZE], attempt[32] = "";
	char *text;

	log_escape(reason, line, sizeof(line));
	if (restarts)
		snprintf(attempt, sizeof(attempt), ", restart %" PRIu32, restarts);
	if (asprintf(&text, VERDICT_START "%s%s: %s", node, attempt, line) < 0)
		return NULL;
	return text;
}

static bool tells_of(const char *comment, uint32_t restarts)
{
	char attempt[32] = "";
	const char *rest;

	if (strncmp(comment, VERDICT_START, strlen(VERDICT_START)) != 0)
		return false;
	rest = comment + strlen(VERDICT_START);
	rest += strcspn(rest, ",:");
	if (restarts)
		snprintf(attempt, sizeof(attempt), ", restart %" PRIu32, restarts);
	return !strncmp(rest, attempt, strlen(attempt)) && rest[strlen(attempt)] == ':';
}

const char *verdict_of(const struct job *job)
{
	if (tells_of(job->comment, job->restarts))
		return job->comment;
	if (tells_of(job->admin_comment, job->restarts))
		return job->admin_comment;
	return NULL;
}

bool verdict_may_replace(const char *comment)
{
	return !*comment || !strncmp(comment, VERDICT_START, strlen(VERDICT_START));
}
