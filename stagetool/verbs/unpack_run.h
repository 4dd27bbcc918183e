/*
 * Carrying out "stagetool unpack", with what is said on the way.
 */
#ifndef VERBS_UNPACK_RUN_H
#define VERBS_UNPACK_RUN_H

#include "copy/engine.h"
#include "report/summary.h"
#include "tree/filter.h"

struct unpack_request {
	const char *archive; /* "-": standard input */
	const char *to;
	struct copy_options engine;
	struct filter *filter; /* NULL: everything */
	bool quiet;
};

/* Unpacks. 0: see summary, which has every problem, each logged as well; negative: it could not go on. After
 * -ENOSPC and -EDQUOT a TO that was made for it is gone again. */
int unpack_request_run(const struct unpack_request *request, struct summary *summary,
	struct error *err);

#endif
