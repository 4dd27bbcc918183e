#include "stage/tier.h"

#include "base/cleanup.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define PROBE_BYTES 4096

int tier_open(const struct conf_tier *tier, struct error *err)
{
	autoclose int fd = path_open(tier->path, O_RDONLY | O_DIRECTORY, err);
	struct stat st;

	if (fd < 0)
		return error_prefix(err, fd, "tier %s", tier->name);
	if (fstat(fd, &st))
		return error_errno(err, "tier %s: %s: stat", tier->name, tier->path);
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return error_set(err, -EPERM,
			"tier %s: %s: owned by user %u with mode %04o, expected user %u and 0711",
			tier->name, tier->path, st.st_uid, st.st_mode & 07777, geteuid());
	if (!(st.st_mode & 0001))
		return error_set(err, -EPERM,
			"tier %s: %s: users can not enter it (mode %04o), expected "
			"0711",
			tier->name, tier->path, st.st_mode & 07777);
	return take_fd(fd);
}

static int tier_probe_dax(int fd, struct error *err)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx))
		return error_errno(err, "statx");
	if (!(stx.stx_attributes & STATX_ATTR_DAX))
		return error_set(
			err, -EOPNOTSUPP, "files are not in DAX mode there, and dax = require");
	return 0;
}

static bool tier_is_full(int code)
{
	return code == -ENOSPC || code == -EDQUOT;
}

static int tier_probe_file(const struct conf_tier *tier, int fd, struct error *err)
{
	static const char block[PROBE_BYTES];
	ssize_t written = pwrite(fd, block, sizeof(block), 0);

	if (written < 0 && !tier_is_full(-errno))
		return error_errno(err, "write");
	if (fsync(fd) && !tier_is_full(-errno))
		return error_errno(err, "fsync");
	return tier->dax == CONF_DAX_REQUIRE ? tier_probe_dax(fd, err) : 0;
}

int tier_probe(const struct conf_tier *tier, int tierfd, const char *name, struct error *err)
{
	autofree char *probe = NULL;
	int fd, code;

	if (asprintf(&probe, ".stagetool-probe.%s", name) < 0)
		return error_sys(err, -ENOMEM, "tier %s", tier->name);
	unlinkat(tierfd, probe, 0);
	fd = openat(tierfd, probe, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && tier_is_full(-errno))
		return 0;
	if (fd < 0) {
		code = error_errno(err, "make a file");
	} else {
		code = tier_probe_file(tier, fd, err);
		if (close(fd) && !code && !tier_is_full(-errno))
			code = error_errno(err, "close");
		if (unlinkat(tierfd, probe, 0) && !code)
			code = error_errno(err, "remove a file");
	}
	return error_prefix(err, code, "tier %s: %s", tier->name, tier->path);
}
