/*
 * How finely a filesystem keeps times, found by trying.
 */
#ifndef COPY_GRANULARITY_H
#define COPY_GRANULARITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* Sets a time on a temporary file in dirfd and reads it back: *step is 1, 100, ... nanoseconds up to 2
 * seconds; *dev is the filesystem's st_dev. The directory's own times are put back where that is allowed. A
 * filesystem that does something else than cutting off is -ENOTSUP. */
int granularity_probe(int dirfd, uint64_t *step, dev_t *dev, struct error *err);

/* Whether kept is what a filesystem of this step makes of wanted. */
bool granularity_same(const struct timespec *wanted, const struct timespec *kept, uint64_t step);

#endif
