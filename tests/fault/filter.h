/*
 * The seccomp filter that stops a tracee at the calls that matter and leaves all others at full
 * speed.
 */
#ifndef FAULT_FILTER_H
#define FAULT_FILTER_H

#include <stdbool.h>

#include "fault/trace.h"

/* For this process and all that it starts: stops for a tracer at plan's call (any: at all but
 * the idle ones; to count: at every one), fails what plan lacks, and stops at sleeping calls
 * where those are to take no time. 0 or a negative errno. Without CAP_SYS_ADMIN it takes
 * no_new_privs. */
int filter_install(const struct trace_plan *plan);

#endif
