/*
 * A tier: the node-local storage that stages lie on. What is wrong with it is the node's fault,
 * never a job's.
 */
#ifndef STAGE_TIER_H
#define STAGE_TIER_H

#include "base/error.h"
#include "spec/conf.h"

/* Opens the tier's directory, which is never made: a disk that is not mounted would look like an
 * empty one. It must be the caller's own, not writable by others, and enterable by users. Returns
 * an fd or a negative errno. */
int tier_open(const struct conf_tier *tier, struct error *err);

/* Proves by doing it that a file can be made, written, made durable and removed there; that DAX
 * works where the tier requires it. A full tier passes: that is for the ledger to say. name tells
 * two attempts apart. */
int tier_probe(const struct conf_tier *tier, int tierfd, const char *name, struct error *err);

#endif
