/*
 * How long a stage-in may take, from a look at a few of its files.
 */
#ifndef STAGE_ESTIMATE_H
#define STAGE_ESTIMATE_H

#include "stage/plan.h"

/* Who reads it more often than this has a cache, or a reason to stage that is not time. */
#define ESTIMATE_PASSES_MOST 10

struct estimate {
	unsigned files;      /* that were looked at; 0: nothing is known */
	double file_seconds; /* to open, look at, read the beginning of and close one */
	double bytes_second; /* of one stream; 0: nothing large enough was there */
	double seconds;      /* of the whole plan */
	double pass_seconds; /* of a job that reads all of it once from the source, file by file */
	double passes;       /* after so many readings staging has paid; 0: it never does */
};

/* Opens and reads a few files of the plan's sources, for at most about a second. After
 * plan_measure. What can not be read is passed over. */
void estimate_make(const struct plan *plan, unsigned threads, struct estimate *estimate);

/* Works out what follows from files, file_seconds and bytes_second: the other fields. */
void estimate_judge(const struct plan *plan, unsigned threads, struct estimate *estimate);

#endif
