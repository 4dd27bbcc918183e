/*
 * Removing a tree that others may still be changing, as root, without ever leaving it.
 */
#ifndef TREE_REMOVE_H
#define TREE_REMOVE_H

#include "base/error.h"

/* Removes name in dirfd and everything below it: relative to fds, never following a symlink, never
 * crossing into another mount (-EXDEV, nothing below that mount is touched). Directories without
 * search or write permission are opened up first (ours are 0555 at times). Goes on after an error
 * and returns the first one. A missing name is success. */
int remove_tree(int dirfd, const char *name, struct error *err);

#endif
