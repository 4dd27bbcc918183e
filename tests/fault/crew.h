/*
 * Carries out the points of a scenario, several at a time.
 */
#ifndef FAULT_CREW_H
#define FAULT_CREW_H

#include "fault/point.h"
#include "fault/scenario.h"

#define CREW_TEXT 700

struct crew {
	const char *root; /* a directory for the worlds */
	const char *tool;
	unsigned workers;
};

struct outcome {
	bool reached;
	char text[CREW_TEXT]; /* the violations; "": none */
};

/* Counts the calls of a run without a fault: of each call, and all that are not idle. */
void crew_count(const struct crew *crew, const struct scenario *scenario, unsigned long *counts,
	unsigned long *total);

/* Runs all points; outcomes has one for each. A worker that died is an outcome of the point it
 * was at. */
struct outcome *crew_run(const struct crew *crew, const struct scenario *scenario,
	const struct point_list *list);
void crew_free(struct outcome *outcomes, const struct point_list *list);

/* Runs one point and prints all that there is to see. 0: nothing was violated. */
int crew_show(const struct crew *crew, const struct scenario *scenario, const struct point *point);

#endif
