#include "stage/worker_child.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Without close_range(2) this many descriptors are looked at. */
#define OLD_FD_MAX 4096

struct worker_beat {
	const struct worker_options *options;
	int fd;
	sigset_t signals; /* SIGTERM: stop; SIGUSR1: the body is through */
	atomic_bool stop;
};

static bool worker_keeps(const struct worker_options *options, int fd)
{
	for (size_t i = 0; i < options->n_keep; i++)
		if (options->keep[i] == fd)
			return true;
	return false;
}

static void worker_close_range(unsigned first, unsigned last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	for (unsigned fd = first; fd <= last && fd < OLD_FD_MAX; fd++)
		close((int)fd);
}

/* Closes every descriptor but the standard ones, fd and those to keep. */
static void worker_close_others(const struct worker_options *options, int fd)
{
	int highest = fd, first = 3;

	for (size_t i = 0; i < options->n_keep; i++)
		if (options->keep[i] > highest)
			highest = options->keep[i];
	for (int at = first; at <= highest; at++) {
		if (at != fd && !worker_keeps(options, at))
			continue;
		worker_close_range((unsigned)first, (unsigned)at - 1);
		first = at + 1;
	}
	worker_close_range((unsigned)first, ~0U);
}

/* Of the parent's descriptors nothing stays: one that can not be ended would keep whoever reads them to
 * their end waiting. */
static int worker_detach(struct error *err)
{
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return error_errno(err, "/dev/null");
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
		dup2(null, STDERR_FILENO) < 0)
		return error_errno(err, "dup2");
	if (setsid() < 0)
		return error_errno(err, "setsid");
	return chdir("/") ? error_errno(err, "chdir /") : 0;
}

/* A change of identity takes the death signal back, so it comes last; a parent that is gone by then
 * would not send it any more. */
static int worker_become(const struct worker_options *options, pid_t parent, struct error *err)
{
	int code = worker_detach(err);

	if (!code)
		code = priv_drop(options->user, err);
	if (code)
		return code;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return error_errno(err, "set the signal of the parent's death");
	return getppid() == parent ? 0 : error_set(err, -ESRCH, "the parent is gone");
}

static void *worker_beat_run(void *argument)
{
	struct worker_beat *beat = argument;
	struct timespec second = { 1, 0 };

	for (;;) {
		int signal = sigtimedwait(&beat->signals, NULL, &second);

		if (signal == SIGUSR1)
			return NULL;
		if (signal == SIGTERM)
			atomic_store(&beat->stop, true);
		if (signal < 0 && errno == EAGAIN && beat->options->beat)
			beat->options->beat(beat->options->ctx, beat->fd);
	}
}

/* Runs the body beside a thread that waits for SIGTERM. */
static int worker_body(const struct worker_options *options, int fd, struct error *err)
{
	struct worker_beat beat = { .options = options, .fd = fd };
	pthread_t thread;
	int code;

	sigemptyset(&beat.signals);
	sigaddset(&beat.signals, SIGTERM);
	sigaddset(&beat.signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &beat.signals, NULL);
	code = pthread_create(&thread, NULL, worker_beat_run, &beat);
	if (code)
		return error_sys(err, -code, "start a thread");
	code = options->body(options->ctx, fd, &beat.stop, err);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	return code;
}

void worker_child(
	const struct worker_options *options, int fd, pid_t parent, const sigset_t *before)
{
	struct error err = ERROR_INIT;
	sigset_t mask = *before;
	int code;

	sigdelset(&mask, SIGCHLD);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	worker_close_others(options, fd);
	code = worker_become(options, parent, &err);
	if (!code)
		code = worker_body(options, fd, &err);
	if (code < 0 && err.code)
		worker_send_error(fd, &err);
	_exit(code ? EXIT_FAILURE : EXIT_SUCCESS);
}
