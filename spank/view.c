#include "spank/view.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "spec/view.h"

/* Who the process was, to be again. */
struct view_self {
	gid_t gid, *groups;
	int n_groups;
};

static int become_user(const struct view_user *user, struct view_self *self, struct error *err)
{
	self->gid = getegid();
	self->n_groups = getgroups(0, NULL);
	self->groups = calloc((size_t)(self->n_groups > 0 ? self->n_groups : 0) + 1, sizeof(gid_t));
	if (self->n_groups < 0 || !self->groups ||
		(self->n_groups && getgroups(self->n_groups, self->groups) < 0))
		return error_errno(err, "groups");
	if (setgroups(user->n_groups, user->groups) < 0 || setegid(user->gid) < 0 ||
		seteuid(user->uid) < 0)
		return error_errno(err, "becoming uid %u", (unsigned)user->uid);
	return 0;
}

static int become_root(const struct view_self *self, struct error *err)
{
	if (seteuid(0) < 0 || setegid(self->gid) < 0 ||
		setgroups((size_t)(self->n_groups > 0 ? self->n_groups : 0), self->groups) < 0)
		return error_errno(err, "becoming root again");
	return 0;
}

/* The two ends of a view, opened as the user; fds[0] is -1 where there is nothing to see. */
static int view_open_both(const struct handoff *handoff, const struct handoff_view *view,
	const struct conf *conf, int fds[2], struct error *err)
{
	autoclose int stage = path_open(handoff->dir, O_PATH | O_DIRECTORY | O_CLOEXEC, err);
	struct error why = ERROR_INIT;
	struct stat source, place;

	if (stage < 0)
		return stage;
	fds[0] = path_open_beneath(
		stage, view->local, O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS, &why);
	if (fds[0] == -ENOENT && view->optional)
		return 0;
	if (fds[0] < 0)
		return error_set(err, fds[0], "%s", why.text);
	if (fstat(fds[0], &source) < 0)
		return error_errno(err, "%s", view->local);
	fds[1] = view_open(view->place, conf, &place, err);
	if (fds[1] < 0)
		return fds[1];
	if (S_ISDIR(source.st_mode) != S_ISDIR(place.st_mode) || S_ISLNK(source.st_mode))
		return error_set(err, -EINVAL, "%s and %s are not of the same kind", view->local,
			view->place);
	return 0;
}

/* By descriptor on both sides: nobody can put another thing in the way. */
static int view_bind(const int fds[2], struct error *err)
{
	char source[40], place[40];

	snprintf(source, sizeof(source), "/proc/self/fd/%d", fds[0]);
	snprintf(place, sizeof(place), "/proc/self/fd/%d", fds[1]);
	return mount(source, place, NULL, MS_BIND, NULL) < 0 ? error_errno(err, "mount") : 0;
}

static int view_show_one(const struct handoff *handoff, const struct handoff_view *view,
	const struct conf *conf, const struct view_user *user, struct error *err)
{
	struct view_self self = { .groups = NULL };
	struct error back = ERROR_INIT;
	int fds[2] = { -1, -1 };
	int rc = become_user(user, &self, err);

	if (!rc)
		rc = view_open_both(handoff, view, conf, fds, err);
	if (become_root(&self, &back))
		rc = error_set(err, back.code, "%s", back.text);
	if (!rc && fds[0] >= 0)
		rc = view_bind(fds, err);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(self.groups);
	return rc ? error_prefix(err, rc, "at=%s", view->place) : 0;
}

static bool is_in(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	return !strncmp(path, dir, length) && (!path[length] || path[length] == '/');
}

/* The real path of a view's place, which is a mount now: NULL where it can not be had. */
static char *place_of(const struct handoff_view *view)
{
	autoclose int fd = path_open(view->place, O_PATH | O_CLOEXEC, NULL);

	return fd < 0 ? NULL : view_real_path(fd, NULL);
}

/* The working directory was opened before, below what is covered now. */
static int enter_again(const struct handoff *handoff, const char *cwd, struct error *err)
{
	for (size_t i = 0; i < handoff->n_views; i++) {
		autofree char *place = place_of(&handoff->views[i]);

		if (place && is_in(cwd, place))
			return chdir(cwd) < 0 ? error_errno(err,
							"the working directory %s is not part of what is "
							"to be seen at %s",
							cwd, handoff->views[i].place)
					      : 0;
	}
	return 0;
}

/* Both as the user: root may not be let in. */
static int view_enter(const struct handoff *handoff, const struct view_user *user, const char *cwd,
	struct error *err)
{
	struct view_self self = { .groups = NULL };
	struct error back = ERROR_INIT;
	int rc = become_user(user, &self, err);

	if (!rc)
		rc = enter_again(handoff, cwd, err);
	if (become_root(&self, &back))
		rc = error_set(err, back.code, "%s", back.text);
	free(self.groups);
	return rc;
}

int view_show(const struct handoff *handoff, const struct conf *conf, const struct view_user *user,
	struct error *err)
{
	autofree char *cwd = NULL;
	int rc = 0;

	if (!handoff->n_views)
		return 0;
	cwd = getcwd(NULL, 0);
	if (unshare(CLONE_NEWNS) < 0)
		return error_errno(err, "at: a mount namespace can not be had");
	/* Nothing of it is to reach the node, whose / may be shared; what the node mounts still
	 * comes. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return error_errno(err, "at: the mount namespace can not be made private");
	for (size_t i = 0; i < handoff->n_views && !rc; i++)
		rc = view_show_one(handoff, &handoff->views[i], conf, user, err);
	return rc || !cwd ? rc : view_enter(handoff, user, cwd, err);
}
