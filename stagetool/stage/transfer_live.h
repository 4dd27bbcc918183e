/*
 * The counts of a transfer while it runs: what was done, and the copy that is at work.
 */
#ifndef STAGE_TRANSFER_LIVE_H
#define STAGE_TRANSFER_LIVE_H

#include "copy/engine.h"
#include "stage/transfer.h"

/* live may be NULL in both. copy must be alive until transfer_live_ended, which adds its counts. */
void transfer_live_began(struct transfer_live *live, const struct copy *copy);
void transfer_live_ended(struct transfer_live *live, const struct copy_counts *counts);

#endif
