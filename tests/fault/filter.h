/*
 * The seccomp filter that stops a tracee at the calls that matter and leaves all others at full
 * speed.
 */
#ifndef FAULT_FILTER_H
#define FAULT_FILTER_H

#include <stdbool.h>

/* For this process and all that it starts: stops for a tracer at call (CALL_ANY: at all but the
 * idle ones; all: at every one, the idle ones too). no_sleep: nanosleep and clock_nanosleep
 * return at once. 0 or a negative errno. Without CAP_SYS_ADMIN it takes no_new_privs. */
int filter_install(int call, bool all, bool no_sleep);

#endif
