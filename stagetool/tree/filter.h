/*
 * include= and exclude=: which entries of a tree take part.
 */
#ifndef TREE_FILTER_H
#define TREE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct filter;

/* A pattern without '/' is matched against the name of an entry at any depth; one with '/' against
 * the path below the root ("**" crosses directories, a leading '/' is dropped). A trailing '/'
 * matches directories only. A pattern that matches a directory matches all below it. The last
 * matching pattern wins; what none matches takes part, unless the first pattern is an include (then
 * only what is included does). A directory that is excluded is not entered, unless a later include
 * could match below it. Names are bytes (fnmatch without FNM_PERIOD, no escapes). patterns and
 * globs are copied. n 0 gives *filter NULL: everything. -EINVAL for a pattern that can not match
 * anything. */
struct filter_pattern {
	bool include;
	const char *glob;
};
int filter_new(
	const struct filter_pattern *patterns, size_t n, struct filter **filter, struct error *err);
void filter_free(struct filter *filter);

/* Whether an entry takes part. dir is the path of its directory below the root ("" for the root),
 * without a trailing '/'. A directory that does not take part but could hold something that does is
 * FILTER_ENTER: to be walked, and made only when something in it is. filter may be NULL. Any
 * thread. */
enum filter_answer { FILTER_OUT, FILTER_IN, FILTER_ENTER };
enum filter_answer filter_match(
	const struct filter *filter, const char *dir, const char *name, bool is_dir);

#endif
