/*
 * Expanding a pattern of FROM, as the process may read.
 */
#ifndef TREE_GLOB_H
#define TREE_GLOB_H

#include <stddef.h>

#include "base/error.h"

/* Expands pattern (absolute, or relative to dirfd) component by component with fnmatch (FNM_PERIOD, no
 * escapes). Results are sorted by bytes; no match is success with *count 0. Symlinks in the pattern's fixed
 * part are followed. Caller frees with glob_free. An unreadable directory is an error. */
int glob_expand(int dirfd, const char *pattern, char ***paths, size_t *count, struct error *err);
void glob_free(char **paths, size_t count);

#endif
