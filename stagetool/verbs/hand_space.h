/*
 * Whether a stage-in by hand fits, before its first byte.
 */
#ifndef VERBS_HAND_SPACE_H
#define VERBS_HAND_SPACE_H

#include "verbs/hand.h"

/* What the manifest takes, beside the data, for so many entries. */
#define HAND_SPACE_MANIFEST_BYTES(inodes) (1024 * 1024 + (inodes)*256)
#define HAND_SPACE_MANIFEST_INODES 8

/* After plan_measure. What is in the stage already is not counted twice. -ENOSPC: err says bytes or
 * inodes, how much is needed and how much there is. */
int hand_space_check(const struct hand *hand, const atomic_bool *cancel, struct error *err);

#endif
