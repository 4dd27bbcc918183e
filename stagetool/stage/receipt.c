#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "copy/engine.h"
#include "report/summary.h"
#include "stage/stage_out.h"

#define SUFFIX ".receipt.json"

static json_t *string_or_null(const char *text)
{
	return text ? summary_json_bytes(text) : json_null();
}

/* The text, ended by a newline. Caller frees; NULL on ENOMEM. */
static char *receipt_text(const struct stage_out *out)
{
	const struct transfer_context *context = out->item.transfer->context;
	const struct copy_counts *counts = &out->item.summary->counts;
	autofree char *text = NULL;
	char when[32], *whole = NULL;
	time_t now = time(NULL);
	struct tm tm;
	json_t *json;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	json = json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:s}", "from",
		summary_json_bytes(out->item.plan->local), "to",
		summary_json_bytes(out->item.plan->shared), "files",
		(json_int_t)(counts->files + counts->symlinks + counts->others), "bytes",
		(json_int_t)counts->bytes, "unchanged", (json_int_t)counts->unchanged, "removed",
		(json_int_t)out->item.summary->removed, "job", string_or_null(context->job_id),
		"node", string_or_null(context->node), "time", when);
	if (!json)
		return NULL;
	text = json_dumps(json, JSON_INDENT(1));
	json_decref(json);
	if (text && asprintf(&whole, "%s\n", text) < 0)
		return NULL;
	return whole;
}

static int write_all(int fd, const char *text, struct error *err)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t written = write(fd, text, left);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return error_errno(err, "write");
		text += written;
		left -= (size_t)written;
	}
	return fsync(fd) < 0 ? error_errno(err, "fsync") : 0;
}

static int write_temp(int dirfd, const char *temp, const char *text, struct error *err)
{
	int fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return error_errno(err, "create");
	rc = write_all(fd, text, err);
	if (close(fd) < 0 && rc == 0)
		rc = error_errno(err, "close");
	return rc;
}

static int write_receipt(int dirfd, const char *name, const char *text, struct error *err)
{
	char temp[64];
	unsigned long long number;
	int rc;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return error_errno(err, "getrandom");
	snprintf(temp, sizeof(temp), COPY_TEMP_PREFIX "receipt.%016llx", number);
	rc = write_temp(dirfd, temp, text, err);
	if (rc == 0 && renameat(dirfd, temp, dirfd, name) < 0)
		rc = error_errno(err, "rename");
	if (rc < 0)
		unlinkat(dirfd, temp, 0);
	else if (fsync(dirfd) < 0 && errno != EINVAL)
		rc = error_errno(err, "fsync of its directory");
	return rc;
}

int stage_out_receipt(const struct stage_out *out, struct error *err)
{
	autofree char *text = receipt_text(out);
	autofree char *name = NULL;
	const char *base = "";
	autoclose int dirfd = -1;
	int rc;

	if (!text)
		return error_sys(err, -ENOMEM, "receipt");
	dirfd = transfer_open_parent(out->item.plan->resolved, false, &base, err);
	if (dirfd < 0)
		return dirfd;
	name = malloc(strlen(base) + sizeof(SUFFIX));
	if (!name)
		return error_sys(err, -ENOMEM, "receipt");
	stpcpy(stpcpy(name, base), SUFFIX);
	rc = write_receipt(dirfd, name, text, err);
	return rc < 0 ? error_prefix(err, rc, "%s", name) : 0;
}
