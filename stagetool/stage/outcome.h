/*
 * What became of one --stage-in or --stage-out of a job, as the record keeps it and as the process
 * that did the work tells it.
 */
#ifndef STAGE_OUTCOME_H
#define STAGE_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "report/summary.h"
#include "spec/spec.h"

/* Named problems that are kept; the others are counted. */
#define OUTCOME_PROBLEMS 8
/* Of a list of outcomes, however long it is; each is some 5 KB at most. */
#define OUTCOME_PROBLEMS_ALL 1000

struct outcome {
	size_t spec;    /* which of the job's specs, from 0 */
	char *text;     /* the spec as the user wrote it */
	bool out;       /* brings results back, a sync stage-in too */
	bool missing;   /* FROM of a stage-out was not there */
	bool skipped;   /* when= did not ask for it */
	bool delivered; /* what this is for was done: all is in the stage, or all is back */
	struct summary summary;
};

/* Whether the counts mean that all of a spec's data arrived. What vanished from a source is not there
 * to arrive; what seems to have vanished from a stage must not be removed with it. A kept conflict
 * arrived beside. */
bool outcome_complete(const struct summary *summary, const struct spec *spec, bool out);

/* "stage-in SPEC: PATH: TEXT, and 3 more" of the first problem that keeps it from being complete.
 * Caller frees; NULL on ENOMEM. */
char *outcome_reason(const struct outcome *outcome);

/* Caller owns the reference; NULL on ENOMEM. Texts are cut, so that it stays small. *left, of a list of
 * outcomes, is how many problems may still be named, and is lowered; NULL: only this one is written. */
json_t *outcome_json(const struct outcome *outcome, size_t *left);

/* Does not trust object. -EBADMSG says what was wrong. Caller frees with outcome_free. */
int outcome_from_json(const json_t *object, struct outcome *outcome, struct error *err);

void outcome_free(struct outcome *outcome);
void outcome_free_all(struct outcome *outcomes, size_t count);

#endif
