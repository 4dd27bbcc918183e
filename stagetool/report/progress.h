/*
 * One line on a terminal, a few plain lines in a log.
 */
#ifndef REPORT_PROGRESS_H
#define REPORT_PROGRESS_H

#include <stdbool.h>
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

/* Takes the line away and ends the thread. NULL is fine. */
void progress_stop(struct progress *progress);

#endif
