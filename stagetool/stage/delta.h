/*
 * What is to be done about one entry, from what it is now and what the manifest says it was.
 * Nothing here looks at a filesystem.
 */
#ifndef STAGE_DELTA_H
#define STAGE_DELTA_H

#include <stdbool.h>
#include <sys/stat.h>

#include "copy/engine.h"
#include "stage/manifest.h"

enum delta_in {
	DELTA_IN_BRING, /* there is nothing, or a directory that is to have its source's attributes
			 */
	DELTA_IN_REPLACE,  /* as it was staged, and its source has changed */
	DELTA_IN_ADOPT,    /* not of ours, and equal to its source: from now on it is staged */
	DELTA_IN_KEEP,     /* nothing to do */
	DELTA_IN_CONFLICT, /* something that we must not replace */
};

/* Of a stage-in: src is the source, dst what is in the stage (NULL: nothing), record what the
 * manifest says (NULL: nothing), pair the pair that is being staged in. */
enum delta_in delta_in(const struct stat *src, const struct stat *dst,
	const struct manifest_entry *record, uint32_t pair);

/* Of a stage-out: whether src, in the stage, is to be sent. staged: its record of tree 0, sent:
 * that of the target's tree (NULL: none). If so, expect is what may be at the destination. suspect:
 * what was staged in may have been damaged, and must not replace what it came from. */
bool delta_out(const struct stat *src, const struct manifest_entry *staged,
	const struct manifest_entry *sent, bool suspect, struct copy_expect *expect);

/* Whether two files have one type, size and time of change. */
bool delta_equal(const struct stat *a, const struct stat *b);

/* Expects exactly what identity says. */
void delta_expect(struct copy_expect *expect, const struct manifest_identity *identity);

#endif
