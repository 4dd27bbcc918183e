/*
 * What differs between processors for a tracer that is at a system call.
 */
#ifndef FAULT_ARCH_H
#define FAULT_ARCH_H

#include <stdint.h>
#include <sys/types.h>

/* AUDIT_ARCH_* of this build: a seccomp filter lets calls of any other kind pass. */
extern const uint32_t arch_audit;

/* All are for a stopped tracee and return 0 or a negative errno. */

/* Before the call runs: it is not run, and returns result. */
int arch_skip(pid_t tid, long result);
/* Before the call runs: argument number index (from 0) becomes value. */
int arch_set_argument(pid_t tid, unsigned index, unsigned long value);
/* After the call ran: it returns result. */
int arch_set_result(pid_t tid, long result);

/* Puts a breakpoint at address; *saved gets what was there. */
int arch_break(pid_t tid, unsigned long address, long *saved);
/* At the breakpoint: takes it away and goes back to address. 1: the tracee is not there. */
int arch_unbreak(pid_t tid, unsigned long address, long saved);

#endif
