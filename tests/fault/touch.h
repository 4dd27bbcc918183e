/*
 * Which files a system call is about, seen from outside.
 */
#ifndef FAULT_TOUCH_H
#define FAULT_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fault/calls.h"

/* Whether an argument of the call that tid is stopped at is below (or at) directory, an absolute
 * path without symlinks. directory NULL: always, as for a call without a row. path (may be NULL)
 * gets the first file that fits, "" if the call is about none. */
bool touch_below(pid_t tid, const struct call *call, const uint64_t *arguments,
	const char *directory, char *path, size_t size);

#endif
