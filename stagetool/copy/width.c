#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "copy/internal.h"

/*
 * How many threads. What an entry costs is mostly waiting for one side or the other, and the number
 * of requests in flight hides that; where nothing is waited for, more threads than processors do no
 * good. The median of the last operations' times asleep says which it is. Asleep: on a busy node
 * an operation takes long because others have the processor, and more threads would only wait for
 * it too, so neither time on a processor nor time in its queue counts. Width only grows, and
 * threads that have nothing to do cost nothing.
 */
static const struct {
	unsigned microseconds, width;
} steps[] = { { 1500, 128 }, { 400, 64 }, { 120, 32 }, { 60, 16 } };

/* Large files: what one stream waits for a megabyte, and how many streams that is worth. A buffer of the
 * kernel that is full for a moment should not count, and a disk gains nothing by more. */
#define WIDTH_PIECE_MICROSECONDS 200
#define WIDTH_PIECES 16

#define WIDTH_FEW_SAMPLES 3
/* Entries of one worker between two samples: of the first ones and later. Taking the time costs as
 * much as an entry of a local filesystem. */
#define WIDTH_EVERY 16
#define WIDTH_EVERY_LATER 256
#define WIDTH_FIRST_SAMPLES 8

static unsigned width_processors(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN)
							    : CPU_COUNT(&set);

	if (count < 2)
		return 2;
	return count > 64 ? 64 : (unsigned)count;
}

unsigned copy_width_begin(const struct copy_options *options, unsigned *max)
{
	/* Each worker has a file open on both sides. */
	unsigned limit = handle_limit(), most = limit > 128 ? (limit - 64) / 8 : 8;
	unsigned width = options->threads ? options->threads : width_processors();

	if (most > POOL_MAX_WIDTH)
		most = POOL_MAX_WIDTH;
	if (width > most)
		width = most;
	*max = options->threads ? width : most;
	return width;
}

void copy_width_count(struct copy *copy, unsigned worker)
{
	struct copy_worker *own = &copy->workers[worker];

	if (++own->sample < (own->samples < WIDTH_FIRST_SAMPLES ? WIDTH_EVERY : WIDTH_EVERY_LATER))
		return;
	own->sample = 0;
	own->samples++;
}

static int64_t width_nanoseconds(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0;
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* For how long this thread was ready to run and had to wait for a processor (proc(5), schedstat).
 * 0 where the kernel does not say. */
static int64_t width_queued(void)
{
	autoclose int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	long long on_processor, queued;
	char text[64];
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (size <= 0)
		return 0;
	text[size] = '\0';
	return sscanf(text, "%lld %lld", &on_processor, &queued) == 2 ? queued : 0;
}

/* Time that this thread has not slept so far, in ns. */
static int64_t width_awake(void)
{
	return width_nanoseconds(CLOCK_THREAD_CPUTIME_ID) + width_queued();
}

/* What this thread has slept until now, in ns from a point of no meaning, never 0: the start of a
 * sample. Looking at the clocks takes time and may itself be interrupted. So the wall clock is read
 * last at the start and first at the end: what comes in between makes a sample shorter, not longer.
 */
static uint64_t width_asleep(void)
{
	int64_t awake = width_awake();

	return (uint64_t)(width_nanoseconds(CLOCK_MONOTONIC) - awake) | 1;
}

uint64_t copy_width_start(const struct copy *copy, unsigned worker)
{
	if (copy->options.threads || copy->workers[worker].sample != 1 ||
		pool_width(copy->pool) >= copy->max_width)
		return 0;
	return width_asleep();
}

uint64_t copy_width_start_list(struct copy *copy, unsigned worker)
{
	unsigned number = copy->workers[worker].lists++;

	if (copy->options.threads || pool_width(copy->pool) >= copy->max_width ||
		(number >= WIDTH_FIRST_SAMPLES && number % WIDTH_EVERY_LATER))
		return 0;
	return width_asleep();
}

uint64_t copy_width_start_piece(const struct copy *copy)
{
	if (copy->options.threads || pool_width(copy->pool) >= WIDTH_PIECES)
		return 0;
	return width_asleep();
}

/* Microseconds asleep since start; at most 10 s. */
static unsigned width_slept(uint64_t start)
{
	int64_t now = width_nanoseconds(CLOCK_MONOTONIC), slept = now - width_awake() - (int64_t)start;

	if (slept < 0)
		return 0;
	return slept > 10000000000 ? 10000000 : (unsigned)(slept / 1000);
}

static int width_compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

static unsigned width_median(const struct copy_latency *latency)
{
	unsigned sorted[COPY_SAMPLES] = { 0 };
	unsigned count = latency->count < COPY_SAMPLES ? latency->count : COPY_SAMPLES;

	for (unsigned i = 0; i < count; i++)
		sorted[i] = latency->microseconds[i];
	qsort(sorted, count, sizeof(sorted[0]), width_compare);
	return sorted[count / 2];
}

static bool width_waits(struct copy *copy, enum copy_timed what)
{
	const struct copy_latency *latency = &copy->latency[what];

	return latency->count &&
	       width_median(latency) >= steps[sizeof(steps) / sizeof(steps[0]) - 1].microseconds;
}

/* Whether it is the source that is waited for, and not what it is copied to. Under copy->lock. */
static bool width_source_waits(struct copy *copy)
{
	return (width_waits(copy, COPY_TIMED_LIST) || width_waits(copy, COPY_TIMED_OPEN) ||
		       width_waits(copy, COPY_TIMED_READ)) &&
	       copy->latency[COPY_TIMED_CREATE].count && !width_waits(copy, COPY_TIMED_CREATE) &&
	       !width_waits(copy, COPY_TIMED_SYNC);
}

/* One sample more of a kind. The median of the last ones; 0 while they are too few. */
static unsigned width_add(struct copy *copy, enum copy_timed what, unsigned microseconds)
{
	struct copy_latency *latency = &copy->latency[what];
	unsigned median = 0;

	pthread_mutex_lock(&copy->lock);
	latency->microseconds[latency->count++ % COPY_SAMPLES] = microseconds;
	if (latency->count >= WIDTH_FEW_SAMPLES)
		median = width_median(latency);
	atomic_store(&copy->source_waits, width_source_waits(copy));
	pthread_mutex_unlock(&copy->lock);
	return median;
}

static void width_grow(struct copy *copy, unsigned width)
{
	if (width > copy->max_width)
		width = copy->max_width;
	if (width > pool_width(copy->pool))
		pool_grow(copy->pool, width);
}

void copy_width_note(struct copy *copy, enum copy_timed what, uint64_t start, unsigned crowd)
{
	unsigned median, width = 0;

	if (!start || crowd > 1)
		return;
	median = width_add(copy, what, width_slept(start));
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !width; i++)
		if (median >= steps[i].microseconds)
			width = steps[i].width;
	width_grow(copy, width);
}

void copy_width_note_piece(struct copy *copy, uint64_t start, uint64_t bytes)
{
	uint64_t slept;

	if (!start || bytes < 1 << 20)
		return;
	slept = ((uint64_t)width_slept(start) << 20) / bytes;
	if (width_add(copy, COPY_TIMED_PIECE, (unsigned)slept) >= WIDTH_PIECE_MICROSECONDS)
		width_grow(copy, WIDTH_PIECES);
}
