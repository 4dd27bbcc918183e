/*
 * How much of a tier is still to be had, when other jobs have been promised space that they do not
 * use yet.
 */
#ifndef STAGE_LEDGER_H
#define STAGE_LEDGER_H

#include <stdint.h>

#include "base/error.h"
#include "spec/conf.h"
#include "stage/record.h"

struct ledger_amount {
	uint64_t bytes, inodes;
};

/* Counts under the ledger's lock: what is free for users on tierfd, less min_free, less what other
 * live jobs on that filesystem were promised and have not used. If need fits, it is reserved: the
 * record is saved as staging. -ENOSPC: it does not, and err says bytes or inodes, how much is
 * needed and how much there is. A job whose process is gone before it was ready, whose stage-out
 * has begun or whose node was rebooted has no claim. *most: the bytes that could have been reserved. What a running job writes is not known here
 * and counts twice until it ends. */
int ledger_reserve(const struct state *state, const struct conf_tier *tier, int tierfd,
	struct record *record, const struct ledger_amount *need, uint64_t *most,
	struct error *err);

/* Notes how much of record's reservation is used up by now, for others who count meanwhile. Not
 * durable, and best effort. */
void ledger_note(
	const struct state *state, const struct record *record, const struct ledger_amount *used);
/* What was noted last; 0 where nothing was. */
void ledger_noted(const struct state *state, const char *name, struct ledger_amount *used);

#endif
