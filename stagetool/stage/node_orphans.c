#include "stage/node_reap.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/tier.h"
#include "tree/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* stage_set_aside() names them so. */
#define ASIDE "lost."

struct orphans {
	const struct node *node;
	const struct conf_tier *tier;
	int tierfd;
	bool remove;
	void (*told)(void *ctx, const struct reap_orphan *orphan);
	void *ctx;
};

/* "123.0" at the beginning of text: its length, else 0. */
static size_t orphan_attempt(const char *text)
{
	size_t id = strspn(text, "0123456789"), restart;

	if (!id || text[id] != '.')
		return 0;
	restart = strspn(text + id + 1, "0123456789");
	return restart ? id + 1 + restart : 0;
}

static bool orphan_is_name(const char *name, bool *aside)
{
	size_t length;

	*aside = !strncmp(name, ASIDE, strlen(ASIDE));
	if (*aside)
		name += strlen(ASIDE);
	length = orphan_attempt(name);
	if (!length)
		return false;
	return *aside ? name[length] == '.' : !name[length];
}

/* As root's, so that no process of its user's gets in the way. */
static int orphan_take(const struct orphans *orphans, const char *name, struct error *err)
{
	autoclose int fd = openat(orphans->tierfd, name,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, "%s/%s", orphans->tier->path, name);
	if (fchown(fd, geteuid(), (gid_t)-1) || fchmod(fd, 0700))
		return error_errno(err, "%s/%s: take it back", orphans->tier->path, name);
	return error_prefix(
		err, remove_tree(orphans->tierfd, name, err), "%s", orphans->tier->path);
}

static bool orphan_has_record(const struct orphans *orphans, const char *name)
{
	autofree char *file = NULL;
	struct stat st;

	if (asprintf(&file, "%s.json", name) < 0)
		return true;
	return fstatat(orphans->node->state->jobs, file, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

/* Under the lock of the attempt, whose prolog may have come meanwhile. */
static int orphan_remove(
	const struct orphans *orphans, const char *name, bool aside, struct error *err)
{
	const struct state *state = orphans->node->state;
	autofree char *file = NULL;
	int lock, code;

	if (aside)
		return orphan_take(orphans, name, err);
	if (asprintf(&file, "%s.lock", name) < 0)
		return error_sys(err, -ENOMEM, "%s", name);
	lock = state_lock(state->jobs, file, 0, err);
	if (lock < 0)
		return lock;
	if (orphan_has_record(orphans, name)) {
		close(lock);
		return error_set(err, -EBUSY, "%s: a job began to use it", name);
	}
	code = orphan_take(orphans, name, err);
	state_unlock_remove(state->jobs, file, lock);
	return code;
}

/* The change time is the one that a user can not set. */
static int orphan_found(
	struct orphans *orphans, const char *name, bool aside, const struct stat *st)
{
	autofree char *path = path_join(orphans->tier->path, name);
	struct reap_orphan orphan = { .tier = orphans->tier->name, .path = path };
	struct error err = ERROR_INIT;
	time_t now = time(NULL);

	if (!path)
		return -ENOMEM;
	orphan.seconds = now > st->st_ctime ? (uint64_t)(now - st->st_ctime) : 0;
	if (orphans->remove && orphan.seconds > orphans->node->conf->keep_failed) {
		orphan.removed = orphan_remove(orphans, name, aside, &err) == 0;
		orphan.problem = orphan.removed ? NULL : err.text;
	}
	orphans->told(orphans->ctx, &orphan);
	return 0;
}

static int orphans_walk(struct orphans *orphans, struct error *err)
{
	const char *path = orphans->tier->path;
	int fd = openat(orphans->tierfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		int code = error_errno(err, "%s: read directory", path);

		if (fd >= 0)
			close(fd);
		return code;
	}
	while ((errno = 0, entry = readdir(dir))) {
		struct stat st;
		bool aside;

		if (!orphan_is_name(entry->d_name, &aside) ||
			fstatat(orphans->tierfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISDIR(st.st_mode) || (!aside && orphan_has_record(orphans, entry->d_name)))
			continue;
		if (orphan_found(orphans, entry->d_name, aside, &st))
			return error_sys(err, -ENOMEM, "%s", path);
	}
	return errno ? error_errno(err, "%s: read directory", path) : 0;
}

int node_orphans(const struct node *node, bool remove,
	void (*told)(void *ctx, const struct reap_orphan *orphan), void *ctx, struct error *err)
{
	int code = 0;

	for (size_t i = 0; i < node->conf->n_tiers && !code; i++) {
		struct orphans orphans = { node, &node->conf->tiers[i], -1, remove, told, ctx };

		orphans.tierfd = tier_open(orphans.tier, err);
		if (orphans.tierfd < 0)
			return orphans.tierfd;
		code = orphans_walk(&orphans, err);
		close(orphans.tierfd);
	}
	return code;
}
