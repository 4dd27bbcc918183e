/*
 * Root becomes the user for good, and proves it.
 */
#ifndef BASE_PRIV_H
#define BASE_PRIV_H

#include <sys/types.h>

#include "base/error.h"

/* Who a job runs as. */
struct priv_user {
	uid_t uid;
	gid_t gid;
	char *name;    /* NULL where the uid has no name */
	gid_t *groups; /* supplementary, gid among them */
	int n_groups;
};

/* Looks up the groups of uid (getgrouplist; a uid unknown to NSS has only gid). Caller frees with
 * priv_user_free. A failing lookup is an error, never "no groups". */
int priv_user_get(uid_t uid, gid_t gid, struct priv_user *user, struct error *err);
void priv_user_free(struct priv_user *user);

/* Drops this process to user: supplementary groups, gid, uid (real, effective, saved), all
 * capabilities and the bounding set's use (no_new_privs), a non-dumpable process, umask 077; then
 * tries to take root back and fails if that works (a user 0 stays root). Where the process already
 * is that user and not root: only no_new_privs, umask and the proof. Before threads are started.
 * After an error the caller must _exit. */
int priv_drop(const struct priv_user *user, struct error *err);

#endif
