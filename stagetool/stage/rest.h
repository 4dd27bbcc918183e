/*
 * Whether a stage holds something that its user may miss when it is removed.
 */
#ifndef STAGE_REST_H
#define STAGE_REST_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"

/* Looks for an entry (no directory) in the stage that is new, or is not as the manifest says it was
 * staged, and does not lie at or below one of the n paths in sent (relative to the stage). 0 with
 * *path (caller frees) the first one found, NULL where there is none; a negative errno where it
 * could not be told. Without a manifest everything is new. */
int rest_find(int stagefd, const char *const *sent, size_t n, const atomic_bool *stop, char **path,
	struct error *err);

#endif
