#include "report/progress.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NANOSECONDS 250000000
#define SMOOTH_SECONDS 3.0
#define TEXT_SIZE 512

struct progress {
	int fd;
	bool terminal, stop, drawn;
	char *label;
	void (*sample)(void *ctx, struct progress_now *now);
	void *ctx;
	struct timespec start;
	double sampled, plain_due;
	struct progress_now now;
	struct progress_rates rates;
	pthread_t thread;
	pthread_cond_t wake;
};

/* The log's hook has no context of its own, and a log line may be under way in any thread while a progress
 * line comes or goes: what is shown and its lock belong to the log sink. */
static pthread_mutex_t shown_lock = PTHREAD_MUTEX_INITIALIZER;
static struct progress *shown;

static void progress_write(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return; /* nobody looks */
		text += written;
		length -= (size_t)written;
	}
}

static size_t progress_columns(int fd)
{
	struct winsize size;

	return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col > 1 ? size.ws_col : 80;
}

/* The last column stays free: a full line would wrap and could not be taken away again. */
static void progress_draw(struct progress *progress)
{
	char text[TEXT_SIZE], line[TEXT_SIZE + 8];
	size_t columns = progress_columns(progress->fd);

	progress_text(progress->label, &progress->now, &progress->rates, text,
		columns < sizeof(text) ? columns : sizeof(text));
	progress_write(progress->fd, line,
		(size_t)snprintf(line, sizeof(line), "\r%s\033[K", text));
	progress->drawn = true;
}

static void progress_erase(struct progress *progress)
{
	static const char erase[] = "\r\033[K";

	if (progress->drawn)
		progress_write(progress->fd, erase, sizeof(erase) - 1);
	progress->drawn = false;
}

static void progress_hook(int before)
{
	if (before) {
		pthread_mutex_lock(&shown_lock);
		if (shown)
			progress_erase(shown);
		return;
	}
	if (shown && shown->sampled > 0)
		progress_draw(shown);
	pthread_mutex_unlock(&shown_lock);
}

static double progress_elapsed(const struct progress *progress)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - progress->start.tv_sec) +
		(double)(now.tv_nsec - progress->start.tv_nsec) / 1e9;
}

/* A rate that follows what happens now, without jumping at every file; in the beginning the mean. */
static void progress_smooth(double *rate, uint64_t before, uint64_t now, double seconds,
	double elapsed)
{
	double weight = seconds / (elapsed < SMOOTH_SECONDS ? elapsed : SMOOTH_SECONDS);
	double current = now > before ? (double)(now - before) / seconds : 0;

	*rate += (weight < 1 ? weight : 1) * (current - *rate);
}

static void progress_sample(struct progress *progress, double elapsed)
{
	struct progress_now before = progress->now;
	double seconds = elapsed - progress->sampled;

	if (seconds <= 0)
		return;
	progress->sample(progress->ctx, &progress->now);
	progress_smooth(&progress->rates.files, before.files, progress->now.files, seconds, elapsed);
	progress_smooth(&progress->rates.bytes, before.bytes, progress->now.bytes, seconds, elapsed);
	progress->sampled = elapsed;
}

static void progress_plain(struct progress *progress, double elapsed)
{
	char text[TEXT_SIZE], line[TEXT_SIZE + 16];

	if (elapsed < progress->plain_due)
		return;
	progress_text(progress->label, &progress->now, &progress->rates, text, sizeof(text));
	progress_write(progress->fd, line,
		(size_t)snprintf(line, sizeof(line), "stagetool: %s\n", text));
	while (progress->plain_due <= elapsed)
		progress->plain_due = progress_next(progress->plain_due);
}

/* Waits for the next redraw or the end. Called with the lock. */
static void progress_pause(struct progress *progress)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += REDRAW_NANOSECONDS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!progress->stop &&
		pthread_cond_timedwait(&progress->wake, &shown_lock, &until) != ETIMEDOUT)
		;
}

static void *progress_run(void *argument)
{
	struct progress *progress = argument;

	pthread_mutex_lock(&shown_lock);
	for (progress_pause(progress); !progress->stop; progress_pause(progress)) {
		double elapsed = progress_elapsed(progress);

		progress_sample(progress, elapsed);
		if (progress->terminal)
			progress_draw(progress);
		else
			progress_plain(progress, elapsed);
	}
	pthread_mutex_unlock(&shown_lock);
	return NULL;
}

static void progress_free(struct progress *progress)
{
	pthread_cond_destroy(&progress->wake);
	free(progress->label);
	free(progress);
}

static struct progress *progress_new(int fd, const char *label)
{
	struct progress *progress = calloc(1, sizeof(*progress));
	const char *term = getenv("TERM");
	pthread_condattr_t attributes;

	if (!progress)
		return NULL;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&progress->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	progress->fd = fd;
	progress->terminal = isatty(fd) && term && *term && strcmp(term, "dumb");
	progress->label = strdup(label);
	progress->plain_due = progress_next(0);
	clock_gettime(CLOCK_MONOTONIC, &progress->start);
	if (progress->label)
		return progress;
	progress_free(progress);
	return NULL;
}

struct progress *progress_start(int fd, bool quiet, const char *label,
	void (*sample)(void *ctx, struct progress_now *now), void *ctx)
{
	struct progress *progress = quiet ? NULL : progress_new(fd, label);
	sigset_t all, before;
	int rc;

	if (!progress)
		return NULL; /* the work goes on without */
	progress->sample = sample;
	progress->ctx = ctx;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&progress->thread, NULL, progress_run, progress);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		progress_free(progress);
		return NULL;
	}
	if (progress->terminal) {
		pthread_mutex_lock(&shown_lock);
		shown = progress;
		pthread_mutex_unlock(&shown_lock);
		log_set_hook(progress_hook);
	}
	return progress;
}

void progress_stop(struct progress *progress)
{
	if (!progress)
		return;
	pthread_mutex_lock(&shown_lock);
	progress->stop = true;
	pthread_cond_signal(&progress->wake);
	progress_erase(progress);
	if (shown == progress)
		shown = NULL;
	pthread_mutex_unlock(&shown_lock);
	if (progress->terminal)
		log_set_hook(NULL);
	pthread_join(progress->thread, NULL);
	progress_free(progress);
}
