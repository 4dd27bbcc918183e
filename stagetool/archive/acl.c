#include "archive/acl.h"

#include <endian.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ACL_VERSION 2
#define ACL_NO_ID UINT32_MAX

enum acl_tag {
	ACL_TAG_USER_OBJ = 0x01,
	ACL_TAG_USER = 0x02,
	ACL_TAG_GROUP_OBJ = 0x04,
	ACL_TAG_GROUP = 0x08,
	ACL_TAG_MASK = 0x10,
	ACL_TAG_OTHER = 0x20,
};

struct acl_entry {
	uint16_t tag, permissions;
	uint32_t id;
};

struct acl {
	struct acl_entry *entries;
	size_t count;
};

static const struct {
	int theirs;
	enum acl_tag ours;
} tags[] = {
	{ ARCHIVE_ENTRY_ACL_USER_OBJ, ACL_TAG_USER_OBJ },
	{ ARCHIVE_ENTRY_ACL_USER, ACL_TAG_USER },
	{ ARCHIVE_ENTRY_ACL_GROUP_OBJ, ACL_TAG_GROUP_OBJ },
	{ ARCHIVE_ENTRY_ACL_GROUP, ACL_TAG_GROUP },
	{ ARCHIVE_ENTRY_ACL_MASK, ACL_TAG_MASK },
	{ ARCHIVE_ENTRY_ACL_OTHER, ACL_TAG_OTHER },
};

static int find_id(enum acl_tag tag, const char *name, uint32_t *id, struct error *err)
{
	const size_t size = 64 << 10;
	autofree char *room = malloc(size);
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;

	if (!room)
		return error_sys(err, -ENOMEM, "an ACL");
	if (tag == ACL_TAG_USER && getpwnam_r(name, &user, room, size, &found_user) == 0 &&
		found_user)
		*id = user.pw_uid;
	else if (tag == ACL_TAG_GROUP && getgrnam_r(name, &group, room, size, &found_group) == 0 &&
		 found_group)
		*id = group.gr_gid;
	else
		return error_set(err, -ENOENT, "an ACL names the %s %s, which is not known here",
			tag == ACL_TAG_USER ? "user" : "group", name);
	return 0;
}

static int acl_add(struct acl *acl, enum acl_tag tag, unsigned permissions, uint32_t id)
{
	struct acl_entry *grown =
		reallocarray(acl->entries, acl->count + 1, sizeof(*acl->entries));

	if (!grown)
		return -ENOMEM;
	acl->entries = grown;
	grown[acl->count++] = (struct acl_entry){ (uint16_t)tag, (uint16_t)(permissions & 7), id };
	return 0;
}

/* One entry as libarchive gives it. */
static int acl_take(struct acl *acl, int their_tag, int permissions, int qualifier,
	const char *name, struct error *err)
{
	uint32_t id = ACL_NO_ID;
	enum acl_tag tag = 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (tags[i].theirs == their_tag)
			tag = tags[i].ours;
	if (!tag)
		return error_set(err, -EINVAL, "an ACL of an unknown kind");
	if (tag == ACL_TAG_USER || tag == ACL_TAG_GROUP) {
		id = (uint32_t)qualifier;
		if (qualifier == -1)
			rc = find_id(tag, name ? name : "", &id, err);
	}
	if (!rc && acl_add(acl, tag, (unsigned)permissions, id))
		rc = error_sys(err, -ENOMEM, "an ACL");
	return rc;
}

static int by_tag(const void *left, const void *right)
{
	const struct acl_entry *a = left, *b = right;

	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* The kernel wants a mask wherever somebody is named. */
static int acl_complete(struct acl *acl, unsigned *mask)
{
	unsigned all = 0, group = 0;
	bool named = false;

	for (size_t i = 0; i < acl->count; i++) {
		const struct acl_entry *entry = &acl->entries[i];

		if (entry->tag == ACL_TAG_MASK) {
			*mask = entry->permissions;
			return 0;
		}
		if (entry->tag == ACL_TAG_GROUP_OBJ)
			group = entry->permissions;
		if (entry->tag == ACL_TAG_USER || entry->tag == ACL_TAG_GROUP)
			named = true;
		if (entry->tag != ACL_TAG_USER_OBJ && entry->tag != ACL_TAG_OTHER)
			all |= entry->permissions;
	}
	*mask = named ? all : group;
	return named ? acl_add(acl, ACL_TAG_MASK, all, ACL_NO_ID) : 0;
}

/* The attribute's value: a version, then entries, all little-endian. */
static void *acl_encode(struct acl *acl, size_t *size)
{
	uint32_t version = htole32(ACL_VERSION);
	char *value, *at;

	qsort(acl->entries, acl->count, sizeof(*acl->entries), by_tag);
	*size = sizeof(version) + acl->count * sizeof(struct acl_entry);
	value = malloc(*size);
	if (!value)
		return NULL;
	memcpy(value, &version, sizeof(version));
	at = value + sizeof(version);
	for (size_t i = 0; i < acl->count; i++, at += sizeof(struct acl_entry)) {
		const struct acl_entry entry = { htole16(acl->entries[i].tag),
			htole16(acl->entries[i].permissions), htole32(acl->entries[i].id) };

		memcpy(at, &entry, sizeof(entry));
	}
	return value;
}

int acl_from_archive(struct archive_entry *entry, int kind, void **value, size_t *size,
	unsigned *mask, struct error *err)
{
	int type, permissions, tag, qualifier, rc = 0;
	struct acl acl = { NULL, 0 };
	const char *name;
	unsigned group;

	if (!(archive_entry_acl_types(entry) & kind) || archive_entry_acl_reset(entry, kind) <= 0)
		return 0;
	while (!rc && archive_entry_acl_next(entry, kind, &type, &permissions, &tag, &qualifier,
			      &name) == ARCHIVE_OK)
		rc = acl_take(&acl, tag, permissions, qualifier, name, err);
	if (!rc && acl_complete(&acl, &group))
		rc = error_sys(err, -ENOMEM, "an ACL");
	if (!rc && acl.count) {
		*value = acl_encode(&acl, size);
		rc = *value ? 1 : error_sys(err, -ENOMEM, "an ACL");
		if (mask)
			*mask = group;
	}
	free(acl.entries);
	return rc;
}

static int their_tag(unsigned tag)
{
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (tags[i].ours == tag)
			return tags[i].theirs;
	return 0;
}

int acl_to_archive(struct archive_entry *entry, int kind, const void *value, size_t size,
	struct error *err)
{
	const char *at = value;

	for (size_t offset = 4; offset + sizeof(struct acl_entry) <= size;
		offset += sizeof(struct acl_entry)) {
		struct acl_entry one;
		int tag;

		memcpy(&one, at + offset, sizeof(one));
		tag = their_tag(le16toh(one.tag));
		if (!tag || archive_entry_acl_add_entry(entry, kind, le16toh(one.permissions), tag,
				    (int)le32toh(one.id), NULL) != ARCHIVE_OK)
			return error_set(err, -EBADMSG, "an ACL that is not understood");
	}
	return 0;
}
