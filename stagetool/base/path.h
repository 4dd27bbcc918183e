/*
 * Paths as bytes, and opening them so that nobody can redirect us.
 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Joins two paths with one '/', also where b begins with one. An empty a or b adds none. Caller
 * frees; NULL on ENOMEM. */
char *path_join(const char *a, const char *b);

/* Takes out "//", "." components and a trailing '/'. ".." is kept: through a symlink it can not be
 * resolved in text. "" becomes ".". Caller frees; NULL on ENOMEM. */
char *path_clean(const char *path);

/* Whether a component of path is "..". */
bool path_has_dotdot(const char *path);

/* The last component of a cleaned path (borrowed from path); "" of "/". */
const char *path_base(const char *path);

/* Opens path below dirfd with openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve). Paths of
 * any length: what is beyond PATH_MAX is opened piece by piece. path may not be absolute and may
 * not lead out of dirfd (-EXDEV). "" is dirfd itself. On kernels without openat2 every symlink is
 * refused (-ELOOP or -ENOTDIR). Returns a close-on-exec fd, or a negative errno with err filled. */
int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode,
	unsigned long long resolve, struct error *err);

/* Opens an absolute or relative path of any length as the calling process may (symlinks followed),
 * the ordinary open(2) but for the length; O_CREAT gives mode 0600. Returns a close-on-exec fd or a
 * negative errno. */
int path_open(const char *path, int flags, struct error *err);

/* Makes path (relative to dirfd, or absolute) and its missing parents as directories of mode less
 * the umask, and opens it for reading (O_PATH is not set). Existing components are followed as the
 * process may. Returns an fd or a negative errno. */
int path_make_dirs(int dirfd, const char *path, mode_t mode, struct error *err);

#endif
