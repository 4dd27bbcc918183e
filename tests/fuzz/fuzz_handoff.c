/*
 * What the prolog leaves for a job's steps. What is read can be written, and is then the same but
 * for control bytes, which are escaped.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"
#include "spec/handoff.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

static char state[40];
static int steps = -1;

static void set_up(void)
{
	int scratch = fuzz_scratch();

	fuzz_require(!mkdirat(scratch, "steps", 0711));
	steps = openat(scratch, "steps", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fuzz_require(steps >= 0);
	snprintf(state, sizeof(state), "/proc/self/fd/%d", scratch);
}

static bool read_handoff(const char *job, struct handoff *handoff)
{
	struct error err = ERROR_INIT;
	int rc = handoff_read(state, job, handoff, &err);

	fuzz_require(!rc || (rc == -EBADMSG && *err.text));
	return !rc;
}

static bool equal(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void check(const struct handoff *handoff)
{
	struct handoff again = { .dir = NULL };

	if (handoff->failed)
		fuzz_require(!handoff->dir && !handoff->tier);
	else
		fuzz_require(*handoff->dir == '/' && handoff->tier);
	fuzz_require(!handoff_write(state, "2", handoff, NULL));
	fuzz_require(read_handoff("2", &again));
	fuzz_require(equal(handoff->dir, again.dir) && equal(handoff->tier, again.tier));
	fuzz_require(equal(handoff->failed, again.failed) && equal(handoff->notice, again.notice));
	handoff_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handoff handoff = { .dir = NULL };
	int fd;

	if (steps < 0)
		set_up();
	fd = openat(steps, "1", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size && !close(fd));
	if (read_handoff("1", &handoff))
		check(&handoff);
	handoff_free(&handoff);
	return 0;
}
