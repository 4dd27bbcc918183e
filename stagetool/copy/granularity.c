#include "copy/granularity.h"

#include "base/cleanup.h"
#include "copy/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#define SECOND 1000000000ULL

bool granularity_same(const struct timespec *wanted, const struct timespec *kept, uint64_t step)
{
	int64_t sec = wanted->tv_sec;
	int64_t nsec = wanted->tv_nsec;

	if (step >= SECOND) {
		int64_t seconds = (int64_t)(step / SECOND);

		nsec = 0;
		sec -= ((sec % seconds) + seconds) % seconds; /* downwards, before 1970 too */
	} else {
		nsec -= nsec % (int64_t)step;
	}
	return kept->tv_sec == sec && kept->tv_nsec == nsec;
}

/* fd is a new file: what becomes of an odd time on it. */
static int granularity_try(int fd, uint64_t *step, dev_t *dev, struct error *err)
{
	static const uint64_t steps[] = { 1, 100, 1000, 1000000, 10 * 1000000, SECOND, 2 * SECOND };
	const struct timespec wanted = { 1234567891, 987654321 };
	const struct timespec times[2] = { wanted, wanted };
	struct stat st;

	if (futimens(fd, times) < 0)
		return error_errno(err, "set times");
	if (fstat(fd, &st) < 0)
		return error_errno(err, "stat");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (granularity_same(&wanted, &st.st_mtim, steps[i])) {
			*step = steps[i];
			*dev = st.st_dev;
			return 0;
		}
	}
	return error_set(err, -ENOTSUP, "times come back as other ones");
}

int granularity_probe(int dirfd, uint64_t *step, dev_t *dev, struct error *err)
{
	char temp[PUBLISH_TEMP_SIZE];
	struct publish *publish;
	struct stat before;
	int rc, fd;

	if (fstat(dirfd, &before) < 0)
		return error_errno(err, "stat");
	rc = publish_new(&publish, err);
	if (rc < 0)
		return rc;
	fd = publish_create(publish, dirfd, 0600, temp, err);
	rc = fd;
	if (fd >= 0) {
		const struct timespec times[2] = { before.st_atim, before.st_mtim };

		rc = granularity_try(fd, step, dev, err);
		close(fd); /* nothing was written */
		unlinkat(dirfd, temp, 0);
		(void)futimens(dirfd, times);
	}
	publish_free(publish);
	return rc;
}
