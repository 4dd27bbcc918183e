#include "stage/manifest_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static const int guard_numbers[] = { SIGSEGV, SIGBUS, SIGABRT };

/* Handlers get no context of their own, so these are the process's and the thread's. */
static void (*guard_damaged)(void);
static _Thread_local volatile sig_atomic_t guard_depth;

static atomic_flag guard_called = ATOMIC_FLAG_INIT;

/* Several threads may meet the same page: the first one speaks, and the others wait for the end. A signal
 * from elsewhere comes again, to a process that has no handler any more. */
static void guard_signal(int number)
{
	if (guard_depth <= 0) {
		signal(number, SIG_DFL);
		return;
	}
	if (!atomic_flag_test_and_set(&guard_called))
		guard_damaged();
	for (;;)
		pause();
}

void manifest_guard(void (*damaged)(void))
{
	struct sigaction action = { .sa_handler = guard_signal };

	guard_damaged = damaged;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(guard_numbers) / sizeof(guard_numbers[0]); i++)
		sigaction(guard_numbers[i], &action, NULL);
}

/* The threads of a pool have all signals blocked, and one that a thread raises itself while it is blocked
 * kills, whatever handler there is. */
static void guard_unblock(void)
{
	static _Thread_local bool done;
	sigset_t set;

	if (done || !guard_damaged)
		return;
	done = true;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(guard_numbers) / sizeof(guard_numbers[0]); i++)
		sigaddset(&set, guard_numbers[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void manifest_guard_enter(void)
{
	guard_unblock();
	guard_depth++;
}

void manifest_guard_leave(void)
{
	guard_depth--;
}
