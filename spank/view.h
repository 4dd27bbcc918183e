/*
 * at=: what was staged is also seen at another place, in a mount namespace of the task's own.
 */
#ifndef SPANK_VIEW_H
#define SPANK_VIEW_H

#include <sys/types.h>

#include "spec/conf.h"
#include "spec/handoff.h"

struct view_user {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* borrowed */
	size_t n_groups;
};

/* In a task, as root and with one thread, before the user's program: moves the process into a mount namespace of
 * its own, of which the node sees nothing and which ends with the last process in it, and shows handoff's views
 * there. Every path is opened as the user. Where the working directory is below a view it is entered anew. With
 * no views nothing is done. After an error the task must not run. */
int view_show(const struct handoff *handoff, const struct conf *conf, const struct view_user *user,
	struct error *err);

#endif
