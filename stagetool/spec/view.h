/*
 * Where a job also sees what was staged (at=): the place must be there, and may not be a protected one.
 */
#ifndef SPEC_VIEW_H
#define SPEC_VIEW_H

#include <sys/stat.h>

#include "base/error.h"
#include "spec/conf.h"

/* Opens place (absolute) with O_PATH as the calling process may, symlinks followed, and fills st. What it
 * resolves to is what protect_check is asked about. Returns a close-on-exec fd or a negative errno. */
int view_open(const char *place, const struct conf *conf, struct stat *st, struct error *err);

/* What is open as fd, after all symlinks, as this process sees it. Caller frees. NULL and err where the
 * kernel does not say. */
char *view_real_path(int fd, struct error *err);

#endif
