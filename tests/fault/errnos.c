#include "fault/calls.h"

#include <errno.h>
#include <string.h>

#define ROW(name) { #name, name }

static const struct {
	const char *name;
	int number;
} errnos[] = {
	ROW(E2BIG),
	ROW(EACCES),
	ROW(EAGAIN),
	ROW(EBADF),
	ROW(EBUSY),
	ROW(ECHILD),
	ROW(ECONNREFUSED),
	ROW(EDQUOT),
	ROW(EEXIST),
	ROW(EFAULT),
	ROW(EFBIG),
	ROW(EHOSTDOWN),
	ROW(EINTR),
	ROW(EINVAL),
	ROW(EIO),
	ROW(EISDIR),
	ROW(ELOOP),
	ROW(EMFILE),
	ROW(EMLINK),
	ROW(ENAMETOOLONG),
	ROW(ENFILE),
	ROW(ENODATA),
	ROW(ENODEV),
	ROW(ENOENT),
	ROW(ENOLCK),
	ROW(ENOMEM),
	ROW(ENOSPC),
	ROW(ENOSYS),
	ROW(ENOTCONN),
	ROW(ENOTDIR),
	ROW(ENOTEMPTY),
	ROW(ENOTTY),
	ROW(ENXIO),
	ROW(EOPNOTSUPP),
	ROW(EPERM),
	ROW(EPIPE),
	ROW(ERANGE),
	ROW(EREMOTEIO),
	ROW(EROFS),
	ROW(ESPIPE),
	ROW(ESRCH),
	ROW(ESTALE),
	ROW(ETIMEDOUT),
	ROW(ETXTBSY),
	ROW(EXDEV),
};

int errnos_number(const char *name)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (!strcmp(errnos[i].name, name))
			return errnos[i].number;
	}
	return 0;
}

const char *errnos_name(int number)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (errnos[i].number == number)
			return errnos[i].name;
	}
	return NULL;
}
