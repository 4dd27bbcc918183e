#include "stage/check_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"
#include "stage/records.h"

struct check_walk {
	struct check check;
	struct check_reader *reader; /* NULL: contents are not read */
};

void check_tell(struct check *check, const char *path, enum check_kind kind, const char *text)
{
	pthread_mutex_lock(&check->lock);
	check->counts->of[kind]++;
	if (check->options->difference)
		check->options->difference(check->options->ctx, path, kind, text);
	pthread_mutex_unlock(&check->lock);
}

void check_same(struct check *check)
{
	pthread_mutex_lock(&check->lock);
	check->counts->same++;
	pthread_mutex_unlock(&check->lock);
}

/* What differs first, as a sentence; NULL: nothing. */
static const char *difference(const struct stat *st, const struct manifest_entry *entry)
{
	struct manifest_identity now;

	manifest_identity_from(st, &now);
	if ((st->st_mode & S_IFMT) != entry->type)
		return "it is of another kind now";
	if (entry->type == S_IFDIR)
		return entry->mode != (st->st_mode & 07777) || entry->uid != st->st_uid ||
				       entry->gid != st->st_gid
			       ? "its mode or owner was changed"
			       : NULL;
	if (entry->type != S_IFREG && entry->type != S_IFLNK)
		return NULL;
	if (now.ino != entry->local.ino)
		return "it is another file now";
	if (now.size != entry->local.size)
		return "its size was changed";
	if (now.mtime_sec != entry->local.mtime_sec || now.mtime_nsec != entry->local.mtime_nsec)
		return "it was written to";
	return manifest_identity_equal(&now, &entry->local)
		       ? NULL
		       : "it was changed, and its modification time set back, or its attributes "
			 "were changed";
}

/* 0 and st; -ENOENT: it is not there. */
static int look(const struct check *check, const char *path, struct stat *st)
{
	autofree char *dir = NULL;
	const char *name = inside_split(path, &dir);
	autoclose int dirfd = name ? path_open_beneath(check->stagefd, dir, O_PATH | O_DIRECTORY, 0,
					     RESOLVE_NO_SYMLINKS, NULL)
				   : -ENOMEM;

	if (dirfd == -ENOTDIR || dirfd == -ELOOP)
		return -ENOENT; /* what was its directory is something else */
	if (dirfd < 0)
		return dirfd;
	return fstatat(dirfd, name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int read_too(struct check_walk *walk, const struct record *record, struct error *err)
{
	struct manifest *manifest = walk->check.manifest;
	autofree char *local = NULL;
	autofree char *shared = NULL;
	const char *below = record->path;
	char *source;
	int rc = manifest_pair_roots(manifest, record->entry->pair, &local, &shared, err);

	if (rc < 0)
		return rc;
	if (strcmp(local, ".") != 0 && strncmp(below, local, strlen(local)) == 0)
		below += strlen(local);
	source = path_join(shared, below + strspn(below, "/"));
	return check_reader_add(walk->reader, strdup(record->path), source, record->entry, err);
}

/* Whether the record's path is below the root that its pair has in the stage: a symlink in the
 * stage may have led it elsewhere, and then its source is not known. */
static bool has_source(const struct check_walk *walk, const struct record *record)
{
	autofree char *local = NULL;
	autofree char *shared = NULL;
	size_t length;

	if (!record->entry->pair || manifest_pair_roots(walk->check.manifest, record->entry->pair,
					    &local, &shared, NULL) < 0)
		return false;
	length = strcmp(local, ".") == 0 ? 0 : strlen(local);
	return strncmp(record->path, local, length) == 0 &&
	       (length == 0 || record->path[length] == '/' || record->path[length] == '\0');
}

static int compare(struct check_walk *walk, const struct record *record, struct error *err)
{
	struct error why = ERROR_INIT;
	const char *differs;
	struct stat st;
	int rc = look(&walk->check, record->path, &st);

	if (rc == -ENOENT) {
		check_tell(&walk->check, record->path, CHECK_MISSING, "it is not there any more");
		return 1;
	}
	if (rc < 0) {
		error_sys(&why, rc, "stat");
		check_tell(&walk->check, record->path, CHECK_UNKNOWN, why.text);
		return 1;
	}
	differs = difference(&st, record->entry);
	if (differs)
		check_tell(&walk->check, record->path, CHECK_CHANGED, differs);
	else if (walk->reader && S_ISREG(st.st_mode) && has_source(walk, record))
		return read_too(walk, record, err);
	else
		check_same(&walk->check);
	return 0;
}

static int check_file(void *ctx, const struct record *record, struct error *err)
{
	int rc = compare(ctx, record, err);

	return rc < 0 ? rc : 0;
}

static int check_name(
	struct check_walk *walk, const struct record *record, const char *name, struct error *err)
{
	autofree char *path = path_join(record->path, name);
	struct manifest_entry entry;
	int rc;

	if (!path)
		return error_sys(err, -ENOMEM, "verify");
	if (!*record->path && strcmp(name, MANIFEST_STAGE_DIR) == 0)
		return 0;
	rc = manifest_get(walk->check.manifest, 0, record->entry->dir, name, &entry, err);
	if (rc == -ENOENT)
		check_tell(&walk->check, path, CHECK_NEW, "it was not staged in");
	return rc == -ENOENT ? 0 : rc;
}

static int list_new(struct check_walk *walk, const struct record *record, struct error *err)
{
	struct error why = ERROR_INIT;
	int fd = path_open_beneath(walk->check.stagefd, record->path, O_RDONLY | O_DIRECTORY, 0,
		RESOLVE_NO_SYMLINKS, &why);
	autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int rc = 0;

	if (!dir) {
		if (fd >= 0) {
			error_errno(&why, "listing");
			close(fd);
		}
		check_tell(&walk->check, record->path, CHECK_UNKNOWN, why.text);
		return 0;
	}
	while (rc == 0 && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = check_name(walk, record, entry->d_name, err);
	}
	if (rc == 0 && errno) {
		error_errno(&why, "listing");
		check_tell(&walk->check, record->path, CHECK_UNKNOWN, why.text);
	}
	return rc;
}

static int check_enter(void *ctx, const struct record *record, struct error *err)
{
	struct check_walk *walk = ctx;
	const atomic_bool *cancel = walk->check.options->cancel;
	struct stat st;
	int rc = 0;

	if (cancel && atomic_load(cancel))
		return error_sys(err, -ECANCELED, "verify");
	/* A directory on the way to something has no attributes to compare; one that never came to
	 * be is nothing that is missing. */
	if (*record->path && record->entry->mode != MANIFEST_MODE_UNKNOWN)
		rc = compare(walk, record, err);
	else if (look(&walk->check, *record->path ? record->path : ".", &st) < 0)
		rc = 1;
	return rc ? rc : list_new(walk, record, err);
}

int check_stage(int stagefd, const struct check_options *options, struct check_counts *counts,
	struct error *err)
{
	const struct records_ops ops = { check_enter, check_file, NULL };
	struct check_walk walk = {
		.check = { .stagefd = stagefd, .options = options, .counts = counts }
	};
	int rc = manifest_open(stagefd, false, &walk.check.manifest, err);

	if (rc < 0)
		return rc;
	pthread_mutex_init(&walk.check.lock, NULL);
	if (options->content)
		rc = check_reader_start(&walk.check, &walk.reader, err);
	if (rc == 0)
		rc = records_walk(walk.check.manifest, ".", &ops, &walk, err);
	check_reader_end(walk.reader);
	pthread_mutex_destroy(&walk.check.lock);
	manifest_close(walk.check.manifest);
	return rc;
}
