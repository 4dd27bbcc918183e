/*
 * SIGINT, SIGTERM and SIGHUP as a flag that long work looks at.
 */
#ifndef VERBS_INTERRUPT_H
#define VERBS_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct interrupt;

/* Blocks the signals in this thread and those it starts from now on, and starts a thread that waits for
 * them. A signal that was ignored (nohup) stays ignored. The first one sets the flag; a second one ends
 * the process at once. A child that is forked inherits the block, not the thread. */
int interrupt_start(struct interrupt **interrupt, struct error *err);

/* The flag, for copy_options.cancel and the like. Borrowed. */
const atomic_bool *interrupt_flag(const struct interrupt *interrupt);

/* Ends the thread and frees. NULL is fine. Where a signal had come, the process now ends by it, so that
 * whoever waits for it sees why; else the signals are as they were before. */
void interrupt_stop(struct interrupt *interrupt);

#endif
