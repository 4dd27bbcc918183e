/*
 * Shared by meta.c (what is set, in which order) and xattr.c (extended attributes).
 */
#ifndef TREE_META_INTERNAL_H
#define TREE_META_INTERNAL_H

#include "base/known.h"
#include "tree/meta.h"

struct meta {
	struct meta_options options;
	bool root;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int n_groups;
	struct known known; /* by device */
};

/* What a source has. */
#define META_HAS_ACCESS_ACL 1u
#define META_HAS_DEFAULT_ACL 2u
#define META_HAS_CAPABILITY 4u /* and it is not to be kept */
#define META_HAS_XATTRS 8u /* that are to be copied, beside ACLs */

#define META_ACCESS_ACL "system.posix_acl_access"
#define META_DEFAULT_ACL "system.posix_acl_default"

/* An entry: open (fd; name NULL), or a name in a directory. */
struct meta_entry {
	int fd, dirfd;
	const char *name;
};

/* One application, as it goes. */
struct meta_work {
	struct meta *meta;
	const struct meta_source *source;
	struct meta_entry to;
	dev_t dev; /* of to */
	uid_t uid; /* what to has now */
	gid_t gid;
	mode_t mode;
	bool mode_known;
	unsigned group_bits; /* what the mode's group bits are to be; without an ACL not the mask */
	int code; /* of the first failure */
	struct error *err;
};

/* Adds a failure (negative errno) of what to the work. */
void meta_failed(struct meta_work *work, int code, const char *what);

/* Fills names, names_size, has and code of a source. */
void xattr_read(struct meta *meta, const struct meta_entry *from, struct meta_source *source);

/* The same for a source whose attributes are given. */
void xattr_given(struct meta *meta, struct meta_source *source);

/* The value of name that source has, in memory that the caller frees. Its size, or a negative errno. */
ssize_t xattr_value(const struct meta_source *source, const char *name, void **value);

/* The attributes but ACLs. */
void xattr_copy(struct meta_work *work);

/* Sets the ACLs that source has, and removes those that are in the way (access, standing: to may
 * have one that it got from its directory). */
void xattr_copy_acls(struct meta_work *work, bool drop_access, bool drop_default);

/* Which ACLs a directory has. Where it can not be told: both, so that what they do is undone. */
void xattr_find_acls(struct meta *meta, int fd, dev_t dev, bool *access, bool *defaults);

#endif
