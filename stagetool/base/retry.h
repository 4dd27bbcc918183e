/*
 * Errors that may be over a moment later, and waiting for that.
 */
#ifndef BASE_RETRY_H
#define BASE_RETRY_H

#include <stdbool.h>

#define RETRY_MAX 3

/* Whether code (a negative errno) is one of a server or device that may come back: EIO, ESTALE,
 * ETIMEDOUT, EAGAIN, EINTR and their like. */
bool retry_is_transient(int code);

/* Whether to try again: code is transient and *attempt (0 at first; raised) is below RETRY_MAX.
 * Sleeps before it says so: 20 ms, then 100, then 500. */
bool retry_again(int code, unsigned *attempt);

#endif
