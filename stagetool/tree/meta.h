/*
 * What an entry carries beside its bytes: owner, group, mode, times, xattrs, ACLs.
 *
 *   meta_read(meta, src, &st, &source);          one system call, before the destination is made
 *   dst = openat(..., O_CREAT, meta_create_mode(meta, &source, &place));
 *   fstat(dst, &made);                               before the bytes: it costs nothing then
 *   ... bytes ...
 *   meta_apply(meta, &source, dst, &made, &place, &dropped, err);
 *   meta_source_free(&source);
 *
 * Order of what is set: owner and group, extended attributes, ACLs, mode, times. The process's
 * umask should be 0 (modes are given exactly): with another one every entry costs a chmod more.
 */
#ifndef TREE_META_H
#define TREE_META_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

struct meta_options {
	bool keep_owner; /* root: owner and group exactly; others: the group, where it is one of
			  * theirs */
	bool inherit_group; /* the group, setgid bit and ACL that an entry gets from its destination
			     * directory stay; an ACL of the source's own is still copied */
	bool keep_special_bits; /* setuid and setgid of files, security.capability */
	bool trusted, security; /* xattrs of these namespaces (security.capability: see above) */
	bool any_namespace; /* lustre.*, system.* and all others */
	bool accessed_now; /* access times are the time of the copy */
};

/* The options, who this process is, and what filesystems turned out not to support. One for a copy,
 * for all threads. */
struct meta;
int meta_new(const struct meta_options *options, struct meta **meta, struct error *err);
void meta_free(struct meta *meta);

/* What a destination directory does to entries made in it. */
struct meta_place {
	dev_t dev;
	gid_t gid;
	bool setgid;
	bool access_acl, default_acl; /* of the directory itself */
};

/* Looks at a destination directory: one fstat and one flistxattr. Once for a directory, after it
 * was made or opened. st (may be NULL) saves the fstat. */
int meta_place_of(struct meta *meta, int dirfd, const struct stat *st, struct meta_place *place,
	struct error *err);

/* An extended attribute that does not come from a filesystem. Borrowed. */
struct meta_value {
	const char *name;
	const void *value;
	size_t size;
};

/* What a source entry has. Its fields are this module's. */
struct meta_source {
	struct stat st;
	int fd, dirfd;
	const char *name;
	char *names;
	size_t names_size;
	unsigned has;
	int code;
	const struct meta_value *values; /* of meta_given; NULL: they are read from the entry */
	size_t n_values;
};

/* Takes stock of an open regular file or directory (fd and st, its fstat), or of name in dirfd, a
 * symlink or FIFO (st: its lstat), which is not opened. fds and name are borrowed until meta_apply.
 * A failure is kept and comes out of meta_apply: the bytes can go all the same. */
void meta_read(struct meta *meta, int fd, const struct stat *st, struct meta_source *source);
void meta_read_at(struct meta *meta, int dirfd, const char *name, const struct stat *st,
	struct meta_source *source);
/* Of an entry that lies in no filesystem, but in an archive: st and its attributes are given. values
 * (ACLs among them, as the kernel has them) are borrowed until meta_source_free. */
void meta_given(struct meta *meta, const struct stat *st, const struct meta_value *values, size_t n,
	struct meta_source *source);
void meta_source_free(struct meta_source *source);

/* The mode to make the destination with: the final one, if nobody can see more through it meanwhile
 * than they may in the end and if it lets us write (directories: rwx for the owner); else a tighter
 * one. place: the directory it is made in. */
mode_t meta_create_mode(const struct meta *meta, const struct meta_source *source,
	const struct meta_place *place);

/* Gives fd (a regular file or directory) what source has. made: fstat of fd since it was made
 * (NULL: taken here). place: for a file, the directory it lies in; for a directory, what
 * meta_place_of said of itself. Of a directory that was there before, attributes that source has
 * not are left, ACLs are not. *dropped: META_DROPPED_* bits of what was left out by rule, set also
 * on failure. 0, or the first failure's negative errno with err naming each attribute that is not
 * as it should be: all the others are. */
int meta_apply(struct meta *meta, const struct meta_source *source, int fd, const struct stat *made,
	const struct meta_place *place, unsigned *dropped, struct error *err);
/* The same for name in dirfd, a symlink or FIFO. */
int meta_apply_at(struct meta *meta, const struct meta_source *source, int dirfd, const char *name,
	const struct stat *made, const struct meta_place *place, unsigned *dropped,
	struct error *err);

#define META_DROPPED_SETUID 1u
#define META_DROPPED_SETGID 2u
#define META_DROPPED_CAPABILITY 4u

/* The values of what source has, ACLs among them, while what it was read from is open: in *memory (caller frees),
 * which *values point into. Negative errno: err names what can not be read; the others are there. */
int meta_values(const struct meta_source *source, void **memory, struct meta_value **values,
	size_t *n, struct error *err);

/* "setuid, setgid and capabilities": for messages. Returns buffer. */
char *meta_dropped_text(unsigned dropped, char *buffer, size_t size);

#endif
