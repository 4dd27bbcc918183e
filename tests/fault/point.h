/*
 * Where a run is interfered with, and how: one combination.
 */
#ifndef FAULT_POINT_H
#define FAULT_POINT_H

#include <stdbool.h>
#include <stddef.h>

#include "fault/trace.h"

struct point {
	enum trace_action action;
	int call;
	unsigned long at;
	bool every;
	bool alone;
	int error;
	size_t length;
	int signal;
};

struct point_list {
	struct point *points;
	size_t count;
};

/* The combinations for a run that makes counts[number] calls, at most limit of them (0: all):
 * each kind (call, errno, manner) keeps as many of its points as the others, spread evenly, the
 * same ones each time. */
void point_list_make(struct point_list *list, const unsigned long *counts, size_t limit);
/* The points to be killed at: total calls that are not idle. alone: the calling process only,
 * too. */
void point_list_make_kills(struct point_list *list, unsigned long total, bool alone, size_t limit);
void point_list_free(struct point_list *list);

/* The options of failcall that mean the point ("--call openat --at 3 --errno EIO"), in buffer. */
const char *point_options(const struct point *point, char *buffer, size_t size);
/* And back. 0 or -1. */
int point_parse(const char *options, struct point *point);

#endif
