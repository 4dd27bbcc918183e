/*
 * The three invariants: no lie in the exit status, no half file under a final name, nothing
 * removed that is not safe elsewhere. And: no hang, no crash, and the same command again repairs
 * everything.
 */
#ifndef FAULT_JUDGE_H
#define FAULT_JUDGE_H

#include <stddef.h>

#include "fault/point.h"
#include "fault/scenario.h"
#include "fault/trace.h"
#include "fault/world.h"

/* Forgets all violations; they are told into text from now on. */
void judge_begin(char *text, size_t size);

/* Tells a violation. */
void judge_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* After a run that was interfered with. said: what the tool wrote to its standard error. */
void judge_run(const struct scenario *scenario, const struct world *world,
	const struct point *point, const struct trace_result *result, const char *said);

/* After the run that repairs. warned: the run before it said that not all is well. */
void judge_repair(const struct scenario *scenario, const struct world *world,
	const struct point *point, bool warned, const struct trace_result *result,
	const char *said);

#endif
