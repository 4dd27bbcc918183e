/*
 * Runs a command and interferes with one of its system calls, whatever library makes it: ptrace,
 * woken by seccomp at the chosen call only. All threads and children count together.
 */
#ifndef FAULT_TRACE_H
#define FAULT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fault/calls.h"

enum trace_action {
	TRACE_COUNT, /* only count */
	TRACE_FAIL, /* the call is not run and returns -error */
	TRACE_LATE, /* the call is run, and returns -error all the same: a lost reply */
	TRACE_SHORT, /* the call gets a length of at most `length` */
	TRACE_SIGNAL, /* the process that makes the call gets `signal` before it */
	TRACE_KILL, /* SIGKILL before the call runs */
	TRACE_KILL_AFTER, /* SIGKILL when the call has run */
};

/* A call that the system does not have: it returns -error whatever else is done. */
struct trace_lack {
	int call, error;
};

struct trace_plan {
	char *const *argv; /* found along PATH */
	char *const *envp; /* NULL: this process's */
	bool drop; /* become uid and gid, no other groups, before the command starts */
	uid_t uid;
	gid_t gid;
	int out, err; /* where its standard output and error go; -1: where ours go. Input: /dev/null
			 then */
	bool from_entry; /* the dynamic loader's calls do not count */
	const struct trace_lack *lacks; /* ended by call -1; NULL: none. Not counted */
	bool no_sleep; /* sleeping takes half a millisecond */
	unsigned timeout; /* milliseconds until all is killed; 0: none */
	enum trace_action action;
	int call; /* number, or CALL_ANY (with TRACE_COUNT: idle calls too) */
	const char *below; /* only calls that touch a file below it count; NULL: all */
	unsigned long at; /* from 1 */
	bool every; /* from that one on, all */
	int error;
	size_t length;
	int signal;
	bool alone; /* kill the process that makes the call, and not the others */
};

struct trace_result {
	int status; /* as of waitpid */
	bool timed_out;
	unsigned long seen; /* calls that counted */
	unsigned long hits; /* of these, interfered with */
	int hit_call; /* the first of them: its number, */
	char hit_path[512]; /* and the file that it is about, if any */
	bool hit_output; /* one was on descriptor 1 or 2 */
	unsigned long counts[CALLS_MAX]; /* TRACE_COUNT: of each call */
	unsigned long below[CALLS_MAX]; /* and of these, those below plan->below */
};

/* Runs the command to the end of all its processes. 0 or a negative errno (in which case nothing
 * is left running). Not for a process with other children or with threads: it waits for any
 * child, and uses SIGALRM where there is a timeout. */
int trace_run(const struct trace_plan *plan, struct trace_result *result);

#endif
