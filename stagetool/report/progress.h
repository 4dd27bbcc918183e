/*
 * One line on a terminal, a few plain lines in a log.
 */
#ifndef REPORT_PROGRESS_H
#define REPORT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress;

/* What is known at a moment; total_* 0: not known. */
struct progress_now {
	uint64_t files, bytes, total_files, total_bytes;
};

/* Starts a thread that asks sample now and then and shows: on a terminal (fd is one, TERM is not dumb)
 * a line redrawn some times a second and cut to the terminal's width; elsewhere a plain line after 10 s, then
 * at doubling distances up to 5 min, never a carriage return. quiet: nothing. Registers itself
 * with log_set_hook. label is copied. */
struct progress *progress_start(int fd, bool quiet, const char *label,
	void (*sample)(void *ctx, struct progress_now *now), void *ctx);

/* What a line says: "copy: 12,345 files, 1.2 GiB of 4.0 GiB (30 %), 400 MiB/s, 7 s left", cut to size - 1
 * bytes; rates are per second, 0: not known. Returns buffer. For the thread, and for tests. */
struct progress_rates {
	double files, bytes;
};
char *progress_text(const char *label, const struct progress_now *now,
	const struct progress_rates *rates, char *buffer, size_t size);

/* When the plain line after the one at seconds is due: 10, 20, 40, 80, 160, 320, 620, ... */
double progress_next(double seconds);

/* Takes the line away and ends the thread. NULL is fine. */
void progress_stop(struct progress *progress);

#endif
