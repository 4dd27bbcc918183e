#include "verbs/interrupt.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct interrupt {
	pthread_t thread;
	sigset_t signals, before;
	atomic_bool flag, stop;
	atomic_int got;
};

/* For the end of a process: everything that had to be put away has been. */
static void interrupt_die(int number)
{
	sigset_t set;

	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
}

static void *interrupt_wait(void *argument)
{
	struct interrupt *interrupt = argument;
	int number;

	while (!sigwait(&interrupt->signals, &number) && !atomic_load(&interrupt->stop)) {
		if (atomic_exchange(&interrupt->flag, true))
			interrupt_die(number);
		atomic_store(&interrupt->got, number);
		log_warning("SIG%s: stopping and cleaning up (once more: stop at once)",
			sigabbrev_np(number));
	}
	return NULL;
}

int interrupt_start(struct interrupt **interrupt, struct error *err)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct interrupt *new = calloc(1, sizeof(*new));
	int rc;

	if (!new)
		return error_sys(err, -ENOMEM, "signals");
	sigemptyset(&new->signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction action;

		if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&new->signals, numbers[i]);
	}
	sigaddset(&new->signals, SIGUSR2); /* how interrupt_stop wakes the thread */
	pthread_sigmask(SIG_BLOCK, &new->signals, &new->before);
	rc = pthread_create(&new->thread, NULL, interrupt_wait, new);
	if (rc) {
		pthread_sigmask(SIG_SETMASK, &new->before, NULL);
		free(new);
		return error_sys(err, -rc, "a thread for signals");
	}
	*interrupt = new;
	return 0;
}

const atomic_bool *interrupt_flag(const struct interrupt *interrupt)
{
	return &interrupt->flag;
}

void interrupt_stop(struct interrupt *interrupt)
{
	int got;

	if (!interrupt)
		return;
	atomic_store(&interrupt->stop, true);
	pthread_kill(interrupt->thread, SIGUSR2);
	pthread_join(interrupt->thread, NULL);
	got = atomic_load(&interrupt->got);
	if (got)
		interrupt_die(got);
	pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
	free(interrupt);
}
