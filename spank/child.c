#include "spank/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TICK_MS 500
/* A longer line of the child is handed over in pieces. */
#define LINE_SIZE 4096

/* One pipe from the child, cut into lines. */
struct channel {
	int fd;
	size_t used;
	char line[LINE_SIZE];
	void (*hear)(void *ctx, const char *line);
	void *ctx;
};

static void channel_line(struct channel *channel)
{
	channel->line[channel->used] = '\0';
	channel->hear(channel->ctx, channel->line);
	channel->used = 0;
}

static void channel_take(struct channel *channel, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n') {
			channel_line(channel);
			continue;
		}
		channel->line[channel->used++] = bytes[i];
		if (channel->used == LINE_SIZE - 1)
			channel_line(channel);
	}
}

/* Reads what is there; at the end of the pipe the descriptor is closed and -1. */
static void channel_read(struct channel *channel)
{
	char buffer[4096];

	while (channel->fd >= 0) {
		ssize_t count = read(channel->fd, buffer, sizeof(buffer));

		if (count > 0) {
			channel_take(channel, buffer, (size_t)count);
			continue;
		}
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno == EAGAIN)
			return;
		if (channel->used)
			channel_line(channel);
		close(channel->fd);
		channel->fd = -1;
	}
}

/* Between fork and exec in a process that may have threads: nothing here but system calls.
 * Descriptors above the report's are closed, whatever this process had open. */
static void become_child(char *const arguments[], char *const environment[], int report, int errors,
	pid_t parent, bool follow_parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || setpgid(0, 0) < 0)
		_exit(127);
	if (follow_parent && (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent))
		_exit(127);
	/* Moved up first: one of them may be where another has to go. */
	report = fcntl(report, F_DUPFD, CHILD_REPORT_FD + 1);
	errors = fcntl(errors, F_DUPFD, CHILD_REPORT_FD + 1);
	null = fcntl(null, F_DUPFD, CHILD_REPORT_FD + 1);
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(errors, 2) < 0 ||
		dup2(report, CHILD_REPORT_FD) < 0)
		_exit(127);
	if (close_range(CHILD_REPORT_FD + 1, ~0U, 0) < 0)
		for (int fd = CHILD_REPORT_FD + 1; fd < 1024; fd++)
			close(fd);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(arguments[0], arguments, environment);
	_exit(127);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int reap(pid_t pid, int *status)
{
	int rc;

	do
		rc = waitpid(pid, status, WNOHANG);
	while (rc < 0 && errno == EINTR);
	return rc;
}

/* Hears the child until it has ended. A process that it left behind may hold the pipes open: what
 * counts is the child itself. */
static int attend(pid_t pid, struct channel channels[2], const struct child_hooks *hooks,
	int *status, struct error *err)
{
	int64_t deadline = 0, next_look = now_ms() + TICK_MS;
	bool stopping = false;

	for (;;) {
		struct pollfd fds[2] = { { channels[0].fd, POLLIN, 0 },
			{ channels[1].fd, POLLIN, 0 } };
		/* The report ends when the child ends, or is about to. */
		int wait = channels[0].fd < 0 ? 10 : TICK_MS;
		int ended;

		poll(fds, 2, wait);
		ended = reap(pid, status);
		channel_read(&channels[0]);
		channel_read(&channels[1]);
		if (ended == pid)
			return 0;
		if (ended < 0)
			return error_errno(err, "waiting for the tool");
		if (stopping && now_ms() >= deadline)
			kill(-pid, SIGKILL);
		if (stopping || now_ms() < next_look)
			continue;
		next_look = now_ms() + TICK_MS;
		if (!hooks->go_on(hooks->ctx)) {
			stopping = true;
			deadline = now_ms() + hooks->grace * INT64_C(1000);
			kill(pid, SIGTERM);
		}
	}
}

static int open_pipes(int pipes[2][2], struct error *err)
{
	for (int i = 0; i < 2; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			return error_errno(err, "pipe");
		if (fcntl(pipes[i][0], F_SETFL, O_NONBLOCK) < 0)
			return error_errno(err, "pipe: O_NONBLOCK");
	}
	return 0;
}

int child_run(char *const arguments[], char *const environment[], const struct child_hooks *hooks,
	int *status, struct error *err)
{
	int pipes[2][2] = { { -1, -1 }, { -1, -1 } };
	struct sigaction plain = { .sa_handler = SIG_DFL }, before;
	pid_t parent = getpid(), pid;
	int rc = open_pipes(pipes, err);

	/* With SIGCHLD ignored there would be nothing to wait for. */
	sigaction(SIGCHLD, &plain, &before);
	pid = rc ? -1 : fork();
	if (pid == 0)
		become_child(arguments, environment, pipes[0][1], pipes[1][1], parent,
			hooks->follow_parent);
	if (!rc && pid < 0)
		rc = error_errno(err, "fork");
	for (int i = 0; i < 2; i++)
		if (pipes[i][1] >= 0)
			close(pipes[i][1]);
	struct channel channels[2] = {
		{ .fd = pipes[0][0], .hear = hooks->report, .ctx = hooks->ctx },
		{ .fd = pipes[1][0], .hear = hooks->said, .ctx = hooks->ctx },
	};
	if (!rc)
		rc = attend(pid, channels, hooks, status, err);
	for (int i = 0; i < 2; i++)
		if (channels[i].fd >= 0)
			close(channels[i].fd);
	sigaction(SIGCHLD, &before, NULL);
	return rc;
}
