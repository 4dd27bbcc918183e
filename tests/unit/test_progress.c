#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "report/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_text(struct progress_now now, struct progress_rates rates, const char *expected)
{
	char text[256];

	assert_string_equal(progress_text("copy", &now, &rates, text, sizeof(text)), expected);
}

static void test_text(void **state)
{
	const uint64_t mib = 1024 * 1024;

	(void)state;
	check_text((struct progress_now){ 0 }, (struct progress_rates){ 0 }, "copy: 0 files, 0 B");
	check_text((struct progress_now){ .files = 12345, .bytes = 3 * mib },
		(struct progress_rates){ .files = 10, .bytes = (double)mib },
		"copy: 12,345 files, 3.0 MiB, 1.0 MiB/s");
	check_text((struct progress_now){ .files = 5 }, (struct progress_rates){ .files = 1200 },
		"copy: 5 files, 0 B, 1,200 files/s");
	check_text((struct progress_now){ .files = 1, .bytes = mib, .total_files = 2,
			   .total_bytes = 4 * mib },
		(struct progress_rates){ .files = 1, .bytes = (double)mib },
		"copy: 1 file, 1.0 MiB of 4.0 MiB (25 %), 1.0 MiB/s, 3.0 s left");
	/* What is slower, files or bytes, decides the time that is left. */
	check_text((struct progress_now){ .files = 1, .bytes = mib, .total_files = 101,
			   .total_bytes = 2 * mib },
		(struct progress_rates){ .files = 1, .bytes = (double)mib },
		"copy: 1 file, 1.0 MiB of 2.0 MiB (50 %), 1.0 MiB/s, 1 min 40 s left");
	/* More than was expected is not more than everything. */
	check_text((struct progress_now){ .files = 3, .bytes = 5 * mib, .total_files = 2,
			   .total_bytes = 4 * mib },
		(struct progress_rates){ 0 }, "copy: 3 files, 5.0 MiB of 4.0 MiB (100 %)");
}

static void test_text_is_cut(void **state)
{
	const struct progress_now now = { .files = 12345, .bytes = 1 };
	const struct progress_rates rates = { 0 };
	char text[10];

	(void)state;
	assert_string_equal(progress_text("copy", &now, &rates, text, sizeof(text)), "copy: 12,");
}

static void test_plain_lines_grow_rare(void **state)
{
	static const double due[] = { 10, 20, 40, 80, 160, 320, 620, 920, 1220 };
	double at = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++) {
		at = progress_next(at);
		assert_true(at > due[i] - 0.5 && at < due[i] + 0.5);
	}
}

static void sample(void *ctx, struct progress_now *now)
{
	const struct progress_now *all = ctx;

	*now = *all;
}

/* Reads from fd until what came holds wanted, or nothing comes for long. */
static char *read_until(int fd, const char *wanted)
{
	char *text = calloc(1, 1), *grown, part[1024];
	struct pollfd waiting = { .fd = fd, .events = POLLIN };
	size_t used = 0;

	while (text && !strstr(text, wanted) && poll(&waiting, 1, 20000) > 0) {
		ssize_t got = read(fd, part, sizeof(part));

		if (got <= 0)
			break;
		grown = realloc(text, used + (size_t)got + 1);
		assert_non_null(grown);
		text = grown;
		memcpy(text + used, part, (size_t)got);
		used += (size_t)got;
		text[used] = '\0';
	}
	return text;
}

struct terminal {
	int master, slave;
};

static struct terminal open_terminal(unsigned short columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	struct terminal terminal;

	assert_int_equal(openpty(&terminal.master, &terminal.slave, NULL, NULL, &size), 0);
	return terminal;
}

static void close_terminal(struct terminal *terminal)
{
	close(terminal->master);
	close(terminal->slave);
}

static void test_terminal(void **state)
{
	struct progress_now now = { .files = 7, .bytes = 1024 };
	struct terminal terminal = open_terminal(80);
	struct progress *progress;
	autofree char *drawn = NULL, *erased = NULL;

	(void)state;
	setenv("TERM", "xterm", 1);
	progress = progress_start(terminal.slave, false, "copy", sample, &now);
	assert_non_null(progress);
	drawn = read_until(terminal.master, "\033[K");
	assert_non_null(strstr(drawn, "\rcopy: 7 files, 1.0 KiB"));
	progress_stop(progress);
	assert_int_equal(write(terminal.slave, "END", 3), 3);
	erased = read_until(terminal.master, "END");
	assert_true(strlen(erased) >= 7);
	assert_string_equal(erased + strlen(erased) - 7, "\r\033[KEND");
	close_terminal(&terminal);
}

static void test_terminal_is_narrow(void **state)
{
	struct progress_now now = { .files = 1234567, .bytes = 1024 };
	struct terminal terminal = open_terminal(20);
	struct progress *progress;
	autofree char *drawn = NULL;

	(void)state;
	setenv("TERM", "xterm", 1);
	progress = progress_start(terminal.slave, false, "copy", sample, &now);
	drawn = read_until(terminal.master, "\033[K");
	assert_int_equal(strncmp(drawn, "\rcopy: 1,234,567 fil\033[K", 23), 0);
	progress_stop(progress);
	close_terminal(&terminal);
}

/* Lines of the log go to standard error, which is the terminal here: the progress line makes way. */
static void test_log_line_between(void **state)
{
	struct progress_now now = { .files = 7 };
	struct terminal terminal = open_terminal(80);
	int saved = dup(STDERR_FILENO);
	struct progress *progress;
	autofree char *drawn = NULL, *after = NULL;

	(void)state;
	setenv("TERM", "xterm", 1);
	assert_true(saved >= 0);
	dup2(terminal.slave, STDERR_FILENO);
	progress = progress_start(STDERR_FILENO, false, "copy", sample, &now);
	drawn = read_until(terminal.master, "copy: 7 files");
	log_info("a line");
	after = read_until(terminal.master, "a line\r\n\rcopy: 7 files");
	progress_stop(progress);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_non_null(strstr(after, "\r\033[Kstagetool: a line\r\n\rcopy: 7 files"));
	close_terminal(&terminal);
}

static void test_nothing_where_it_is_not_wanted(void **state)
{
	struct progress_now now = { .files = 7 };
	struct terminal terminal = open_terminal(80);
	struct progress *progress;
	int pipes[2];
	char byte;

	(void)state;
	assert_null(progress_start(terminal.slave, true, "copy", sample, &now));
	progress_stop(NULL);
	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	progress = progress_start(pipes[1], false, "copy", sample, &now);
	assert_non_null(progress);
	usleep(600000); /* on a terminal there would be a line by now */
	progress_stop(progress);
	assert_true(read(pipes[0], &byte, 1) < 0);
	setenv("TERM", "dumb", 1);
	progress = progress_start(terminal.slave, false, "copy", sample, &now);
	usleep(600000);
	progress_stop(progress);
	assert_int_equal(fcntl(terminal.master, F_SETFL, O_NONBLOCK), 0);
	assert_true(read(terminal.master, &byte, 1) < 0);
	close(pipes[0]);
	close(pipes[1]);
	close_terminal(&terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_is_cut),
		cmocka_unit_test(test_plain_lines_grow_rare),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_terminal_is_narrow),
		cmocka_unit_test(test_log_line_between),
		cmocka_unit_test(test_nothing_where_it_is_not_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
