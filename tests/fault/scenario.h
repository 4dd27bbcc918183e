/*
 * What the level "fault" runs again and again: a state of the world, a command, and what must
 * hold after it.
 */
#ifndef FAULT_SCENARIO_H
#define FAULT_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>

#include "fault/point.h"
#include "fault/trace.h"
#include "fault/world.h"

struct scenario {
	const char *name;
	bool user; /* run as an ordinary user, not as root */
	bool job; /* run by root for a user, as prolog and epilog are */
	size_t large; /* bytes of the largest file; 0: small */
	const char *verb; /* the scenario is left out where the tool has no such verb */
	/* Makes everything below world->root; sets guarded, target and, where it is not
	 * guarded's tree, want. */
	void (*build)(struct world *world);
	const char *const *words; /* the command, see world_words */
	const struct trace_lack *lacks; /* what the system does not have; NULL: it has all */
	const char *const *environment; /* names and values, "%W" is the root; NULL: ours */
	const char *const *again; /* what repairs it; NULL: the same command */
	unsigned ignore_repaired; /* of enum snapshot_ignore: what the repair need not restore */
	const char *item; /* what the tool calls the whole: naming that is naming all of it */
	/* More to hold after the run and before the repair, beside the three invariants. NULL:
	 * nothing. Violations are told with judge_say. */
	void (*extra)(const struct world *world, const struct trace_result *result);
	/* More to hold after the repair. */
	void (*extra_repaired)(const struct world *world, const struct point *point);
	bool private_target; /* nobody looks there before the run has said that all is well */
	bool consumes; /* what is guarded may go once it is at the target */
	const char *output; /* a file below the root to which the tool tells things, too */
	bool keeps; /* exit status 0 may mean that what is guarded is kept, which is then told */
	bool alone; /* it has several processes: they are also killed one by one */
};

/* Ended by one without a name. */
extern const struct scenario scenarios_copy[], scenarios_stage[], scenarios_job[];

/* All of them; NULL beyond the last. */
const struct scenario *scenario_get(size_t index);

#endif
