#include "fault/trace.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fault/arch.h"
#include "fault/launch.h"
#include "fault/touch.h"

struct tracee {
	pid_t tid;
	bool pending; /* stops again when its call has run */
};

struct tracer {
	const struct trace_plan *plan;
	struct trace_result *result;
	pid_t root;
	bool started; /* the command runs: its calls count */
	bool killing;
	unsigned long entry; /* where the breakpoint is; 0: none */
	long entry_saved;
	struct tracee *tracees;
	size_t n_tracees;
};

static struct tracee *tracer_find(struct tracer *tracer, pid_t tid)
{
	for (size_t i = 0; i < tracer->n_tracees; i++) {
		if (tracer->tracees[i].tid == tid)
			return &tracer->tracees[i];
	}
	return NULL;
}

static struct tracee *tracer_add(struct tracer *tracer, pid_t tid)
{
	struct tracee *tracee = tracer_find(tracer, tid);

	if (tracee)
		return tracee;
	tracee = realloc(tracer->tracees, (tracer->n_tracees + 1) * sizeof(*tracee));
	if (!tracee)
		abort(); /* EXITKILL takes the tracees along */
	tracer->tracees = tracee;
	tracee += tracer->n_tracees++;
	*tracee = (struct tracee){ tid, false };
	return tracee;
}

static void tracer_forget(struct tracer *tracer, pid_t tid)
{
	struct tracee *tracee = tracer_find(tracer, tid);

	if (tracee)
		*tracee = tracer->tracees[--tracer->n_tracees];
}

static void tracer_kill(struct tracer *tracer, pid_t tid, bool alone)
{
	kill(tid, SIGKILL);
	if (alone)
		return;
	tracer->killing = true;
	for (size_t i = 0; i < tracer->n_tracees; i++)
		kill(tracer->tracees[i].tid, SIGKILL);
}

/* What is to be done at a call that counts. Returns how the tracee goes on. */
static int tracer_interfere(struct tracer *tracer, struct tracee *tracee, const uint64_t *arguments,
	const struct call *call)
{
	const struct trace_plan *plan = tracer->plan;
	int length = calls_length_argument(call);

	switch (plan->action) {
	case TRACE_FAIL:
		/* a brk that fails returns where the break is, not an errno: 0 is below any */
		arch_skip(tracee->tid, call && call->number == SYS_brk ? 0 : -plan->error);
		break;
	case TRACE_LATE:
	case TRACE_KILL_AFTER:
		tracee->pending = true;
		return PTRACE_SYSCALL;
	case TRACE_SHORT:
		if (length >= 0 && arguments[length] > plan->length)
			arch_set_argument(tracee->tid, (unsigned)length, plan->length);
		break;
	case TRACE_SIGNAL:
		kill(tracee->tid, plan->signal);
		break;
	case TRACE_KILL:
		tracer_kill(tracer, tracee->tid, plan->alone);
		break;
	case TRACE_COUNT:
		break;
	}
	return PTRACE_CONT;
}

static void tracer_note(struct tracer *tracer, int number, const struct call *call,
	const uint64_t *arguments, const char *path)
{
	struct trace_result *result = tracer->result;

	if (call && call->arguments[0] == 'f' && (arguments[0] == 1 || arguments[0] == 2))
		result->hit_output = true;
	if (result->hits++)
		return;
	result->hit_call = number;
	snprintf(result->hit_path, sizeof(result->hit_path), "%s", path);
}

/* A moment is left of it: who sleeps between two looks does not look a million times. */
static int tracer_at_sleep(pid_t tid)
{
	const struct timespec moment = { 0, 500000 };

	nanosleep(&moment, NULL);
	arch_skip(tid, 0);
	return PTRACE_CONT;
}

static int tracer_at_call(struct tracer *tracer, struct tracee *tracee)
{
	const struct trace_plan *plan = tracer->plan;
	struct trace_result *result = tracer->result;
	struct __ptrace_syscall_info info;
	const struct call *call;
	char path[sizeof(result->hit_path)];
	bool below;

	if (!tracer->started ||
		ptrace(PTRACE_GET_SYSCALL_INFO, tracee->tid, sizeof(info), &info) <= 0 ||
		info.op != PTRACE_SYSCALL_INFO_SECCOMP || info.seccomp.nr >= CALLS_MAX)
		return PTRACE_CONT;
	if (plan->no_sleep &&
		(info.seccomp.nr == SYS_nanosleep || info.seccomp.nr == SYS_clock_nanosleep))
		return tracer_at_sleep(tracee->tid);
	call = calls_find((int)info.seccomp.nr);
	if (plan->action == TRACE_COUNT)
		result->counts[info.seccomp.nr]++;
	path[0] = '\0';
	below = (!plan->below && plan->action == TRACE_COUNT) ||
		touch_below(tracee->tid, call, info.seccomp.args, plan->below, path, sizeof(path));
	if (!below)
		return PTRACE_CONT;
	result->seen++;
	if (plan->action == TRACE_COUNT)
		result->below[info.seccomp.nr]++;
	else if (result->seen == plan->at || (result->seen > plan->at && plan->every)) {
		tracer_note(tracer, (int)info.seccomp.nr, call, info.seccomp.args, path);
		return tracer_interfere(tracer, tracee, info.seccomp.args, call);
	}
	return PTRACE_CONT;
}

/* The call of a pending tracee has run. */
static void tracer_after_call(struct tracer *tracer, struct tracee *tracee)
{
	if (!tracee->pending)
		return;
	tracee->pending = false;
	if (tracer->plan->action == TRACE_LATE)
		arch_set_result(tracee->tid, -tracer->plan->error);
	else
		tracer_kill(tracer, tracee->tid, tracer->plan->alone);
}

static unsigned long entry_address(pid_t pid)
{
	unsigned long pair[2], address = 0;
	char name[64];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/auxv", (int)pid);
	file = fopen(name, "re");
	while (file && fread(pair, sizeof(pair), 1, file) == 1) {
		if (pair[0] == AT_ENTRY)
			address = pair[1];
	}
	if (file)
		fclose(file);
	return address;
}

static void tracer_at_exec(struct tracer *tracer, pid_t tid)
{
	if (tracer->started || tid != tracer->root)
		return;
	if (tracer->plan->from_entry)
		tracer->entry = entry_address(tid);
	if (!tracer->entry || arch_break(tid, tracer->entry, &tracer->entry_saved) < 0) {
		tracer->entry = 0;
		tracer->started = true;
	}
}

/* A stop at the delivery of a signal. Returns the signal to deliver. */
static int tracer_at_signal(struct tracer *tracer, pid_t tid, int number)
{
	if (number == SIGTRAP && tracer->entry && tid == tracer->root &&
		arch_unbreak(tid, tracer->entry, tracer->entry_saved) == 0) {
		tracer->entry = 0;
		tracer->started = true;
		return 0;
	}
	return number;
}

static void tracer_stopped(struct tracer *tracer, pid_t tid, int status)
{
	struct tracee *tracee = tracer_add(tracer, tid);
	int request = PTRACE_CONT, number = 0;

	if (tracer->killing) {
		kill(tid, SIGKILL);
		ptrace(PTRACE_CONT, tid, 0, 0);
		return;
	}
	switch (status >> 16) {
	case PTRACE_EVENT_SECCOMP:
		request = tracer_at_call(tracer, tracee);
		break;
	case PTRACE_EVENT_EXEC:
		tracee->pending = false;
		tracer_at_exec(tracer, tid);
		break;
	case PTRACE_EVENT_STOP:
		if (WSTOPSIG(status) != SIGTRAP)
			request = PTRACE_LISTEN;
		break;
	case 0:
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			tracer_after_call(tracer, tracee);
		else
			number = tracer_at_signal(tracer, tid, WSTOPSIG(status));
		/* a signal may come between a call and its end */
		if (tracee->pending)
			request = PTRACE_SYSCALL;
		break;
	default:
		if (tracee->pending)
			request = PTRACE_SYSCALL;
		break;
	}
	ptrace(request, tid, 0, number);
}

static void wake(int number)
{
	(void)number; /* only to interrupt waitpid */
}

static void timer_set(unsigned milliseconds)
{
	struct itimerval timer = { { 0, milliseconds * 1000 }, { 0, milliseconds * 1000 } };
	struct sigaction action = { .sa_handler = wake };

	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static unsigned long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long)now.tv_sec * 1000 + (unsigned long)now.tv_nsec / 1000000;
}

static void tracer_loop(struct tracer *tracer)
{
	unsigned long end = now_ms() + tracer->plan->timeout;
	int status;

	for (;;) {
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 && errno != EINTR)
			return;
		if (tid > 0 && WIFSTOPPED(status)) {
			tracer_stopped(tracer, tid, status);
		} else if (tid > 0) {
			tracer_forget(tracer, tid);
			if (tid == tracer->root)
				tracer->result->status = status;
		}
		if (tracer->plan->timeout && !tracer->result->timed_out && now_ms() > end) {
			tracer->result->timed_out = true;
			tracer_kill(tracer, tracer->root, false);
		}
	}
}

int trace_run(const struct trace_plan *plan, struct trace_result *result)
{
	struct tracer tracer = { .plan = plan, .result = result };
	int rc;

	memset(result, 0, sizeof(*result));
	rc = launch_start(plan, &tracer.root);
	if (rc < 0)
		return rc;
	tracer_add(&tracer, tracer.root);
	if (plan->timeout)
		timer_set(50);
	tracer_loop(&tracer);
	if (plan->timeout)
		timer_set(0);
	free(tracer.tracees);
	return 0;
}
