/*
 * Starting a command under a tracer, with the filter that stops it.
 */
#ifndef FAULT_LAUNCH_H
#define FAULT_LAUNCH_H

#include <sys/types.h>

#include "fault/trace.h"

/* Starts plan's command, seized; it stops at its exec. 0 or a negative errno. A command that can
 * not be started ends with status 127 (not found) or 126. */
int launch_start(const struct trace_plan *plan, pid_t *pid);

#endif
