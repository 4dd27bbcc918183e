#include "archive/attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/acl.h"

/* A tar archive has a time as a decimal number: -0.25 is a quarter of a second before 1970. libarchive takes
 * the part behind the point for itself, as if it went forward. */
static void set_time(struct timespec *time, time_t seconds, long nanoseconds, bool is_tar)
{
	time->tv_sec = seconds;
	time->tv_nsec = nanoseconds;
	if (is_tar && seconds < 0 && nanoseconds > 0) {
		time->tv_sec--;
		time->tv_nsec = 1000000000 - nanoseconds;
	}
}

static void take_stat(struct archive_entry *entry, const struct attributes_origin *origin,
	struct stat *st)
{
	const struct stat *archive = origin->archive;
	bool is_tar = origin->is_tar;
	mode_t mode = archive_entry_mode(entry);

	memset(st, 0, sizeof(*st));
	st->st_mode = mode & S_IFMT ? mode : S_IFREG | mode;
	st->st_uid = (uid_t)archive_entry_uid(entry);
	st->st_gid = (gid_t)archive_entry_gid(entry);
	st->st_nlink = 1;
	st->st_size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : -1;
	st->st_mtim = archive->st_mtim;
	if (archive_entry_mtime_is_set(entry))
		set_time(&st->st_mtim, archive_entry_mtime(entry), archive_entry_mtime_nsec(entry),
			is_tar);
	st->st_atim.tv_nsec = UTIME_NOW;
	if (archive_entry_atime_is_set(entry))
		set_time(&st->st_atim, archive_entry_atime(entry), archive_entry_atime_nsec(entry),
			is_tar);
	st->st_ino = origin->number;
	st->st_ctim = archive->st_ctim;
}

static bool is_acl(const char *name)
{
	return !strcmp(name, "system.posix_acl_access") ||
	       !strcmp(name, "system.posix_acl_default");
}

static void take_xattrs(struct archive_entry *entry, struct attributes *attributes)
{
	const char *name;
	const void *value;
	size_t size;

	archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
		if (name && !is_acl(name))
			attributes->values[attributes->n_values++] =
				(struct meta_value){ name, value, size };
}

static int take_acl(struct archive_entry *entry, bool access, struct attributes *attributes,
	struct error *err)
{
	int kind = access ? ARCHIVE_ENTRY_ACL_TYPE_ACCESS : ARCHIVE_ENTRY_ACL_TYPE_DEFAULT;
	size_t size = 0;
	unsigned mask = 0;
	void **value = &attributes->acls[access];
	int rc = acl_from_archive(entry, kind, value, &size, &mask, err);

	if (rc <= 0)
		return rc;
	attributes->values[attributes->n_values++] = (struct meta_value){
		access ? "system.posix_acl_access" : "system.posix_acl_default", *value, size };
	/* libarchive makes the group bits what the group itself may. */
	if (access)
		attributes->st.st_mode = (attributes->st.st_mode & ~(mode_t)S_IRWXG) | mask << 3;
	return 0;
}

int attributes_take(struct archive_entry *entry, const struct attributes_origin *origin,
	struct attributes *attributes, struct error *err)
{
	size_t room = (size_t)archive_entry_xattr_count(entry) + 2;
	int rc, access_rc;

	*attributes = (struct attributes){ .n_values = 0 };
	take_stat(entry, origin, &attributes->st);
	attributes->values = calloc(room, sizeof(*attributes->values));
	if (!attributes->values)
		return error_sys(err, -ENOMEM, "attributes");
	take_xattrs(entry, attributes);
	rc = take_acl(entry, false, attributes, err);
	access_rc = take_acl(entry, true, attributes, err);
	return rc ? rc : access_rc;
}

void attributes_free(struct attributes *attributes)
{
	free(attributes->values);
	free(attributes->acls[0]);
	free(attributes->acls[1]);
}
