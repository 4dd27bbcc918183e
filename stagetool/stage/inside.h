/*
 * Paths inside a stage: symlinks in it are followed as long as they stay in it.
 */
#ifndef STAGE_INSIDE_H
#define STAGE_INSIDE_H

#include "base/error.h"

/* Opens path (relative, "." for the stage itself) below stagefd. *real (may be NULL; caller frees)
 * is where that is, without symlinks. -EXDEV, with a sentence, where it would lead outside. Returns
 * a close-on-exec fd or a negative errno. */
int inside_open(int stagefd, const char *path, int flags, char **real, struct error *err);

/* Opens the directory path as inside_open does, made with its parents where it is not there. */
int inside_make_dirs(int stagefd, const char *path, char **real, struct error *err);

/* What open file fd is called, absolute and without symlinks. Caller frees; NULL where that is too
 * long for the kernel to say. */
char *inside_fd_path(int fd);

/* Splits path at its last '/': *dir ("." where there is none; caller frees) and its last component
 * (borrowed from path). NULL on ENOMEM. */
const char *inside_split(const char *path, char **dir);

#endif
