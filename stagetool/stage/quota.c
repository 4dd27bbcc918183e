#include "stage/quota.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443 /* Linux 5.14 */
#endif

#define BLOCK UINT64_C(1024) /* the unit of limits, whatever the filesystem's blocks are */

/* As older kernels want it: by the device. */
static int quota_call_device(int fd, int command, uint32_t id, void *data)
{
	char device[64];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	snprintf(device, sizeof(device), "/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	if (syscall(SYS_quotactl, command, device, id, data) == 0)
		return 0;
	/* filesystems that are on no disk have none of it either */
	return errno == ENOENT || errno == ENOTBLK || errno == ENODEV ? -ENOSYS : -errno;
}

static int quota_call(int fd, int command, uint32_t id, void *data)
{
	int code;

	/* QCMD, whose shift of a signed number has no defined result */
	command = (int)((unsigned)command << SUBCMDSHIFT | PRJQUOTA);
	code = syscall(SYS_quotactl_fd, fd, command, id, data) ? -errno : 0;
	/* what the filesystem lacks is said by the same word as what the kernel lacks */
	return code == -ENOSYS ? quota_call_device(fd, command, id, data) : code;
}

static bool quota_is_off(int code)
{
	return code == -ENOSYS || code == -ESRCH || code == -EOPNOTSUPP;
}

int quota_enforced(int fd, struct error *err)
{
	struct fs_quota_stat stat = { 0 };
	int code = quota_call(fd, Q_XGETQSTAT, 0, &stat);

	if (code && !quota_is_off(code))
		return error_sys(err, code, "quotactl: state");
	if (code || !(stat.qs_flags & FS_QUOTA_PDQ_ENFD))
		return error_set(err, -EOPNOTSUPP,
			"the filesystem does not enforce project quotas (mount option prjquota)");
	return 0;
}

int quota_get(int fd, uint32_t id, struct quota_use *use, struct error *err)
{
	struct if_dqblk quota = { 0 };
	int code = quota_call(fd, Q_GETQUOTA, id, &quota);

	if (code && code != -ENOENT)
		return error_sys(err, code, "quotactl: project %u", id);
	*use = (struct quota_use){ quota.dqb_curspace, quota.dqb_curinodes };
	return 0;
}

int quota_limit(int fd, uint32_t id, uint64_t bytes, struct error *err)
{
	struct if_dqblk quota = {
		.dqb_bhardlimit = bytes / BLOCK + (bytes % BLOCK != 0),
		.dqb_valid = QIF_BLIMITS,
	};
	int code = quota_call(fd, Q_SETQUOTA, id, &quota);

	if (!code)
		return 0;
	return error_sys(
		err, quota_is_off(code) ? -EOPNOTSUPP : code, "quotactl: limit of project %u", id);
}

int quota_join(int dirfd, uint32_t id, struct error *err)
{
	struct fsxattr attributes;

	if (ioctl(dirfd, FS_IOC_FSGETXATTR, &attributes))
		return error_errno(err, "its project: read");
	attributes.fsx_projid = id;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(dirfd, FS_IOC_FSSETXATTR, &attributes))
		return error_errno(err, "project %u: set", id);
	return 0;
}
