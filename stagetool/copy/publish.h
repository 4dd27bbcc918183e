/*
 * Making a result visible under its name: whole or not at all, and never over something else than
 * expected.
 *
 *   fd = publish_create(publish, dirfd, mode, temp, err);
 *   ... bytes, attributes ...; publish_sync(fd) where durable; close(fd)
 *   publish_entry(publish, &request, &result, err);
 *   ... once for a directory: publish_sync(dirfd)
 *
 * All names are single components in a directory fd; nothing is followed.
 */
#ifndef COPY_PUBLISH_H
#define COPY_PUBLISH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "copy/engine.h"

/* A run's identity (host, boot, process), its counter of names, and what filesystems turned out not
 * to support. One for a copy, for all threads; made in the process that uses it (after fork). */
struct publish;
int publish_new(struct publish **publish, struct error *err);
void publish_free(struct publish *publish);

/* A temporary name: COPY_TEMP_PREFIX and who made it, so that a later run knows a dead one's. Never
 * the same twice. */
#define PUBLISH_TEMP_SIZE 192
void publish_temp_name(struct publish *publish, char temp[PUBLISH_TEMP_SIZE]);

/* Makes a new temporary and fills in its name: a regular file (returns an fd, O_RDWR), a symlink, a
 * FIFO (return 0). mode is subject to the umask. Negative errno on failure. */
int publish_create(struct publish *publish, int dirfd, mode_t mode, char temp[PUBLISH_TEMP_SIZE],
	struct error *err);
int publish_create_symlink(struct publish *publish, int dirfd, const char *target,
	char temp[PUBLISH_TEMP_SIZE], struct error *err);
int publish_create_fifo(struct publish *publish, int dirfd, mode_t mode,
	char temp[PUBLISH_TEMP_SIZE], struct error *err);

/* Where an entry is to appear, and what may be there. All borrowed. */
struct publish_request {
	int dirfd;
	dev_t dev; /* st_dev of dirfd */
	const char *temp; /* publish_entry: what is to appear */
	const char *name;
	const struct copy_expect *expect;
	enum copy_conflict conflict;
	const char *suffix; /* for COPY_CONFLICT_KEEP; NULL: ours is not kept, as with
			     * COPY_CONFLICT_FAIL */
	ino_t ino; /* st_ino of temp, to know it again where a reply was lost; 0: not known */
};

enum publish_fate {
	PUBLISH_DONE, /* it is under its name */
	PUBLISH_EXISTED, /* publish_directory: there was a directory, it is used as it is */
	PUBLISH_BESIDE, /* a conflict: it is under result.name */
	PUBLISH_REFUSED, /* a conflict: ours is gone, theirs is as it was */
};

struct publish_result {
	enum publish_fate fate;
	char name[NAME_MAX + 1]; /* where it is now (DONE, EXISTED, BESIDE) */
	bool same; /* DONE, by what was there already and is the same: ours is gone */
};

/* Renames temp (not a directory) to its name. Expectations: ANY replaces all but a directory;
 * NOTHING takes only a free name; SAME a free name, or the entry of that identity. What is not as
 * expected is a conflict: KEEP names ours NAME.<suffix>, NAME.<suffix>.2 ... (NAME cut where it
 * would be too long), FAIL removes ours, OVERWRITE replaces all but a directory (that one:
 * REFUSED). What could be taken for ours (one mode, mtime and content) is no conflict: it stays, and
 * is ours (result.same): an earlier run that died put it there. 0 with result filled (a conflict
 * too, err then says what was there); else a negative errno. No temporary is left behind, but what
 * was replaced where it can not be removed: a later run does that. Atomic wherever the filesystem has
 * RENAME_NOREPLACE or hard links (NOTHING), RENAME_EXCHANGE (SAME). NFS has no exchange: there a
 * file that is changed between the check and the rename, microseconds, is lost. */
int publish_entry(struct publish *publish, const struct publish_request *request,
	struct publish_result *result, struct error *err);

/* Makes another link of oldname in olddir appear under request->name (request->temp is not used);
 * else as publish_entry. -EMLINK: no more links to that file. */
int publish_link(struct publish *publish, int olddir, const char *oldname,
	const struct publish_request *request, struct publish_result *result, struct error *err);

/* Makes a directory of mode under request->name, or finds that one is there (EXISTED; not a symlink
 * to one). Something else there: replaced if it is the SAME or by OVERWRITE, otherwise a conflict
 * (ANY too); BESIDE: what belongs in it goes to result.name, which EXISTED before or not. */
int publish_directory(struct publish *publish, const struct publish_request *request, mode_t mode,
	struct publish_result *result, struct error *err);

/* Whether st is what identity says (ctime among it). */
bool publish_is_same(const struct stat *st, const struct copy_identity *identity);
void publish_identity(const struct stat *st, struct copy_identity *identity);

/* fsync of a file or directory. A filesystem that can not sync directories (EINVAL) is not an
 * error. */
int publish_sync(int fd, struct error *err);

/* Whether an entry's name is a temporary's, of whatever run. */
bool publish_is_temp(const char *name);

/* Removes the temporaries in dirfd that dead runs of this host left; *removed (may be NULL) counts
 * them. Those of other hosts, of live processes and of those that can not be told apart are
 * left. */
int publish_remove_dead(struct publish *publish, int dirfd, uint64_t *removed, struct error *err);

#endif
