#include "stage/node_resume.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/node_return.h"
#include "stage/stage.h"
#include "stage/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

static int resume_read(const json_t *status, struct record **record, struct error *err)
{
	const json_t *object = json_object_get(status, STATUS_RECORD);
	const char *job = json_string_value(json_object_get(status, "job"));
	const char *state = json_string_value(json_object_get(status, "state"));

	if (!object)
		return error_set(err, -EBUSY, "job %s: %s: nothing of it is kept to be sent",
			job ? job : "?", state ? state : "its state is not known");
	return record_from_json(object, record, err);
}

static int resume_open(const struct record *record, struct error *err)
{
	autofree char *dir = stage_path(record);
	autoclose int fd = -1;
	struct stat st;

	if (!dir)
		return error_sys(err, -ENOMEM, "job %s", record->job_id);
	fd = path_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return error_errno(err, "%s: stat", dir);
	if (st.st_uid != geteuid() || st.st_ino != record->stage_ino)
		return error_set(err, -ENOENT, "%s: it is not a stage of yours", dir);
	return take_fd(fd);
}

static int resume_check(const struct record *record, struct error *err)
{
	if (record->uid != geteuid())
		return error_set(err, -ENOENT, "no job %s of yours on this node", record->job_id);
	if (record->superseded)
		return error_set(err, -ESTALE,
			"job %s: restart %" PRIu64 " came after restart %" PRIu64
			", whose results are not sent over it; stagetool out --dir=%s/%s.%" PRIu64
			" sends them elsewhere",
			record->job_id, record->superseded, record->restart, record->tier_path,
			record->job_id, record->restart);
	return 0;
}

int node_resume(const struct node *node, const json_t *status, struct record **record,
	struct error *err)
{
	struct error failed = ERROR_INIT;
	autoclose int stagefd = -1;
	int code;

	*record = NULL;
	code = resume_read(status, record, err);
	if (!code)
		code = resume_check(*record, err);
	if (code)
		return code;
	stagefd = resume_open(*record, err);
	if (stagefd < 0)
		return stagefd;
	(*record)->gid = getegid();
	code = node_send(node, *record, stagefd, &failed);
	(*record)->state = code ? RECORD_KEPT : RECORD_DONE;
	if (code) {
		record_set(&(*record)->reason, failed.text, NULL);
		return error_set(err, code, "%s", failed.text);
	}
	return 0;
}
