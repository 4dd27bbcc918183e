/*
 * Carrying out "stagetool copy": each FROM in turn, with what is said on the way.
 */
#ifndef VERBS_COPY_WORK_H
#define VERBS_COPY_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "copy/engine.h"
#include "report/summary.h"
#include "tree/filter.h"
#include "verbs/copy_place.h"
#include "verbs/options.h"

/* What was asked for. */
struct copy_request {
	struct options options;
	struct copy_options engine;
	bool checksum;
	struct filter_pattern *patterns;
	size_t n_patterns;
	struct filter *filter;
	struct copy_places places;
};

/* Opens the places and copies each; logs every problem as it is found and shows progress. summary is filled
 * also on failure. 0: see the summary. Negative: it could not go on (-ENOSPC and -EDQUOT: it does not fit). Of
 * several FROMs, one that could not be copied as a whole is a failed entry, and the others go on. */
int copy_work_run(struct copy_request *request, struct summary *summary, struct error *err);

#endif
