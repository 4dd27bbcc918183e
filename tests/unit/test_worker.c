#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stage/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534

struct test {
	int extra; /* an fd that must not get into the child */
	int heard, ticks;
	json_int_t uid;
};

static gid_t group = NOBODY;
static struct priv_user nobody = { NOBODY, NOBODY, NULL, &group, 1 };

static void wait_for(const atomic_bool *stop)
{
	for (int i = 0; i < 3000 && !*stop; i++)
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
}

static int heard(void *ctx, struct worker *worker, const json_t *message, struct error *err)
{
	struct test *test = ctx;

	test->heard++;
	test->uid = json_integer_value(json_object_get(message, "uid"));
	if (json_object_get(message, "refuse"))
		return error_set(err, -ENOSPC, "refused");
	return worker_send(worker->fd, json_pack("{s:s}", "kind", "go"), err);
}

static void tick(void *ctx)
{
	((struct test *)ctx)->ticks++;
}

static int run(struct test *test, int (*body)(void *, int, const atomic_bool *, struct error *),
	struct error *err)
{
	struct worker_options options = {
		.user = &nobody,
		.ctx = test,
		.body = body,
		.heard = heard,
		.tick = tick,
	};

	return worker_run(&options, err);
}

static int body_talk(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	struct test *test = ctx;
	json_t *answer = NULL;
	int code;

	(void)stop;
	if (fcntl(test->extra, F_GETFD) >= 0)
		return error_set(err, -EBADF, "the extra descriptor is open");
	code = worker_send(
		fd, json_pack("{s:s, s:I}", "kind", "hello", "uid", (json_int_t)getuid()), err);
	if (!code)
		code = worker_receive(fd, &answer, err);
	json_decref(answer);
	return code;
}

static void test_talk(void **state)
{
	struct test test = { .extra = dup(1) };
	struct error err = ERROR_INIT;

	(void)state;
	if (run(&test, body_talk, &err))
		fail_msg("%s", err.text);
	assert_int_equal(test.heard, 1);
	assert_int_equal(test.uid, NOBODY);
	close(test.extra);
}

static int body_fail(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	(void)ctx;
	(void)fd;
	(void)stop;
	return error_set(err, -EDQUOT, "a\xff\nb: quota");
}

static int body_crash(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	(void)ctx;
	(void)fd;
	(void)stop;
	(void)err;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

static int body_refused(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	json_t *answer = NULL;

	(void)ctx;
	(void)stop;
	worker_send(fd, json_pack("{s:s, s:b}", "kind", "hello", "refuse", 1), err);
	return worker_receive(fd, &answer, err);
}

static void test_failures(void **state)
{
	struct test test = { .extra = -1 };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(run(&test, body_fail, &err), -EDQUOT);
	assert_string_equal(err.text, "a\\xff\\x0ab: quota");
	assert_int_equal(run(&test, body_crash, &err), -ECHILD);
	assert_non_null(strstr(err.text, "signal 11"));
	assert_int_equal(run(&test, body_refused, &err), -ENOSPC);
	assert_string_equal(err.text, "refused");
}

static int body_garbage(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	(void)ctx;
	(void)err;
	if (send(fd, "{\"kind\":", 8, 0) < 0)
		return -1;
	wait_for(stop);
	return 0;
}

static int body_huge(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	static char huge[WORKER_MESSAGE_MAX + 2];

	(void)ctx;
	(void)err;
	memset(huge, ' ', sizeof(huge));
	if (send(fd, huge, sizeof(huge), 0) < 0)
		return -1;
	wait_for(stop);
	return 0;
}

static int body_false_error(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	(void)ctx;
	worker_send(fd, json_pack("{s:s, s:i}", "kind", "error", "errno", -5), err);
	wait_for(stop);
	return 0;
}

static void test_strange_words(void **state)
{
	struct test test = { .extra = -1 };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(run(&test, body_garbage, &err), -EPROTO);
	assert_int_equal(run(&test, body_huge, &err), -EPROTO);
	assert_int_equal(run(&test, body_false_error, &err), -EPROTO);
}

static int body_wait(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	(void)ctx;
	(void)fd;
	kill(getppid(), SIGTERM); /* fails: it is root's */
	wait_for(stop);
	return *stop ? error_set(err, -ECANCELED, "stopped") : 0;
}

static int body_deaf(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	(void)ctx;
	(void)fd;
	(void)stop;
	(void)err;
	for (;;)
		pause();
	return 0;
}

static void alarm_after(unsigned ms)
{
	struct timespec pause = { 0, ms * 1000000L };
	pid_t parent = getpid();

	if (fork() == 0) {
		nanosleep(&pause, NULL);
		kill(parent, SIGTERM);
		_exit(0);
	}
}

static void test_stop(void **state)
{
	struct test test = { .extra = -1 };
	struct error err = ERROR_INIT;

	(void)state;
	alarm_after(200);
	assert_int_equal(run(&test, body_wait, &err), -ECANCELED);
	alarm_after(200);
	assert_int_equal(run(&test, body_deaf, &err), -ECANCELED);
	assert_true(test.ticks >= WORKER_GRACE - 1);
}

static void test_limit(void **state)
{
	struct test test = { .extra = -1 };
	struct worker_options options = {
		.user = &nobody, .limit = 1, .ctx = &test, .body = body_wait
	};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(worker_run(&options, &err), -ETIME);
}

/* Counts a while, for longer than it may take without. */
static int body_count(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	int code = 0;

	(void)ctx;
	(void)stop;
	for (int i = 0; i < 18 && !code; i++) {
		nanosleep(&(struct timespec){ 0, 250000000 }, NULL);
		code = worker_send(
			fd, json_pack("{s:s, s:i}", "kind", "hello", "steps", i), err);
	}
	return code;
}

static int heard_count(
	void *ctx, struct worker *worker, const json_t *message, struct error *err)
{
	(void)ctx;
	(void)err;
	worker_counted(worker, (uint64_t)json_integer_value(json_object_get(message, "steps")));
	return 0;
}

/* Says that it is where it was. */
static int body_repeat(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	(void)ctx;
	while (!*stop && !worker_send(fd, json_pack("{s:s, s:i}", "kind", "hello", "steps", 7), err))
		nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	return 0;
}

/* Counts nothing, and reads. */
static int body_read(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	char byte;

	(void)ctx;
	(void)stop;
	for (int i = 0; i < 18; i++) {
		int file = open("/proc/version", O_RDONLY | O_CLOEXEC);

		if (file < 0 || read(file, &byte, 1) != 1)
			return error_errno(err, "/proc/version");
		close(file);
		nanosleep(&(struct timespec){ 0, 250000000 }, NULL);
	}
	(void)fd;
	return 0;
}

static void test_stall(void **state)
{
	struct worker_options options = { .user = &nobody, .stall = 3, .heard = heard_count };
	bool left = false;
	struct error err = ERROR_INIT;

	(void)state;
	options.left = &left;
	options.body = body_count;
	assert_int_equal(worker_run(&options, &err), 0);
	options.body = body_read;
	if (access("/proc/self/io", R_OK) == 0)
		assert_int_equal(worker_run(&options, &err), 0);
	options.stall = 1;
	options.body = body_repeat;
	assert_int_equal(worker_run(&options, &err), -ETIMEDOUT);
	options.body = body_deaf;
	err = (struct error)ERROR_INIT;
	assert_int_equal(worker_run(&options, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "nothing moved for 1 s"));
	assert_false(left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_talk),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_strange_words),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_stall),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
