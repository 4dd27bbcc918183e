#include "stage/worker.h"

#include "base/cleanup.h"
#include "report/summary.h"
#include "stage/fields.h"
#include "stage/worker_child.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define TICK_MS 1000
/* How long one that was killed may take to end, in seconds; what it writes to a disk is waited for. */
#define KILLED_GRACE 30
/* Each byte of an error's text may be written as four. */
#define ERROR_SHOWN_MAX (4 * ERROR_TEXT_SIZE)

/* What the parent knows of its child while it runs. */
struct worker_watch {
	const struct worker_options *options;
	struct worker worker;
	int signals;                       /* a signalfd */
	uint64_t io;                       /* bytes that it was last seen to have moved */
	int64_t start, next_tick, kill_at; /* ms; kill_at 0: it was not told to stop */
	int why;                           /* why it was told to stop: a negative errno */
	struct error told;                 /* what the child says went wrong */
	bool open;                         /* it can still say something */
	bool ended;                        /* status is how */
	bool lost;                         /* it was killed and lives on */
	int status;
};

int worker_send(int fd, json_t *message, struct error *err)
{
	autofree char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t size = text ? strlen(text) : 0;
	ssize_t sent;

	json_decref(message);
	if (!text)
		return error_sys(err, -ENOMEM, "message");
	if (size > WORKER_MESSAGE_MAX)
		return error_set(err, -EMSGSIZE, "message of %zu bytes", size);
	do
		sent = send(fd, text, size, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? error_errno(err, "message") : 0;
}

int worker_send_error(int fd, const struct error *error)
{
	return worker_send(fd,
		json_pack("{s:s, s:i, s:o}", "kind", WORKER_ERROR, "errno", -error->code, "text",
			summary_json_bytes(error->text)),
		NULL);
}

int worker_receive(int fd, json_t **message, struct error *err)
{
	autofree char *buffer = malloc(WORKER_MESSAGE_MAX + 1);
	json_error_t where;
	ssize_t size;

	if (!buffer)
		return error_sys(err, -ENOMEM, "message");
	do
		size = recv(fd, buffer, WORKER_MESSAGE_MAX + 1, 0);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return error_errno(err, "message");
	if (size == 0)
		return error_sys(err, -EPIPE, "message");
	if (size > WORKER_MESSAGE_MAX)
		return error_set(err, -EPROTO, "message: longer than %d bytes", WORKER_MESSAGE_MAX);
	*message = json_loadb(buffer, (size_t)size, 0, &where);
	if (!json_is_object(*message)) {
		json_decref(*message);
		return error_set(err, -EPROTO, "message: not a JSON object");
	}
	return 0;
}

static int64_t worker_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Its pid is somebody else's once it has been waited for. */
static void worker_kill(const struct worker_watch *watch, int signal)
{
	if (!watch->ended)
		kill(watch->worker.pid, signal);
}

static void worker_stop(struct worker_watch *watch, int why)
{
	if (watch->kill_at)
		return;
	watch->why = why;
	watch->kill_at = worker_now() + WORKER_GRACE * INT64_C(1000);
	worker_kill(watch, SIGTERM);
}

static void *worker_ctx(const struct worker_options *options)
{
	return options->parent_ctx ? options->parent_ctx : options->ctx;
}

/* The body's own error: a number and a text of a stranger. */
static int worker_hear_error(const json_t *message, struct error *told, struct error *err)
{
	autofree char *text = NULL;
	uint64_t number;
	int code = fields_get_number(message, "errno", 4095, &number, err);

	if (!code)
		code = fields_get_bytes(message, "text", true, ERROR_SHOWN_MAX, &text, err);
	if (!code)
		error_set(told, number ? -(int)number : -EIO, "%s", text);
	return code;
}

/* One message, or the end of them. */
static int worker_hear(struct worker_watch *watch, struct error *err)
{
	struct error broken = ERROR_INIT;
	json_t *message = NULL;
	const char *kind;
	int code = worker_receive(watch->worker.fd, &message, &broken);

	if (code == -EPIPE || code == -ECONNRESET) {
		watch->open = false;
		return 0;
	}
	if (code)
		return error_set(err, code, "%s", broken.text);
	kind = json_string_value(json_object_get(message, "kind"));
	if (kind && !strcmp(kind, WORKER_ERROR))
		code = worker_hear_error(message, &watch->told, err);
	else if (kind && watch->options->heard)
		code = watch->options->heard(
			worker_ctx(watch->options), &watch->worker, message, err);
	else
		code = error_set(err, -EPROTO, "a message of no known kind");
	json_decref(message);
	return code == -EBADMSG ? error_prefix(err, -EPROTO, "message") : code;
}

void worker_moved(struct worker *worker)
{
	worker->moved = worker_now();
}

void worker_counted(struct worker *worker, uint64_t steps)
{
	if (steps != worker->steps)
		worker_moved(worker);
	worker->steps = steps;
}

/* The bytes that its reads and writes have moved; what is not known stays as it is. They show that it
 * gets on where it counts nothing: a file that is read back to be compared. */
static uint64_t worker_io(const struct worker_watch *watch)
{
	char path[64], line[128];
	uint64_t read = 0, written = 0;
	autofile FILE *file = NULL;

	snprintf(path, sizeof(path), "/proc/%d/io", watch->worker.pid);
	file = fopen(path, "re");
	if (!file)
		return watch->io;
	while (fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "rchar: %" SCNu64, &read);
		(void)sscanf(line, "wchar: %" SCNu64, &written);
	}
	return read + written;
}

static void worker_check_stall(struct worker_watch *watch, int64_t now)
{
	uint64_t stall = watch->options->stall, io;

	if (!stall || watch->ended)
		return;
	io = worker_io(watch);
	if (io != watch->io)
		worker_moved(&watch->worker);
	else if ((uint64_t)(now - watch->worker.moved) / 1000 >= stall)
		worker_stop(watch, -ETIMEDOUT);
	watch->io = io;
}

/* It was killed long ago and has not ended. Without a limit it is waited for. */
static bool worker_is_lost(const struct worker_watch *watch)
{
	const struct worker_options *options = watch->options;
	int64_t grace = options->limit ? WORKER_GRACE : KILLED_GRACE;

	if (watch->ended || !watch->kill_at || (!options->limit && !options->stall))
		return false;
	if (options->stall && (uint64_t)grace > options->stall)
		grace = (int64_t)options->stall;
	return worker_now() >= watch->kill_at + grace * 1000;
}

static void worker_clock(struct worker_watch *watch)
{
	const struct worker_options *options = watch->options;
	int64_t now = worker_now();

	if (watch->kill_at && now >= watch->kill_at)
		worker_kill(watch, SIGKILL);
	if (options->limit && now - watch->start >= options->limit * INT64_C(1000))
		worker_stop(watch, -ETIME);
	if (now < watch->next_tick)
		return;
	watch->next_tick = now + TICK_MS;
	worker_check_stall(watch, now);
	/* what it said last is still to be heard; the end of its words is not waited for */
	if (waitpid(watch->worker.pid, &watch->status, WNOHANG) == watch->worker.pid)
		watch->ended = true;
	if (options->tick)
		options->tick(worker_ctx(options));
}

static void worker_take_signal(struct worker_watch *watch)
{
	struct signalfd_siginfo info;

	if (read(watch->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		worker_stop(watch, -ECANCELED);
}

/* Until the child has nothing more to say, or can not be ended. */
static int worker_attend(struct worker_watch *watch, struct error *err)
{
	while (watch->open && !worker_is_lost(watch)) {
		struct pollfd fds[2] = { { watch->worker.fd, POLLIN, 0 },
			{ watch->signals, POLLIN, 0 } };
		int64_t wait = watch->ended ? 0 : watch->next_tick - worker_now();
		int ready = poll(fds, 2, wait < 0 ? 0 : wait > TICK_MS ? TICK_MS : (int)wait);
		int code = 0;

		if (ready < 0 && errno != EINTR)
			return error_errno(err, "poll");
		if (!ready && watch->ended)
			return 0;
		if (ready > 0 && fds[1].revents)
			worker_take_signal(watch);
		if (ready > 0 && fds[0].revents)
			code = worker_hear(watch, err);
		if (code)
			return code;
		worker_clock(watch);
	}
	return 0;
}

/* Nobody waits for it any more. Why it was to end stands, unless that is only now. */
static void worker_leave(struct worker_watch *watch)
{
	watch->lost = true;
	if (!watch->why)
		watch->why = watch->options->limit ? -ETIME : -ETIMEDOUT;
	if (watch->options->left)
		*watch->options->left = true;
}

/* The child has said its last word and is about to end; it is not waited for any longer than one
 * that was told to stop. */
static int worker_reap(struct worker_watch *watch, bool failed)
{
	struct timespec pause = { 0, 5000000 };
	pid_t ended;

	shutdown(watch->worker.fd, SHUT_RDWR);
	if (failed)
		worker_kill(watch, SIGKILL);
	if (!watch->kill_at)
		watch->kill_at = worker_now() + WORKER_GRACE * INT64_C(1000);
	while (!watch->ended) {
		ended = waitpid(watch->worker.pid, &watch->status, WNOHANG);
		if (ended == watch->worker.pid)
			return 0;
		if (ended < 0 && errno != EINTR)
			return -errno;
		if (watch->kill_at && worker_now() >= watch->kill_at)
			worker_kill(watch, SIGKILL);
		if (worker_is_lost(watch)) {
			worker_leave(watch);
			return 0;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int worker_verdict_stall(const struct worker_watch *watch, struct error *err)
{
	uint64_t seconds = watch->options->stall;

	if (!watch->lost)
		return error_set(err, -ETIMEDOUT,
			"nothing moved for %" PRIu64 " s (stall_limit): a file server does not answer?",
			seconds);
	return error_set(err, -ETIMEDOUT,
		"nothing moved for %" PRIu64 " s (stall_limit), and process %d, which copies, can not "
		"be ended: a file server does not answer? Nothing else is done before it ends",
		seconds, watch->worker.pid);
}

static int worker_verdict(const struct worker_watch *watch, struct error *err)
{
	int status = watch->status;

	if (watch->why == -ETIMEDOUT)
		return worker_verdict_stall(watch, err);
	if (watch->why == -ETIME)
		return error_set(err, -ETIME, "it took longer than %u s", watch->options->limit);
	if (watch->why)
		return error_set(err, watch->why, "it was told to stop");
	if (watch->told.code)
		return error_set(err, watch->told.code, "%s", watch->told.text);
	if (WIFSIGNALED(status))
		return error_set(err, -ECHILD, "the copying process was killed by signal %d (%s)",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		return error_set(err, -ECHILD, "the copying process ended with status %d",
			WEXITSTATUS(status));
	return 0;
}

static int worker_start(struct worker_watch *watch, const sigset_t *before, struct error *err)
{
	int pair[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return error_errno(err, "socketpair");
	watch->worker.pid = fork();
	if (watch->worker.pid == 0)
		worker_child(watch->options, pair[1], parent, before);
	close(pair[1]);
	if (watch->worker.pid < 0) {
		int code = error_errno(err, "fork");

		close(pair[0]);
		return code;
	}
	watch->worker.fd = pair[0];
	worker_moved(&watch->worker);
	watch->open = true;
	return 0;
}

int worker_run(const struct worker_options *options, struct error *err)
{
	struct worker_watch watch = { .options = options, .start = worker_now() };
	struct error waiting = ERROR_INIT;
	sigset_t wanted, before;
	int code, reaped;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGHUP);
	sigprocmask(SIG_BLOCK, &wanted, &before);
	watch.next_tick = watch.start + TICK_MS;
	watch.signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	code = watch.signals < 0 ? error_errno(err, "signalfd")
				 : worker_start(&watch, &before, err);
	if (!code) {
		code = worker_attend(&watch, err);
		reaped = worker_reap(&watch, code != 0);
		close(watch.worker.fd);
		if (!code && reaped)
			code = error_sys(&waiting, reaped, "wait for the copying process");
		else if (!code)
			code = worker_verdict(&watch, &waiting);
		if (waiting.code)
			*err = waiting;
	}
	if (watch.signals >= 0)
		close(watch.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}
