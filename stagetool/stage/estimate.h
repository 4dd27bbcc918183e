/*
 * How long a stage-in may take, from a look at a few of its files.
 */
#ifndef STAGE_ESTIMATE_H
#define STAGE_ESTIMATE_H

#include "stage/plan.h"

struct estimate {
	unsigned files;      /* that were looked at; 0: nothing is known */
	double file_seconds; /* to open, look at, read the beginning of and close one */
	double bytes_second; /* of one stream; 0: nothing large enough was there */
	double seconds;      /* of the whole plan */
};

/* Opens and reads a few files of the plan's sources, for at most about a second. After
 * plan_measure. What can not be read is passed over. */
void estimate_make(const struct plan *plan, unsigned threads, struct estimate *estimate);

#endif
