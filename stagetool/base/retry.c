#include "base/retry.h"

#include <errno.h>
#include <time.h>

bool retry_is_transient(int code)
{
	switch (-code) {
	case EIO:
	case ESTALE:
	case ETIMEDOUT:
	case EAGAIN:
	case EINTR:
	case EBUSY:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENOTCONN:
	case ECONNRESET:
		return true;
	default:
		return false;
	}
}

bool retry_again(int code, unsigned *attempt)
{
	static const long milliseconds[RETRY_MAX] = { 20, 100, 500 };
	struct timespec pause = { 0, 0 };

	if (!retry_is_transient(code) || *attempt >= RETRY_MAX)
		return false;
	pause.tv_nsec = milliseconds[(*attempt)++] * 1000000;
	while (nanosleep(&pause, &pause) && errno == EINTR)
		continue;
	return true;
}
