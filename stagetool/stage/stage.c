#include "stage/stage.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/project.h"
#include "tree/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

char *stage_path(const struct record *record)
{
	autofree char *name = record_name(record, "");

	return name ? path_join(record->tier_path, name) : NULL;
}

int stage_set_aside(int tierfd, const struct record *record, char **moved, struct error *err)
{
	autofree char *name = record_name(record, ""), *aside = NULL;
	struct stat st;

	*moved = NULL;
	if (!name || asprintf(&aside, "lost.%s.%jd", name, (intmax_t)time(NULL)) < 0)
		return error_sys(err, -ENOMEM, "stage of job %s", record->job_id);
	if (fstatat(tierfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : error_errno(err, "%s/%s", record->tier_path, name);
	if (syscall(SYS_renameat2, tierfd, name, tierfd, aside, 1 /* RENAME_NOREPLACE */))
		return error_errno(err, "%s/%s: rename to %s", record->tier_path, name, aside);
	*moved = take_ptr(aside);
	return 0;
}

static int stage_open_name(int tierfd, const char *name, struct error *err)
{
	return path_open_beneath(
		tierfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS, err);
}

static int stage_give(int fd, struct record *record, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, "stat");
	record->stage_dev = st.st_dev;
	record->stage_ino = st.st_ino;
	/* in this order: fchown clears bits, and a default ACL of the parent does not count any
	 * more */
	if (fchown(fd, (uid_t)record->uid, (gid_t)record->gid))
		return error_errno(err, "chown to user %ju", (uintmax_t)record->uid);
	if (fchmod(fd, 0700))
		return error_errno(err, "chmod 0700");
	return 0;
}

int stage_create(int tierfd, struct record *record, struct error *err)
{
	autofree char *name = record_name(record, "");
	autoclose int fd = -1;
	struct stat st;
	int code;

	if (!name)
		return error_sys(err, -ENOMEM, "stage of job %s", record->job_id);
	if (fstat(tierfd, &st))
		return error_errno(err, "%s: stat", record->tier_path);
	record->tier_ino = st.st_ino;
	if (mkdirat(tierfd, name, 0700))
		return error_errno(err, "%s/%s: mkdir", record->tier_path, name);
	fd = stage_open_name(tierfd, name, err);
	if (fd < 0)
		return error_prefix(err, fd, "%s", record->tier_path);
	code = stage_give(fd, record, err);
	if (!code && fsync(tierfd))
		code = error_errno(err, "fsync of its directory");
	return code ? error_prefix(err, code, "%s/%s", record->tier_path, name) : take_fd(fd);
}

int stage_open(int tierfd, const struct record *record, struct error *err)
{
	autofree char *name = record_name(record, "");
	autoclose int fd = -1;
	struct stat st;

	if (!name)
		return error_sys(err, -ENOMEM, "stage of job %s", record->job_id);
	fd = stage_open_name(tierfd, name, err);
	/* that it is gone, and what was in it lost, is not said after one look */
	if (fd == -ENOENT && fstatat(tierfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return error_set(err, -EIO, "%s/%s: it is there, and can not be opened",
			record->tier_path, name);
	if (fd < 0)
		return error_prefix(err, fd, "%s", record->tier_path);
	if (fstat(fd, &st))
		return error_errno(err, "%s/%s: stat", record->tier_path, name);
	/* the number of a device may be another one after a reboot */
	if (record->stage_ino && st.st_ino != record->stage_ino)
		return error_set(err, -ESTALE,
			"%s/%s: it is not the directory that was made for job %s",
			record->tier_path, name, record->job_id);
	return take_fd(fd);
}

static int stage_gone(int tierfd, struct record *record, struct error *err)
{
	int code = project_release(tierfd, record, err);

	if (code)
		return error_prefix(err, code, "%s", record->tier_path);
	record->present = false;
	return 0;
}

int stage_remove(int tierfd, struct record *record, struct error *err)
{
	autofree char *name = record_name(record, "");
	struct error opening = ERROR_INIT;
	autoclose int fd = -1;
	int code;

	if (!name)
		return error_sys(err, -ENOMEM, "stage of job %s", record->job_id);
	fd = stage_open(tierfd, record, &opening);
	if (fd == -ENOENT)
		return stage_gone(tierfd, record, err);
	if (fd < 0)
		return error_set(err, fd, "%s", opening.text);
	/* a process of the user's that is still about can open nothing in it from now on */
	if (fchown(fd, geteuid(), (gid_t)-1) || fchmod(fd, 0700))
		return error_errno(err, "%s/%s: take it back", record->tier_path, name);
	code = remove_tree(tierfd, name, err);
	if (!code && fsync(tierfd))
		code = error_errno(err, "%s: fsync", record->tier_path);
	if (code)
		return error_prefix(err, code, "%s", record->tier_path);
	return stage_gone(tierfd, record, err);
}
