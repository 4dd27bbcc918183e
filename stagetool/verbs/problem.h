/*
 * Outcomes of the copier that are problems, as verbs tell them.
 */
#ifndef VERBS_PROBLEM_H
#define VERBS_PROBLEM_H

#include "copy/engine.h"
#include "report/summary.h"

/* Logs the problem of the entry called name and adds it to summary. Thread-safe against itself is the caller's
 * affair. */
void problem_tell(struct summary *summary, const char *name, enum copy_outcome outcome,
	const char *text);

#endif
