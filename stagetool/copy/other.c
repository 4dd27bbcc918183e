#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/retry.h"
#include "copy/internal.h"

/* The target of a symlink, whatever its length. NULL with err. */
static char *other_read_link(struct copy_entry *entry, int dirfd, struct error *err)
{
	size_t room = entry->st.st_size > 0 ? (size_t)entry->st.st_size + 1 : 256;

	while (true) {
		autofree char *target = malloc(room);
		ssize_t length;

		if (!target) {
			error_sys(err, -ENOMEM, "readlink");
			return NULL;
		}
		length = readlinkat(dirfd, entry->src_name, target, room);
		if (length < 0) {
			error_errno(err, "readlink");
			return NULL;
		}
		if ((size_t)length < room) {
			target[length] = '\0';
			return take_ptr(target);
		}
		room *= 2;
	}
}

/* Makes a symlink (target) or FIFO (NULL) in dirfd: under its name where nobody looks and it is
 * free, else under a temporary one, which temp then is. */
static int other_make(struct copy_entry *entry, int dirfd, const char *target, mode_t mode,
	char temp[PUBLISH_TEMP_SIZE], struct error *err)
{
	struct publish *publish = entry->copy->publish;

	temp[0] = '\0';
	if (!entry->copy->options.publish) {
		if (!(target ? symlinkat(target, dirfd, entry->dst_name)
			     : mkfifoat(dirfd, entry->dst_name, mode)))
			return 0;
		if (errno != EEXIST)
			return error_errno(err, "create");
	}
	return target ? publish_create_symlink(publish, dirfd, target, temp, err)
		      : publish_create_fifo(publish, dirfd, mode, temp, err);
}

struct other_result {
	struct publish_result published;
	unsigned dropped;
	int attribute_code;
	struct error attribute, conflict;
	struct stat dst;
	bool have_dst;
};

/* From the source's attributes to the final name. */
static int other_copy(struct copy_entry *entry, const struct meta_source *source, int dirfd,
	const char *target, bool last, struct other_result *result, struct error *err)
{
	struct copy *copy = entry->copy;
	struct copy_dir *dir = entry->dir;
	char temp[PUBLISH_TEMP_SIZE];
	struct stat made;
	const char *at;
	int rc = other_make(entry, dirfd, target, meta_create_mode(copy->meta, source, &dir->place),
		temp, err);

	if (rc < 0)
		return rc;
	at = temp[0] ? temp : entry->dst_name;
	/* What can not even be looked at gets no attributes, and a caller could not note it. */
	if (fstatat(dirfd, at, &made, AT_SYMLINK_NOFOLLOW)) {
		rc = error_errno(err, "stat");
		unlinkat(dirfd, at, 0);
		return rc;
	}
	result->attribute_code = meta_apply_at(copy->meta, source, dirfd, at, &made, &dir->place,
		&result->dropped, &result->attribute);
	if (!last && retry_is_transient(result->attribute_code)) {
		unlinkat(dirfd, at, 0);
		*err = result->attribute;
		return err->code;
	}
	if (temp[0]) {
		struct publish_request request = { dirfd, dir->place.dev, temp, entry->dst_name,
			&entry->expect, copy->options.conflict, copy->options.conflict_suffix, 0 };

		rc = publish_entry(copy->publish, &request, &result->published, &result->conflict);
		if (rc < 0) {
			*err = result->conflict;
			return rc;
		}
	}
	atomic_store_explicit(&dir->touched, true, memory_order_relaxed);
	if (!temp[0])
		strcpy(result->published.name, entry->dst_name);
	at = result->published.name;
	result->have_dst = S_ISLNK(entry->st.st_mode) &&
			   !fstatat(dirfd, at, &result->dst, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static void other_tell_done(
	struct copy_entry *entry, const struct other_result *result, unsigned worker)
{
	const struct stat *dst = result->have_dst ? &result->dst : NULL;
	struct error why = ERROR_INIT;
	char text[64];

	if (result->attribute_code < 0)
		copy_entry_tell(entry, COPY_ATTRIBUTE, dst, &result->attribute, worker);
	if (result->dropped) {
		error_set(&why, -EPERM, "without %s",
			meta_dropped_text(result->dropped, text, sizeof(text)));
		copy_entry_tell(entry, COPY_DROPPED, dst, &why, worker);
	}
	copy_entry_tell(entry, COPY_DONE, dst, NULL, worker);
}

static void other_tell(
	struct copy_entry *entry, const struct other_result *result, bool leads, unsigned worker)
{
	enum publish_fate fate = result->published.fate;

	if (fate == PUBLISH_DONE)
		other_tell_done(entry, result, worker);
	else
		copy_entry_tell(entry, COPY_CONFLICT, NULL, &result->conflict, worker);
	if (leads)
		copy_group_end(entry, fate == PUBLISH_REFUSED ? NULL : result->published.name,
			fate == PUBLISH_DONE);
}

/* Into its directory. */
static int other_put(struct copy_entry *entry, const struct meta_source *source,
	const char *target, bool last, bool leads, unsigned worker, struct error *err)
{
	struct other_result result = { .published = { .fate = PUBLISH_DONE } };
	int dirfd = copy_dir_pin(entry->dir, worker, err), rc;

	if (dirfd < 0)
		return dirfd;
	rc = other_copy(entry, source, dirfd, target, last, &result, err);
	if (rc == -ENOSPC || rc == -EDQUOT)
		copy_no_space(entry->copy, dirfd, true, err);
	copy_dir_unpin(entry->dir);
	if (!rc)
		other_tell(entry, &result, leads, worker);
	return rc;
}

void copy_other_given(struct copy_entry *entry, const struct meta_source *source,
	const char *target, unsigned worker)
{
	struct error err = ERROR_INIT;
	unsigned attempt = 0;
	int rc;

	do
		rc = other_put(entry, source, target, attempt == RETRY_MAX, false, worker, &err);
	while (rc < 0 && !copy_stopped(entry->copy) && retry_again(rc, &attempt));
	if (rc < 0)
		copy_entry_fail(entry, false, &err, worker);
}

/* last: an attribute that can not be set now is no reason to try again. */
static int other_send(struct copy_entry *entry, bool last, bool *of_source, bool leads,
	unsigned worker, struct error *err)
{
	struct meta_source source;
	autofree char *target = NULL;
	int srcdir = copy_entry_pin_source(entry, err), rc;

	*of_source = true;
	if (srcdir < 0)
		return srcdir;
	if (S_ISLNK(entry->st.st_mode)) {
		target = other_read_link(entry, srcdir, err);
		if (!target) {
			copy_entry_unpin_source(entry);
			return err->code;
		}
	}
	*of_source = false;
	meta_read_at(entry->copy->meta, srcdir, entry->src_name, &entry->st, &source);
	rc = other_put(entry, &source, target, last, leads, worker, err);
	meta_source_free(&source);
	copy_entry_unpin_source(entry);
	return rc;
}

static const char *other_kind(mode_t mode)
{
	if (S_ISSOCK(mode))
		return "a socket is not copied";
	if (S_ISBLK(mode) || S_ISCHR(mode))
		return "a device is not copied";
	return "an entry of an unknown kind is not copied";
}

static void other_run(struct copy_entry *entry, bool leads, unsigned worker)
{
	struct error err = ERROR_INIT;
	unsigned attempt = 0;
	bool of_source;
	int rc;

	do
		rc = other_send(entry, attempt == RETRY_MAX, &of_source, leads, worker, &err);
	while (rc < 0 && !copy_stopped(entry->copy) && retry_again(rc, &attempt));
	if (rc == 0)
		return;
	copy_entry_fail(entry, of_source, &err, worker);
	if (leads)
		copy_group_end(entry, NULL, false);
}

void copy_other_send(struct copy_entry *entry, unsigned worker)
{
	struct error err = ERROR_INIT;
	bool leads = false;

	if (!S_ISLNK(entry->st.st_mode) && !S_ISFIFO(entry->st.st_mode)) {
		error_set(&err, -EOPNOTSUPP, "%s", other_kind(entry->st.st_mode));
		copy_entry_tell(entry, COPY_SPECIAL, NULL, &err, worker);
		return;
	}
	if (entry->st.st_nlink > 1) {
		if (copy_group_claim(entry, false, worker) == COPY_CLAIM_THROUGH)
			return;
		leads = true;
	}
	other_run(entry, leads, worker);
}

void copy_other_lead(struct copy_entry *entry, unsigned worker)
{
	other_run(entry, true, worker);
}
