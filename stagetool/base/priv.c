#include "base/priv.h"

#include "base/cleanup.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NSS_BUFFER_MAX (16 << 20)
#define GROUPS_MAX 65536

/* The name of uid into *name, NULL where NSS knows none. */
static int priv_user_name(uid_t uid, char **name, struct error *err)
{
	size_t size = 4096;

	for (;;) {
		autofree char *buffer = malloc(size);
		struct passwd entry, *found;
		int code;

		if (!buffer)
			return error_sys(err, -ENOMEM, "user %u", uid);
		code = getpwuid_r(uid, &entry, buffer, size, &found);
		if (code == EINTR)
			continue;
		if (code == ERANGE && size < NSS_BUFFER_MAX) {
			size *= 4;
			continue;
		}
		if (code && code != ENOENT && code != ESRCH)
			return error_sys(err, -code, "look up user %u", uid);
		*name = code || !found ? NULL : strdup(found->pw_name);
		if (!code && found && !*name)
			return error_sys(err, -ENOMEM, "user %u", uid);
		return 0;
	}
}

int priv_user_get(uid_t uid, gid_t gid, struct priv_user *user, struct error *err)
{
	autofree char *name = NULL;
	int size = 32, code = priv_user_name(uid, &name, err);

	if (code)
		return code;
	for (;;) {
		autofree gid_t *groups = calloc((size_t)size, sizeof(*groups));
		int count = size;

		if (!groups)
			return error_sys(err, -ENOMEM, "groups of user %u", uid);
		if (!name) {
			groups[0] = gid;
			count = 1;
		} else if (getgrouplist(name, gid, groups, &count) < 0) {
			if (size >= GROUPS_MAX)
				return error_set(
					err, -E2BIG, "groups of user %s: more than %d", name, size);
			size = count > size && count < GROUPS_MAX ? count : size * 2;
			continue;
		}
		*user = (struct priv_user){ uid, gid, take_ptr(name), take_ptr(groups), count };
		return 0;
	}
}

void priv_user_free(struct priv_user *user)
{
	free(user->name);
	free(user->groups);
	*user = (struct priv_user){ 0 };
}

/* setuid() to a user keeps capabilities under some securebits, and never empties the inheritable
 * set. */
static int priv_drop_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return error_errno(err, "clear ambient capabilities");
	if (syscall(SYS_capset, &header, sets))
		return error_errno(err, "drop capabilities");
	return 0;
}

static bool priv_has_groups(const struct priv_user *user)
{
	int count = getgroups(0, NULL);
	autofree gid_t *groups = calloc((size_t)(count > 0 ? count : 1), sizeof(*groups));

	if (count < 0 || !groups || getgroups(count, groups) != count)
		return false;
	for (int i = 0; i < count; i++) {
		bool wanted = false;

		for (int j = 0; j < user->n_groups && !wanted; j++)
			wanted = groups[i] == user->groups[j];
		if (!wanted)
			return false;
	}
	return true;
}

static bool priv_has_capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { 0 };

	if (syscall(SYS_capget, &header, sets))
		return true;
	for (int i = 0; i < 2; i++)
		if (sets[i].effective || sets[i].permitted || sets[i].inheritable)
			return true;
	return false;
}

static int priv_prove_user(const struct priv_user *user, struct error *err)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	if (getresuid(&ruid, &euid, &suid) || getresgid(&rgid, &egid, &sgid))
		return error_errno(err, "read back user and group");
	if (ruid != user->uid || euid != user->uid || suid != user->uid || rgid != user->gid ||
		egid != user->gid || sgid != user->gid || !priv_has_groups(user))
		return error_set(
			err, -EPERM, "user %u: not all of root's identity was dropped", user->uid);
	return 0;
}

/* Tries to be root again, in every way there is. */
static int priv_prove_root(const struct priv_user *user, struct error *err)
{
	if (user->uid == 0)
		return 0;
	if (priv_has_capabilities() || setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || setuid(0) == 0 ||
		setresuid(0, 0, 0) == 0 || setgroups(0, NULL) == 0 ||
		(user->gid != 0 && setresgid(0, 0, 0) == 0))
		return error_set(err, -EPERM, "user %u: root could be taken back", user->uid);
	return 0;
}

static int priv_become(const struct priv_user *user, struct error *err)
{
	if (geteuid() != 0)
		return error_set(err, -EPERM, "only root can become user %u", user->uid);
	if (setgroups((size_t)user->n_groups, user->groups))
		return error_errno(err, "user %u: set %d groups", user->uid, user->n_groups);
	if (setresgid(user->gid, user->gid, user->gid))
		return error_errno(err, "user %u: set group %u", user->uid, user->gid);
	if (setresuid(user->uid, user->uid, user->uid))
		return error_errno(err, "set user %u", user->uid);
	return user->uid == 0 ? 0 : priv_drop_capabilities(err);
}

int priv_drop(const struct priv_user *user, struct error *err)
{
	bool already = user->uid != 0 && geteuid() == user->uid;
	int code = already ? 0 : priv_become(user, err);

	if (code)
		return code;
	umask(077);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return error_errno(err, "set no_new_privs");
	if (already)
		return priv_prove_root(user, err);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return error_errno(err, "make the process non-dumpable");
	code = priv_prove_user(user, err);
	return code ? code : priv_prove_root(user, err);
}
