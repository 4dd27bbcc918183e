#include "stage/notice.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define NOTICE_SECONDS 20

struct notice {
	const char *path, *text;
};

/* Without O_NONBLOCK a FIFO in the place of the file would hold us up. */
static int notice_body(void *ctx, int fd, const atomic_bool *stop, struct error *err)
{
	const struct notice *notice = ctx;
	size_t size = strlen(notice->text);
	int file = path_open(notice->path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY, err);
	struct stat st;
	ssize_t written;
	int code = 0;

	(void)fd;
	(void)stop;
	if (file < 0)
		return file;
	if (fstat(file, &st))
		code = error_errno(err, "%s: stat", notice->path);
	else if (!S_ISREG(st.st_mode))
		code = error_set(err, -EINVAL, "%s: not a regular file", notice->path);
	if (!code) {
		/* one write, so that a line of another node does not get into it */
		do
			written = write(file, notice->text, size);
		while (written < 0 && errno == EINTR);
		if (written < 0)
			code = error_errno(err, "%s: write", notice->path);
		else if ((size_t)written < size)
			code = error_set(err, -ENOSPC, "%s: cut short", notice->path);
	}
	if (close(file) && !code)
		code = error_errno(err, "%s: close", notice->path);
	return code;
}

int notice_append(
	const struct priv_user *user, const char *path, const char *text, struct error *err)
{
	struct notice notice = { path, text };
	struct worker_options options = {
		.user = user,
		.limit = NOTICE_SECONDS,
		.ctx = &notice,
		.body = notice_body,
	};

	return worker_run(&options, err);
}
