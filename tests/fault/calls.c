#include "fault/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* What a shared filesystem says when its server, its link or its quota is gone, and the like. */
#define LOST "EIO ESTALE ETIMEDOUT"
#define FULL "ENOSPC EDQUOT"
#define LOOK "ENOENT EACCES ENOMEM EINTR " LOST
#define OPEN LOOK " EMFILE ENFILE " FULL
#define MAKE "EEXIST EACCES EROFS ENOMEM EMLINK " FULL " " LOST
#define LINK "EACCES EROFS ENOMEM EMLINK ENOENT EXDEV EPERM EOPNOTSUPP " FULL " " LOST
#define MOVE "EINTR EAGAIN ENOMEM " LOST
#define NEWER "ENOSYS EOPNOTSUPP EINVAL EPERM"
#define SET "EPERM EROFS EOPNOTSUPP " FULL " " LOST

static const struct call calls[] = {
	{ "openat", SYS_openat, "a0", OPEN, false },
	{ "openat2", SYS_openat2, "a0", OPEN " EAGAIN ENOSYS EPERM EINVAL", false },
	{ "open_by_handle_at", SYS_open_by_handle_at, "f0", LOOK, false },
	{ "close", SYS_close, "f0", NULL, false },
	{ "close_range", SYS_close_range, "", "ENOSYS EPERM", false },
	{ "read", SYS_read, "f0l2", MOVE, false },
	{ "pread64", SYS_pread64, "f0l2", MOVE, false },
	{ "readv", SYS_readv, "f0", MOVE, false },
	{ "preadv", SYS_preadv, "f0", MOVE, false },
	{ "write", SYS_write, "f0l2", MOVE " EFBIG " FULL, false },
	{ "pwrite64", SYS_pwrite64, "f0l2", MOVE " EFBIG " FULL, false },
	{ "writev", SYS_writev, "f0", MOVE " EFBIG " FULL, false },
	{ "pwritev", SYS_pwritev, "f0", MOVE " EFBIG " FULL, false },
	{ "pwritev2", SYS_pwritev2, "f0", MOVE " EFBIG " FULL " " NEWER, false },
	{ "copy_file_range", SYS_copy_file_range, "f0f2l4", MOVE " EXDEV EFBIG " FULL " " NEWER,
		false },
	{ "sendfile", SYS_sendfile, "f0f1l3", MOVE " " FULL " " NEWER, false },
	{ "splice", SYS_splice, "f0f2l4", MOVE " " FULL " " NEWER, false },
	{ "lseek", SYS_lseek, "f0", "EINVAL EOPNOTSUPP EIO ESTALE", false },
	{ "ftruncate", SYS_ftruncate, "f0", "EINTR EFBIG EPERM " FULL " " LOST, false },
	{ "truncate", SYS_truncate, "p0", "EINTR EFBIG EPERM " FULL " " LOST, false },
	{ "fallocate", SYS_fallocate, "f0", "EINTR " FULL " " LOST " " NEWER, false },
	{ "fadvise64", SYS_fadvise64, "f0", "EINVAL ENOSYS", false },
	{ "readahead", SYS_readahead, "f0", "EINVAL ENOSYS", false },
	{ "fsync", SYS_fsync, "f0", "EINTR EINVAL EROFS " FULL " " LOST, false },
	{ "fdatasync", SYS_fdatasync, "f0", "EINTR EINVAL EROFS " FULL " " LOST, false },
	{ "syncfs", SYS_syncfs, "f0", "ENOSYS " FULL " " LOST, false },
	{ "sync_file_range", SYS_sync_file_range, "f0", "ENOSYS " FULL " " LOST, false },
	{ "msync", SYS_msync, "", "ENOMEM EIO", false },
	{ "newfstatat", SYS_newfstatat, "a0", LOOK, false },
	{ "statx", SYS_statx, "a0", LOOK " ENOSYS EPERM", false },
	{ "fstat", SYS_fstat, "f0", "ENOMEM " LOST, false },
	{ "statfs", SYS_statfs, "p0", LOOK " ENOSYS", false },
	{ "fstatfs", SYS_fstatfs, "f0", "ENOMEM ENOSYS " LOST, false },
	{ "faccessat", SYS_faccessat, "a0", LOOK, false },
	{ "faccessat2", SYS_faccessat2, "a0", LOOK " ENOSYS EPERM", false },
	{ "readlinkat", SYS_readlinkat, "a0", LOOK, false },
	{ "getdents64", SYS_getdents64, "f0", "ENOENT ENOMEM EINTR " LOST, false },
	{ "name_to_handle_at", SYS_name_to_handle_at, "a0", LOOK " EOPNOTSUPP", false },
	{ "mkdirat", SYS_mkdirat, "a0", MAKE, false },
	{ "mknodat", SYS_mknodat, "a0", MAKE " EPERM EOPNOTSUPP", false },
	{ "symlinkat", SYS_symlinkat, "p0a1", MAKE " EPERM", false },
	{ "linkat", SYS_linkat, "a0a2", LINK, false },
	{ "unlinkat", SYS_unlinkat, "a0", "EACCES EBUSY EROFS " LOST, false },
	{ "renameat", SYS_renameat, "a0a2", "EACCES EBUSY EXDEV ENOENT " FULL " " LOST, false },
	{ "renameat2", SYS_renameat2, "a0a2",
		"EACCES EBUSY EXDEV ENOENT ENOSYS EINVAL " FULL " " LOST, false },
	{ "fchmod", SYS_fchmod, "f0", SET, false },
	{ "fchmodat", SYS_fchmodat, "a0", SET " ENOENT", false },
#ifdef SYS_fchmodat2
	{ "fchmodat2", SYS_fchmodat2, "a0", SET " ENOENT ENOSYS", false },
#endif
	{ "fchown", SYS_fchown, "f0", SET, false },
	{ "fchownat", SYS_fchownat, "a0", SET " ENOENT", false },
	{ "utimensat", SYS_utimensat, "a0", SET " ENOENT", false },
	{ "getxattr", SYS_getxattr, "p0", "ERANGE EOPNOTSUPP " LOOK, false },
	{ "lgetxattr", SYS_lgetxattr, "p0", "ERANGE EOPNOTSUPP " LOOK, false },
	{ "fgetxattr", SYS_fgetxattr, "f0", "ERANGE EOPNOTSUPP ENOMEM " LOST, false },
	{ "listxattr", SYS_listxattr, "p0", "ERANGE EOPNOTSUPP " LOOK, false },
	{ "llistxattr", SYS_llistxattr, "p0", "ERANGE EOPNOTSUPP " LOOK, false },
	{ "flistxattr", SYS_flistxattr, "f0", "ERANGE EOPNOTSUPP ENOMEM " LOST, false },
	{ "setxattr", SYS_setxattr, "p0", "ERANGE " SET, false },
	{ "lsetxattr", SYS_lsetxattr, "p0", "ERANGE " SET, false },
	{ "fsetxattr", SYS_fsetxattr, "f0", "ERANGE " SET, false },
	{ "removexattr", SYS_removexattr, "p0", SET, false },
	{ "lremovexattr", SYS_lremovexattr, "p0", SET, false },
	{ "fremovexattr", SYS_fremovexattr, "f0", SET, false },
	{ "ioctl", SYS_ioctl, "f0", "ENOTTY EOPNOTSUPP EINVAL EXDEV EPERM EINTR " FULL " " LOST,
		false },
	{ "fcntl", SYS_fcntl, "f0", "EAGAIN EINTR ENOLCK EMFILE EINVAL", false },
	{ "flock", SYS_flock, "f0", "EINTR ENOLCK EOPNOTSUPP EIO", false },
	{ "dup", SYS_dup, "f0", "EMFILE", false },
	{ "dup3", SYS_dup3, "f0", "EMFILE EBUSY EINTR", false },
	{ "pipe2", SYS_pipe2, "", "EMFILE ENFILE", false },
	{ "socketpair", SYS_socketpair, "", "EMFILE ENFILE ENOMEM", false },
	{ "socket", SYS_socket, "", "EMFILE EACCES", false },
	{ "connect", SYS_connect, "f0", "ECONNREFUSED EINTR ENOENT", false },
	{ "sendmsg", SYS_sendmsg, "f0", "EPIPE EINTR", false },
	{ "sendto", SYS_sendto, "f0", "EPIPE EINTR", false },
	{ "recvmsg", SYS_recvmsg, "f0", "EINTR ENOMEM", false },
	{ "recvfrom", SYS_recvfrom, "f0", "EINTR ENOMEM", false },
	{ "memfd_create", SYS_memfd_create, "", "EMFILE ENOMEM", false },
	{ "eventfd2", SYS_eventfd2, "", "EMFILE ENOMEM", false },
	{ "epoll_create1", SYS_epoll_create1, "", "EMFILE ENOMEM", false },
	{ "epoll_ctl", SYS_epoll_ctl, "f0", "ENOMEM ENOSPC", false },
	{ "epoll_pwait", SYS_epoll_pwait, "f0", "EINTR", false },
	{ "ppoll", SYS_ppoll, "", "EINTR ENOMEM", false },
	{ "pselect6", SYS_pselect6, "", "EINTR ENOMEM", false },
	{ "signalfd4", SYS_signalfd4, "", "EMFILE ENOMEM", false },
	{ "timerfd_create", SYS_timerfd_create, "", "EMFILE ENOMEM", false },
	{ "inotify_init1", SYS_inotify_init1, "", "EMFILE ENOMEM", false },
	{ "inotify_add_watch", SYS_inotify_add_watch, "f0", "ENOSPC ENOMEM", false },
	{ "clone", SYS_clone, "", "EAGAIN ENOMEM", false },
	{ "clone3", SYS_clone3, "", "EAGAIN ENOMEM ENOSYS", false },
	{ "execve", SYS_execve, "p0", "ENOENT EACCES ENOMEM E2BIG", false },
	{ "execveat", SYS_execveat, "a0", "ENOENT EACCES ENOMEM E2BIG", false },
	{ "wait4", SYS_wait4, "", "EINTR", false },
	{ "waitid", SYS_waitid, "", "EINTR", false },
	{ "kill", SYS_kill, "", "ESRCH EPERM", false },
	{ "pidfd_open", SYS_pidfd_open, "", "ENOSYS EMFILE", false },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, "", "ENOSYS ESRCH", false },
	{ "setuid", SYS_setuid, "", "EAGAIN EPERM", false },
	{ "setgid", SYS_setgid, "", "EPERM", false },
	{ "setreuid", SYS_setreuid, "", "EAGAIN EPERM", false },
	{ "setregid", SYS_setregid, "", "EPERM", false },
	{ "setresuid", SYS_setresuid, "", "EAGAIN EPERM", false },
	{ "setresgid", SYS_setresgid, "", "EPERM", false },
	{ "setgroups", SYS_setgroups, "", "EPERM ENOMEM", false },
	{ "capset", SYS_capset, "", "EPERM", false },
	{ "prctl", SYS_prctl, "", "EPERM EINVAL", false },
	{ "setsid", SYS_setsid, "", "EPERM", false },
	{ "setpgid", SYS_setpgid, "", "EPERM EACCES", false },
	{ "setrlimit", SYS_setrlimit, "", "EPERM", false },
	{ "prlimit64", SYS_prlimit64, "", "EPERM", false },
	{ "setpriority", SYS_setpriority, "", "EPERM EACCES", false },
	{ "ioprio_set", SYS_ioprio_set, "", "EPERM ENOSYS", false },
	{ "sched_getaffinity", SYS_sched_getaffinity, "", "EINVAL", true },
	{ "chdir", SYS_chdir, "p0", LOOK, false },
	{ "fchdir", SYS_fchdir, "f0", LOOK, false },
	{ "getcwd", SYS_getcwd, "", "ENOENT ENOMEM", false },
	{ "getrandom", SYS_getrandom, "l1", "EINTR EAGAIN ENOSYS", false },
	{ "mount", SYS_mount, "p1", "EPERM EBUSY ENOMEM ENODEV", false },
	{ "umount2", SYS_umount2, "p0", "EPERM EBUSY", false },
	{ "unshare", SYS_unshare, "", "EPERM ENOSPC ENOMEM", false },
	{ "setns", SYS_setns, "", "EPERM ENOMEM", false },
	{ "quotactl", SYS_quotactl, "p1", "EPERM ENOSYS ESRCH", false },
	{ "mmap", SYS_mmap, "f4", "ENOMEM ENODEV EAGAIN", false },
	{ "mremap", SYS_mremap, "", "ENOMEM", false },
	{ "brk", SYS_brk, "", "ENOMEM", false },
	{ "munmap", SYS_munmap, "", NULL, true },
	{ "mprotect", SYS_mprotect, "", "ENOMEM", false },
	{ "madvise", SYS_madvise, "", "EINVAL EAGAIN", true },
	{ "futex", SYS_futex, "", NULL, true },
	{ "rt_sigaction", SYS_rt_sigaction, "", NULL, true },
	{ "rt_sigprocmask", SYS_rt_sigprocmask, "", NULL, true },
	{ "rt_sigreturn", SYS_rt_sigreturn, "", NULL, true },
	{ "rt_sigtimedwait", SYS_rt_sigtimedwait, "", "EINTR", true },
	{ "sigaltstack", SYS_sigaltstack, "", NULL, true },
	{ "clock_gettime", SYS_clock_gettime, "", NULL, true },
	{ "clock_nanosleep", SYS_clock_nanosleep, "", NULL, true },
	{ "nanosleep", SYS_nanosleep, "", NULL, true },
	{ "gettid", SYS_gettid, "", NULL, true },
	{ "getpid", SYS_getpid, "", NULL, true },
	{ "getppid", SYS_getppid, "", NULL, true },
	{ "getuid", SYS_getuid, "", NULL, true },
	{ "geteuid", SYS_geteuid, "", NULL, true },
	{ "getgid", SYS_getgid, "", NULL, true },
	{ "getegid", SYS_getegid, "", NULL, true },
	{ "getresuid", SYS_getresuid, "", NULL, true },
	{ "getresgid", SYS_getresgid, "", NULL, true },
	{ "getgroups", SYS_getgroups, "", NULL, true },
	{ "umask", SYS_umask, "", NULL, true },
	{ "uname", SYS_uname, "", NULL, true },
	{ "sysinfo", SYS_sysinfo, "", NULL, true },
	{ "sched_yield", SYS_sched_yield, "", NULL, true },
	{ "set_robust_list", SYS_set_robust_list, "", NULL, true },
	{ "rseq", SYS_rseq, "", NULL, true },
	{ "set_tid_address", SYS_set_tid_address, "", NULL, true },
	{ "tgkill", SYS_tgkill, "", NULL, true },
	{ "restart_syscall", SYS_restart_syscall, "", NULL, true },
	{ "exit", SYS_exit, "", NULL, true },
	{ "exit_group", SYS_exit_group, "", NULL, false },
#ifdef SYS_open /* the calls of before *at(), which newer processors do not have */
	{ "open", SYS_open, "p0", OPEN, false },
	{ "creat", SYS_creat, "p0", OPEN, false },
	{ "stat", SYS_stat, "p0", LOOK, false },
	{ "lstat", SYS_lstat, "p0", LOOK, false },
	{ "access", SYS_access, "p0", LOOK, false },
	{ "readlink", SYS_readlink, "p0", LOOK, false },
	{ "getdents", SYS_getdents, "f0", LOOK, false },
	{ "mkdir", SYS_mkdir, "p0", MAKE, false },
	{ "rmdir", SYS_rmdir, "p0", "EACCES EBUSY ENOTEMPTY " LOST, false },
	{ "mknod", SYS_mknod, "p0", MAKE, false },
	{ "symlink", SYS_symlink, "p0p1", MAKE, false },
	{ "link", SYS_link, "p0p1", LINK, false },
	{ "unlink", SYS_unlink, "p0", "EACCES EBUSY EROFS " LOST, false },
	{ "rename", SYS_rename, "p0p1", "EACCES EBUSY EXDEV ENOENT " FULL " " LOST, false },
	{ "chmod", SYS_chmod, "p0", SET, false },
	{ "chown", SYS_chown, "p0", SET, false },
	{ "lchown", SYS_lchown, "p0", SET, false },
	{ "poll", SYS_poll, "", "EINTR ENOMEM", false },
	{ "select", SYS_select, "", "EINTR ENOMEM", false },
	{ "epoll_wait", SYS_epoll_wait, "f0", "EINTR", false },
	{ "pipe", SYS_pipe, "", "EMFILE ENFILE", false },
	{ "dup2", SYS_dup2, "f0", "EMFILE EBUSY EINTR", false },
	{ "fork", SYS_fork, "", "EAGAIN ENOMEM", false },
	{ "vfork", SYS_vfork, "", "EAGAIN ENOMEM", false },
	{ "arch_prctl", SYS_arch_prctl, "", NULL, true },
	{ "getpgrp", SYS_getpgrp, "", NULL, true },
	{ "time", SYS_time, "", NULL, true },
#endif
};

const struct call *calls_find(int number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number == number)
			return &calls[i];
	}
	return NULL;
}

int calls_number(const char *name)
{
	char *end;
	long number;

	if (!strcmp(name, "any"))
		return CALL_ANY;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	}
	number = strtol(name, &end, 10);
	return *name && !*end && number >= 0 && number < CALLS_MAX ? (int)number : -1;
}

const char *calls_name(int number, char *buffer, size_t size)
{
	const struct call *call = calls_find(number);

	if (call)
		return call->name;
	snprintf(buffer, size, "%d", number);
	return buffer;
}

int calls_length_argument(const struct call *call)
{
	const char *letter = call ? strchr(call->arguments, 'l') : NULL;

	return letter ? letter[1] - '0' : -1;
}
