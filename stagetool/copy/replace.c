#include "copy/publish_internal.h"

#include "base/cleanup.h"
#include "base/retry.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

/* What a device turned out to lack. */
#define LACKS_NOREPLACE 1u
#define LACKS_LINK 2u
#define LACKS_EXCHANGE 4u

/* How often a name that others change at the same time is looked at anew. */
#define RACE_TRIES 100

/* How often, 10 ms apart, a lock that somebody holds on the file to be replaced is asked for. */
#define LOOK_TRIES 3
#define LOCK_TRIES 50

static bool lack_of_call(int code)
{
	return code == EINVAL || code == ENOSYS || code == EOPNOTSUPP;
}

static unsigned lacks(const struct publishing *at)
{
	return known_flags(&at->publish->known, at->request->dev, at->request->dev);
}

static void note_lack(const struct publishing *at, unsigned flag)
{
	known_note(&at->publish->known, at->request->dev, at->request->dev, flag);
}

static int look(int dirfd, const char *name, struct stat *st)
{
	return fstatat(dirfd, name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* After a rename of ours to name that failed with code: 0 where it was done all the same, and the
 * reply to it was lost; else -code. */
static int rename_failed(const struct publishing *at, const char *name, int code)
{
	int dirfd = at->request->dirfd;
	struct stat st;

	if (at->request->ino && look(dirfd, at->from, &st) == -ENOENT &&
		look(dirfd, name, &st) == 0 && st.st_ino == at->request->ino)
		return 0;
	return -code;
}

void publishing_discard(struct publishing *at)
{
	unlinkat(at->request->dirfd, at->from, at->directory ? AT_REMOVEDIR : 0);
}

/* Ours appears under a free name by a link, where a rename that replaces nothing is not to be
 * had. */
static int take_by_link(struct publishing *at, const char *name)
{
	int dirfd = at->request->dirfd, code;
	struct stat ours, there;

	if (linkat(dirfd, at->from, dirfd, name, 0) < 0) {
		code = errno;
		/* The answer of an NFS server that was asked twice and had done it at first. */
		if (code == EEXIST && look(dirfd, at->from, &ours) == 0 &&
			look(dirfd, name, &there) == 0 && ours.st_ino == there.st_ino &&
			ours.st_dev == there.st_dev)
			code = 0;
		if (code)
			return -code;
	}
	publishing_discard(at);
	return 0;
}

/* The last resort holds the name with an empty file for a moment, so that nothing of others is
 * lost. */
static int take_by_placeholder(struct publishing *at, const char *name)
{
	int dirfd = at->request->dirfd, code;
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	if (renameat(dirfd, at->from, dirfd, name) == 0)
		return 0;
	code = rename_failed(at, name, errno);
	if (code)
		unlinkat(dirfd, name, 0);
	return code;
}

/* There are no links to a directory, but a rename replaces an empty one. */
static int take_by_mkdir(struct publishing *at, const char *name)
{
	int dirfd = at->request->dirfd;

	if (mkdirat(dirfd, name, 0700) < 0 || renameat(dirfd, at->from, dirfd, name) < 0)
		return -errno;
	return 0;
}

int publishing_take(struct publishing *at, const char *name)
{
	int dirfd = at->request->dirfd, rc;

	if (!(lacks(at) & LACKS_NOREPLACE)) {
		if (renameat2(dirfd, at->from, dirfd, name, RENAME_NOREPLACE) == 0)
			return 0;
		if (!lack_of_call(errno))
			return rename_failed(at, name, errno);
		note_lack(at, LACKS_NOREPLACE);
	}
	if (at->directory)
		return take_by_mkdir(at, name);
	if (!(lacks(at) & LACKS_LINK)) {
		rc = take_by_link(at, name);
		if (!lack_of_call(-rc) && rc != -EPERM && rc != -EMLINK)
			return rc;
		note_lack(at, LACKS_LINK);
	}
	return take_by_placeholder(at, name);
}

/* Waits a little for whoever else is replacing this file by the same rules: the lock on it makes
 * them one after the other. Others' locks are no reason to wait for ever. -1: not locked. */
static int lock_expected(const struct publishing *at, const struct stat *st)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	const char *name = at->request->name;
	int dirfd = at->request->dirfd, fd;

	if (!S_ISREG(st->st_mode) || lacks(at) & LACKS_EXCHANGE)
		return -1;
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
	if (fd < 0 && errno == EPERM)
		fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0 &&
		errno == EWOULDBLOCK; i++)
		nanosleep(&pause, NULL);
	return fd;
}

/* Something came out of an exchange that nobody expected, and its place is taken by now: it goes
 * beside it. Ours is gone. */
static int save_stranger(struct publishing *at, struct error *err)
{
	char name[NAME_MAX + 1];
	struct publishing stranger = *at;

	for (unsigned i = 1; i < RACE_TRIES; i++) {
		snprintf(name, sizeof(name), "%.200s.displaced.%u", at->request->name, i);
		if (publishing_take(&stranger, name) == 0)
			return error_set(err, -EBUSY, "others changed it at the same moment; what "
				"they had put there is now %s", name);
	}
	error_set(err, -EBUSY, "others changed it at the same moment; what they had put there is "
		"now %s", at->from);
	at->from[0] = '\0'; /* not ours to remove */
	return -EBUSY;
}

/* Undoes an exchange that brought out something else than expected. -EEXIST: as before it, a
 * conflict. */
static int exchange_back(struct publishing *at, ino_t ours, struct error *err)
{
	int dirfd = at->request->dirfd;
	struct stat st;

	if (renameat2(dirfd, at->from, dirfd, at->request->name, RENAME_EXCHANGE) < 0) {
		if (errno == ENOENT && publishing_take(at, at->request->name) == 0)
			return error_set(err, -EBUSY, "others removed it at the same moment");
		return save_stranger(at, err);
	}
	if (look(dirfd, at->from, &st) == 0 && st.st_ino == ours)
		return -EEXIST;
	return save_stranger(at, err);
}

/* Where there is no exchange, between the check and this somebody may have put something else
 * there. */
static int replace_unchecked(struct publishing *at, struct error *err)
{
	int dirfd = at->request->dirfd, rc;

	if (at->directory && unlinkat(dirfd, at->request->name, 0) < 0)
		return error_errno(err, "remove what is replaced");
	if (renameat(dirfd, at->from, dirfd, at->request->name) == 0)
		return 0;
	rc = rename_failed(at, at->request->name, errno);
	return rc < 0 ? error_sys(err, rc, "rename") : 0;
}

/* What was replaced goes. Where it can not, it is left to a later run, which knows it by its name:
 * ours is in its place, and that is what matters. */
static void remove_replaced(int dirfd, const char *marked)
{
	unsigned attempt = 0;

	while (unlinkat(dirfd, marked, 0) < 0 && retry_again(-errno, &attempt))
		continue;
}

/* Changes places of ours, now called at->from, and what has the name. -EAGAIN: nothing has it. */
static int swap(struct publishing *at, ino_t ours, struct error *err)
{
	const struct publish_request *request = at->request;
	struct stat st;
	int code, rc;

	if (renameat2(request->dirfd, at->from, request->dirfd, request->name, RENAME_EXCHANGE) ==
		0)
		return 0;
	code = errno;
	rc = look(request->dirfd, at->from, &st);
	if (rc == 0 && st.st_ino != ours)
		return 0; /* done, and the reply was lost */
	if (code == ENOENT)
		return -EAGAIN;
	if (rc < 0)
		at->from[0] = '\0'; /* which of them it is, only a later run can tell */
	return lack_of_call(code) ? -code : error_sys(err, -code, "rename (RENAME_EXCHANGE)");
}

/* Whatever the reason was: much depends on it, and it has just been there. */
static int look_again(int dirfd, const char *name, struct stat *st)
{
	int rc = look(dirfd, name, st);

	for (unsigned attempt = 0; rc < 0 && attempt < LOOK_TRIES; attempt++)
		rc = look(dirfd, name, st);
	return rc;
}

/* Ours gets a name that tells a later run what it may find under it. */
static int mark(struct publishing *at, const struct temp_exchange *marks, struct error *err)
{
	int dirfd = at->request->dirfd, code;
	char marked[PUBLISH_TEMP_SIZE];

	temp_name_exchange(at->from, marks, marked);
	if (renameat(dirfd, at->from, dirfd, marked) < 0) {
		code = errno;
		unlinkat(dirfd, marked, 0); /* it may have been done all the same */
		return error_sys(err, -code, "rename");
	}
	strcpy(at->from, marked);
	return 0;
}

/* Ours and theirs, which was seen to be expected, change places; what comes out is looked at again,
 * and goes. A rename may have changed its ctime, nothing else of it. -EEXIST: it was not expected,
 * and is back in its place; -EAGAIN: the name is free now. */
static int exchange(struct publishing *at, const struct copy_identity *expected, struct error *err)
{
	int dirfd = at->request->dirfd, rc;
	struct temp_exchange marks = { .theirs = expected->ino,
		.theirs_state = temp_state(expected->size, expected->mtime) };
	struct copy_identity after = *expected;
	struct stat st;

	if (lacks(at) & LACKS_EXCHANGE)
		return replace_unchecked(at, err);
	if (look(dirfd, at->from, &st) < 0)
		return error_errno(err, "stat of the temporary");
	marks.ours = st.st_ino;
	rc = mark(at, &marks, err);
	if (rc < 0)
		return rc;
	rc = swap(at, st.st_ino, err);
	if (lack_of_call(-rc)) {
		note_lack(at, LACKS_EXCHANGE);
		return replace_unchecked(at, err);
	}
	if (rc < 0)
		return rc;
	rc = look_again(dirfd, at->from, &st);
	if (rc < 0) {
		error_sys(err, rc, "it is there, but what it replaced is now %s", at->from);
		at->from[0] = '\0'; /* a later run sees what it is */
		return rc;
	}
	after.ctime = st.st_ctim;
	if (!S_ISDIR(st.st_mode) && publish_is_same(&st, &after)) {
		remove_replaced(dirfd, at->from);
		return 0;
	}
	return exchange_back(at, (ino_t)marks.ours, err);
}

/* A file of several names gets a new ctime when it loses one of them: from then on that does not tell
 * against the others. With the last one it goes, and its number may be another file's. */
static void note_taken(const struct publishing *at, const struct stat *st, bool taken_from)
{
	struct links *taken = at->publish->taken;
	struct links_file *file = links_lock(taken, st, 0);

	if (!file)
		return;
	file->data = taken_from ? taken : NULL;
	links_unlock(taken, file);
}

static bool was_taken(const struct publishing *at, const struct stat *st)
{
	struct links *taken = at->publish->taken;
	struct links_file *file = links_lock(taken, st, 0);
	bool answer = file && file->data;

	if (file)
		links_unlock(taken, file);
	return answer;
}

static bool is_expected(const struct publishing *at, const struct stat *st,
	const struct copy_identity *expected)
{
	struct copy_identity but_ctime = *expected;

	if (publish_is_same(st, expected))
		return true;
	but_ctime.ctime = st->st_ctim;
	return publish_is_same(st, &but_ctime) && was_taken(at, st);
}

int publishing_replace_same(struct publishing *at, const struct copy_identity *expected,
	struct error *err)
{
	const struct publish_request *request = at->request;
	struct stat st;
	int rc = -EAGAIN;

	for (int i = 0; i < RACE_TRIES && rc == -EAGAIN; i++) {
		autoclose int lock = -1;

		rc = look(request->dirfd, request->name, &st);
		if (rc == -ENOENT) {
			rc = publishing_take(at, request->name);
			if (rc == -EEXIST)
				rc = -EAGAIN;
			else if (rc < 0)
				error_sys(err, rc, "rename");
			continue;
		}
		if (rc < 0)
			return error_sys(err, rc, "stat");
		if (S_ISDIR(st.st_mode) || !is_expected(at, &st, expected))
			return -EEXIST;
		if (st.st_nlink > 1)
			note_taken(at, &st, true);
		lock = lock_expected(at, &st);
		if (lock >= 0 && (look(request->dirfd, request->name, &st) < 0 ||
			!is_expected(at, &st, expected))) {
			rc = -EAGAIN;
			continue;
		}
		rc = exchange(at, expected, err);
		if (rc == 0 && st.st_nlink == 1 && !publish_is_same(&st, expected))
			note_taken(at, &st, false);
	}
	return rc == -EAGAIN ? error_set(err, -EBUSY, "others keep changing it") : rc;
}

int publishing_replace_any(struct publishing *at, struct error *err)
{
	int dirfd = at->request->dirfd, rc;

	if (renameat(dirfd, at->from, dirfd, at->request->name) == 0)
		return 0;
	if (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST)
		return -EEXIST;
	rc = rename_failed(at, at->request->name, errno);
	return rc < 0 ? error_sys(err, rc, "rename") : 0;
}
