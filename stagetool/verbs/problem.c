#include "verbs/problem.h"

#include "base/log.h"

static const struct {
	const char *kind;
	bool error;
} kinds[] = {
	[COPY_FAILED] = { "failed", true },
	[COPY_VANISHED] = { "vanished", true },
	[COPY_CHANGED] = { "changed", true },
	[COPY_CONFLICT] = { "conflict", true },
	[COPY_ATTRIBUTE] = { "attribute", true },
	[COPY_DROPPED] = { "dropped", false },
	[COPY_SPECIAL] = { "special", false },
};

void problem_tell(struct summary *summary, const char *name, enum copy_outcome outcome,
	const char *text)
{
	if (kinds[outcome].error)
		log_error("%s: %s", name, text);
	else
		log_warning("%s: %s", name, text);
	summary_add_problem(summary, name, kinds[outcome].kind, text);
}
