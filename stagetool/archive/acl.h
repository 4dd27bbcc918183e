/*
 * ACLs: as libarchive has them, and as the kernel does.
 */
#ifndef ARCHIVE_ACL_H
#define ARCHIVE_ACL_H

#include <stdbool.h>
#include <stddef.h>

#include "archive/library.h"
#include "base/error.h"

/* The ACL of a kind (ARCHIVE_ENTRY_ACL_TYPE_ACCESS or _DEFAULT) of entry as the value of the kernel's
 * attribute. 1: *value (caller frees) and *size are set; *mask (may be NULL) is what the group bits of the mode
 * are then. 0: it has none. Users and groups are known by their numbers; a name without one is looked up.
 * Negative errno: it can not be had (a name that is not known here). */
int acl_from_archive(struct archive_entry *entry, int kind, void **value, size_t *size,
	unsigned *mask, struct error *err);

/* Adds an ACL of such a kind, a value of the kernel's, to entry, whose mode is set. -EBADMSG: it is not
 * understood. */
int acl_to_archive(struct archive_entry *entry, int kind, const void *value, size_t size,
	struct error *err);

#endif
