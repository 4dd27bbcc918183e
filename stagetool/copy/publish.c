#include "copy/publish_internal.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <string.h>

/* How many names beside a taken one are tried. */
#define BESIDE_TRIES 10000

/* How often a name that others change at the same time is looked at anew. */
#define DIRECTORY_TRIES 100

bool publish_is_same(const struct stat *st, const struct copy_identity *identity)
{
	return (uint64_t)st->st_size == identity->size && st->st_ino == identity->ino &&
		st->st_mtim.tv_sec == identity->mtime.tv_sec &&
		st->st_mtim.tv_nsec == identity->mtime.tv_nsec &&
		st->st_ctim.tv_sec == identity->ctime.tv_sec &&
		st->st_ctim.tv_nsec == identity->ctime.tv_nsec;
}

void publish_identity(const struct stat *st, struct copy_identity *identity)
{
	*identity = (struct copy_identity){ .size = (uint64_t)st->st_size, .ino = st->st_ino,
		.mtime = st->st_mtim, .ctime = st->st_ctim };
}

/* NAME.<suffix>, NAME.<suffix>.2 ...: NAME loses its end where the whole would be too long a
 * name. */
static int beside_name(const struct publish_request *request, unsigned number,
	char name[NAME_MAX + 1], struct error *err)
{
	char tail[NAME_MAX + 1];
	int length = number == 1 ? snprintf(tail, sizeof(tail), ".%s", request->suffix) :
		snprintf(tail, sizeof(tail), ".%s.%u", request->suffix, number);
	size_t room = NAME_MAX, keep = strlen(request->name);

	if (length < 0 || (size_t)length >= room)
		return error_set(err, -ENAMETOOLONG, "the suffix %s is too long", request->suffix);
	room -= (size_t)length;
	if (keep > room)
		keep = room;
	memcpy(name, request->name, keep);
	memcpy(name + keep, tail, (size_t)length + 1);
	return 0;
}

static const char *kind_of(const struct publish_request *request)
{
	struct stat st;

	if (fstatat(request->dirfd, request->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return "something";
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return "another file";
	case S_IFDIR:
		return "a directory";
	case S_IFLNK:
		return "a symlink";
	default:
		return "a special file";
	}
}

static int told_conflict(const struct publish_request *request, struct publish_result *result,
	enum publish_fate fate, struct error *err)
{
	const char *kind = kind_of(request);

	result->fate = fate;
	result->same = false;
	if (fate == PUBLISH_BESIDE)
		error_set(err, -EEXIST, "%s has its name; ours is %s beside it", kind,
			result->name);
	else
		error_set(err, -EEXIST, "%s has its name; ours was not put there", kind);
	return 0;
}

static bool keeps(const struct publish_request *request)
{
	return request->conflict == COPY_CONFLICT_KEEP && request->suffix;
}

static int done(const struct publish_request *request, struct publish_result *result,
	enum publish_fate fate)
{
	result->fate = fate;
	result->same = false;
	memcpy(result->name, request->name, strnlen(request->name, NAME_MAX) + 1);
	result->name[NAME_MAX] = '\0';
	return 0;
}

static int done_before(const struct publish_request *request, struct publish_result *result)
{
	done(request, result, PUBLISH_DONE);
	result->same = true;
	return 0;
}

/* The name holds something that is not to be replaced. */
static int settle_conflict(struct publishing *at, struct publish_result *result, struct error *err)
{
	const struct publish_request *request = at->request;
	const struct same_entry ours = { request->dirfd, at->from };
	const struct same_entry theirs = { request->dirfd, request->name };
	int rc = -EEXIST;

	if (same_entries(&ours, &theirs)) {
		publishing_discard(at);
		return done_before(request, result);
	}

	if (!keeps(request)) {
		publishing_discard(at);
		return told_conflict(request, result, PUBLISH_REFUSED, err);
	}
	for (unsigned i = 1; i <= BESIDE_TRIES && rc == -EEXIST; i++) {
		rc = beside_name(request, i, result->name, err);
		if (rc < 0)
			return rc;
		rc = publishing_take(at, result->name);
	}
	return rc < 0 ? error_sys(err, rc, "rename to %s", result->name) :
		told_conflict(request, result, PUBLISH_BESIDE, err);
}

/* Ours, complete under at->from, appears as the request says. */
static int appear(struct publishing *at, struct publish_result *result, struct error *err)
{
	const struct publish_request *request = at->request;
	int rc;

	if (request->conflict == COPY_CONFLICT_OVERWRITE ||
		request->expect->kind == COPY_EXPECT_ANY) {
		rc = publishing_replace_any(at, err);
	} else if (request->expect->kind == COPY_EXPECT_SAME) {
		rc = publishing_replace_same(at, &request->expect->identity, err);
	} else {
		rc = publishing_take(at, request->name);
		if (rc < 0 && rc != -EEXIST)
			error_sys(err, rc, "rename");
	}
	if (rc == 0)
		return done(request, result, PUBLISH_DONE);
	if (rc == -EEXIST)
		rc = settle_conflict(at, result, err);
	if (rc < 0)
		publishing_discard(at);
	return rc;
}

int publish_entry(struct publish *publish, const struct publish_request *request,
	struct publish_result *result, struct error *err)
{
	struct publishing at = { .publish = publish, .request = request };

	snprintf(at.from, sizeof(at.from), "%s", request->temp);
	return appear(&at, result, err);
}

/* Another link beside the taken name. */
static int link_beside(int olddir, const char *oldname, const struct publish_request *request,
	struct publish_result *result, struct error *err)
{
	const struct same_entry ours = { olddir, oldname };
	const struct same_entry theirs = { request->dirfd, request->name };
	int rc = -EEXIST;

	if (same_entries(&ours, &theirs))
		return done_before(request, result);
	if (!keeps(request))
		return told_conflict(request, result, PUBLISH_REFUSED, err);
	for (unsigned i = 1; i <= BESIDE_TRIES && rc == -EEXIST; i++) {
		rc = beside_name(request, i, result->name, err);
		if (rc < 0)
			return rc;
		if (linkat(olddir, oldname, request->dirfd, result->name, 0) < 0)
			rc = -errno;
	}
	return rc < 0 ? error_sys(err, rc, "link to %s", result->name) :
		told_conflict(request, result, PUBLISH_BESIDE, err);
}

static bool is_link_already(int olddir, const char *oldname, int dirfd, const char *name)
{
	struct stat ours, there;

	return fstatat(olddir, oldname, &ours, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstatat(dirfd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/* A temporary that is another link. A server that says no may have made it all the same. */
static int link_temp(int olddir, const char *oldname, struct publishing *at, struct error *err)
{
	int dirfd = at->request->dirfd, code;

	publish_temp_name(at->publish, at->from);
	if (linkat(olddir, oldname, dirfd, at->from, 0) == 0)
		return 0;
	code = errno;
	if (is_link_already(olddir, oldname, dirfd, at->from)) {
		if (code == EEXIST)
			return 0;
		unlinkat(dirfd, at->from, 0);
	}
	return error_sys(err, -code, "link");
}

int publish_link(struct publish *publish, int olddir, const char *oldname,
	const struct publish_request *request, struct publish_result *result, struct error *err)
{
	struct publishing at = { .publish = publish, .request = request };
	int rc;

	if (linkat(olddir, oldname, request->dirfd, request->name, 0) == 0)
		return done(request, result, PUBLISH_DONE);
	if (errno != EEXIST)
		return error_errno(err, "link");
	if (is_link_already(olddir, oldname, request->dirfd, request->name))
		return done(request, result, PUBLISH_DONE);
	if (request->conflict != COPY_CONFLICT_OVERWRITE &&
		request->expect->kind == COPY_EXPECT_NOTHING)
		return link_beside(olddir, oldname, request, result, err);
	rc = link_temp(olddir, oldname, &at, err);
	if (rc < 0)
		return rc;
	rc = appear(&at, result, err);
	/* A rename over another link of the same file does nothing, and says that it did. */
	if (rc == 0)
		publishing_discard(&at);
	return rc;
}

/* A directory beside the taken name: a new one, or that of an earlier try. */
static int directory_beside(const struct publish_request *request, mode_t mode,
	struct publish_result *result, struct error *err)
{
	struct stat st;
	int rc = -EEXIST;

	if (!keeps(request))
		return told_conflict(request, result, PUBLISH_REFUSED, err);
	for (unsigned i = 1; i <= BESIDE_TRIES && rc == -EEXIST; i++) {
		rc = beside_name(request, i, result->name, err);
		if (rc < 0)
			return rc;
		if (mkdirat(request->dirfd, result->name, mode) == 0)
			break;
		rc = -errno;
		if (rc == -EEXIST && fstatat(request->dirfd, result->name, &st,
			AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
			rc = 0;
	}
	return rc < 0 ? error_sys(err, rc, "mkdir %s", result->name) :
		told_conflict(request, result, PUBLISH_BESIDE, err);
}

/* A directory takes the place of something that is none, which was looked at as st. */
static int directory_replaces(struct publishing *at, const struct stat *st, mode_t mode,
	struct error *err)
{
	const struct publish_request *request = at->request;
	struct copy_identity identity = request->expect->identity;
	int rc;

	if (request->conflict == COPY_CONFLICT_OVERWRITE)
		publish_identity(st, &identity);
	else if (request->expect->kind != COPY_EXPECT_SAME || !publish_is_same(st, &identity))
		return -EEXIST;
	publish_temp_name(at->publish, at->from);
	if (mkdirat(request->dirfd, at->from, mode) < 0)
		return error_errno(err, "mkdir");
	rc = publishing_replace_same(at, &identity, err);
	if (rc < 0)
		publishing_discard(at);
	return rc;
}

/* Whether an mkdir that failed was done all the same: one of ours, with its mode, in which nothing was
 * ever put. */
static bool is_fresh_directory(const struct publish_request *request, mode_t mode)
{
	struct stat st;

	return fstatat(request->dirfd, request->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISDIR(st.st_mode) && (st.st_mode & 0777 & ~mode) == 0 && st.st_uid == geteuid() &&
		st.st_nlink <= 2 && st.st_mtim.tv_sec == st.st_ctim.tv_sec &&
		st.st_mtim.tv_nsec == st.st_ctim.tv_nsec;
}

int publish_directory(struct publish *publish, const struct publish_request *request, mode_t mode,
	struct publish_result *result, struct error *err)
{
	struct publishing at = { .publish = publish, .request = request, .directory = true };
	struct stat st;
	int rc, code;

	for (unsigned i = 0; i < DIRECTORY_TRIES; i++) {
		if (mkdirat(request->dirfd, request->name, mode) == 0)
			return done(request, result, PUBLISH_DONE);
		code = errno;
		if (code != EEXIST && is_fresh_directory(request, mode))
			return done(request, result, PUBLISH_DONE);
		if (code != EEXIST)
			return error_sys(err, -code, "mkdir");
		if (fstatat(request->dirfd, request->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT)
				return error_errno(err, "stat");
			continue;
		}
		if (S_ISDIR(st.st_mode))
			return done(request, result, PUBLISH_EXISTED);
		rc = directory_replaces(&at, &st, mode, err);
		if (rc == 0)
			return done(request, result, PUBLISH_DONE);
		if (rc != -EEXIST)
			return rc;
		if (request->conflict != COPY_CONFLICT_OVERWRITE)
			return directory_beside(request, mode, result, err);
	}
	return error_set(err, -EBUSY, "others keep changing it");
}
