/*
 * A filesystem that is slow per operation, as a busy shared one is: passes everything through to a
 * directory and lets each request of the kernel wait first. Requests wait side by side. It counts
 * them by kind: what a tool costs a server. A node is a name below its parent and holds no
 * descriptor, so that the number of files has no limit; two names of one file are two nodes.
 *
 *	slowfs DIRECTORY MOUNTPOINT MICROSECONDS
 *
 * Runs in the foreground until it is unmounted. "getfattr --only-values -n user.slowfs MOUNTPOINT" prints
 * the counts since the last setfattr of that name.
 */
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "bench/slowfs_node.h"

#define CONTROL "user.slowfs"
#define CACHED_SECONDS 1.0
#define THREADS 256
#define IO_SIZE (1 << 20)

enum kind {
	LOOKUP, GETATTR, SETATTR, OPEN, CREATE, READ, WRITE, RELEASE, OPENDIR, READDIR, RELEASEDIR,
	MKDIR, REMOVE, RENAME, LINK, MAKE, READLINK, XATTR, STATFS, FSYNC, LSEEK, FLUSH, KINDS
};
static const char *const kind_names[KINDS] = { "lookup", "getattr", "setattr", "open", "create",
	"read", "write", "release", "opendir", "readdir", "releasedir", "mkdir", "remove", "rename",
	"link", "make", "readlink", "xattr", "statfs", "fsync", "lseek", "flush" };

static atomic_ulong counts[KINDS];
static long delay_us;

static void request(enum kind kind)
{
	struct timespec wait = { delay_us / 1000000, delay_us % 1000000 * 1000 };

	atomic_fetch_add(&counts[kind], 1);
	if (delay_us)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
}

/* The path of a node, or of name below it, relative to the directory that is passed through. */
struct place {
	char path[4096];
};

static const char *at(struct place *place, fuse_ino_t ino, const char *name)
{
	node_path(ino, name, place->path, sizeof(place->path));
	return place->path;
}

static void reply(fuse_req_t req, int rc)
{
	fuse_reply_err(req, rc < 0 ? errno : 0);
}

static int entry_fill(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
	struct place place;

	memset(entry, 0, sizeof(*entry));
	entry->attr_timeout = entry->entry_timeout = CACHED_SECONDS;
	if (fstatat(node_root, at(&place, parent, name), &entry->attr, AT_SYMLINK_NOFOLLOW))
		return -1;
	entry->ino = node_get(parent, name);
	return 0;
}

/* Answers with what has been made, which belongs to who asked for it. */
static void made(fuse_req_t req, fuse_ino_t parent, const char *name, int rc)
{
	const struct fuse_ctx *who = fuse_req_ctx(req);
	struct fuse_entry_param entry;
	struct place place;

	if (!rc && (who->uid || who->gid))
		rc = fchownat(node_root, at(&place, parent, name), who->uid, who->gid,
			AT_SYMLINK_NOFOLLOW);
	if (rc || entry_fill(parent, name, &entry))
		fuse_reply_err(req, errno);
	else
		fuse_reply_entry(req, &entry);
}

static void slow_init(void *data, struct fuse_conn_info *connection)
{
	(void)data;
	if (connection->capable & FUSE_CAP_PARALLEL_DIROPS)
		connection->want |= FUSE_CAP_PARALLEL_DIROPS;
	connection->max_background = THREADS;
	connection->congestion_threshold = THREADS * 3 / 4;
	connection->max_write = connection->max_read = connection->max_readahead = IO_SIZE;
}

static void slow_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry;

	request(LOOKUP);
	if (entry_fill(parent, name, &entry))
		fuse_reply_err(req, errno);
	else
		fuse_reply_entry(req, &entry);
}

static void slow_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	node_put(ino, count);
	fuse_reply_none(req);
}

static void attributes(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct place place;
	struct stat st;
	int rc = file ? fstat((int)file->fh, &st) :
		fstatat(node_root, at(&place, ino, NULL), &st, AT_SYMLINK_NOFOLLOW);

	if (rc)
		fuse_reply_err(req, errno);
	else
		fuse_reply_attr(req, &st, CACHED_SECONDS);
}

static void slow_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	request(GETATTR);
	attributes(req, ino, file);
}

static int set_times(const char *path, const struct stat *attr, int set)
{
	struct timespec times[2] = { { 0, UTIME_OMIT }, { 0, UTIME_OMIT } };

	if (set & FUSE_SET_ATTR_ATIME_NOW)
		times[0].tv_nsec = UTIME_NOW;
	else if (set & FUSE_SET_ATTR_ATIME)
		times[0] = attr->st_atim;
	if (set & FUSE_SET_ATTR_MTIME_NOW)
		times[1].tv_nsec = UTIME_NOW;
	else if (set & FUSE_SET_ATTR_MTIME)
		times[1] = attr->st_mtim;
	return utimensat(node_root, path, times, AT_SYMLINK_NOFOLLOW);
}

static int set_size(const char *path, off_t size)
{
	int fd = openat(node_root, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	int rc = fd < 0 ? -1 : ftruncate(fd, size);

	if (fd >= 0)
		close(fd);
	return rc;
}

static void slow_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set,
	struct fuse_file_info *file)
{
	struct place place;
	const char *path = at(&place, ino, NULL);
	uid_t uid = set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1;
	gid_t gid = set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1;
	int rc = 0;

	request(SETATTR);
	if (set & FUSE_SET_ATTR_MODE)
		rc = file ? fchmod((int)file->fh, attr->st_mode) :
			fchmodat(node_root, path, attr->st_mode, 0);
	if (!rc && set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		rc = fchownat(node_root, path, uid, gid, AT_SYMLINK_NOFOLLOW);
	if (!rc && set & FUSE_SET_ATTR_SIZE)
		rc = file ? ftruncate((int)file->fh, attr->st_size) : set_size(path, attr->st_size);
	if (!rc && set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME))
		rc = set_times(path, attr, set);
	if (rc)
		fuse_reply_err(req, errno);
	else
		attributes(req, ino, file);
}

static void slow_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct place place;
	char target[4096];
	ssize_t size;

	request(READLINK);
	size = readlinkat(node_root, at(&place, ino, NULL), target, sizeof(target) - 1);
	if (size < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	target[size] = '\0';
	fuse_reply_readlink(req, target);
}

static void slow_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	struct place place;

	request(MAKE);
	made(req, parent, name, mknodat(node_root, at(&place, parent, name), mode, dev));
}

static void slow_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct place place;

	request(MKDIR);
	made(req, parent, name, mkdirat(node_root, at(&place, parent, name), mode));
}

static void slow_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct place place;

	request(MAKE);
	made(req, parent, name, symlinkat(target, node_root, at(&place, parent, name)));
}

static void slow_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct place from, to;

	request(LINK);
	made(req, parent, name,
		linkat(node_root, at(&from, ino, NULL), node_root, at(&to, parent, name), 0));
}

static void remove_entry(fuse_req_t req, fuse_ino_t parent, const char *name, int flags)
{
	struct place place;
	int rc;

	request(REMOVE);
	rc = unlinkat(node_root, at(&place, parent, name), flags);
	if (!rc)
		node_detach(parent, name);
	reply(req, rc);
}

static void slow_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, 0);
}

static void slow_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, AT_REMOVEDIR);
}

static void slow_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to_parent,
	const char *to_name, unsigned flags)
{
	struct place from, to;
	int rc;

	request(RENAME);
	rc = renameat2(node_root, at(&from, parent, name), node_root,
		at(&to, to_parent, to_name), flags);
	if (!rc)
		node_move(parent, name, to_parent, to_name, flags & RENAME_EXCHANGE);
	reply(req, rc);
}

static void slow_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct place place;
	int fd;

	request(OPEN);
	fd = openat(node_root, at(&place, ino, NULL), (file->flags & ~O_APPEND) | O_CLOEXEC);
	if (fd < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	file->fh = (uint64_t)fd;
	fuse_reply_open(req, file);
}

static void slow_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *file)
{
	const struct fuse_ctx *who = fuse_req_ctx(req);
	struct fuse_entry_param entry;
	struct place place;
	int fd;

	request(CREATE);
	fd = openat(node_root, at(&place, parent, name),
		(file->flags & ~O_APPEND) | O_CREAT | O_CLOEXEC, mode);
	if (fd < 0 || ((who->uid || who->gid) && fchown(fd, who->uid, who->gid)) ||
		entry_fill(parent, name, &entry)) {
		fuse_reply_err(req, errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	file->fh = (uint64_t)fd;
	fuse_reply_create(req, &entry, file);
}

static void slow_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	struct fuse_file_info *file)
{
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(size);

	(void)ino;
	request(READ);
	data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	data.buf[0].fd = (int)file->fh;
	data.buf[0].pos = offset;
	fuse_reply_data(req, &data, FUSE_BUF_SPLICE_MOVE);
}

static void slow_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *in, off_t offset,
	struct fuse_file_info *file)
{
	struct fuse_bufvec out = FUSE_BUFVEC_INIT(fuse_buf_size(in));
	ssize_t size;

	(void)ino;
	request(WRITE);
	out.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	out.buf[0].fd = (int)file->fh;
	out.buf[0].pos = offset;
	size = fuse_buf_copy(&out, in, 0);
	if (size < 0)
		fuse_reply_err(req, (int)-size);
	else
		fuse_reply_write(req, (size_t)size);
}

/* Once: the kernel does not ask again after ENOSYS. */
static void slow_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)ino;
	(void)file;
	request(FLUSH);
	fuse_reply_err(req, ENOSYS);
}

static void slow_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)ino;
	request(RELEASE);
	reply(req, close((int)file->fh));
}

static void slow_fsync(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *file)
{
	(void)ino;
	request(FSYNC);
	reply(req, data ? fdatasync((int)file->fh) : fsync((int)file->fh));
}

static void slow_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct place place;
	DIR *dir = NULL;
	int fd;

	request(OPENDIR);
	fd = openat(node_root, at(&place, ino, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		dir = fdopendir(fd);
	if (!dir) {
		fuse_reply_err(req, errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	file->fh = (uint64_t)(uintptr_t)dir;
	fuse_reply_open(req, file);
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* One entry into the rest of a buffer: the bytes used, 0 where it does not fit. */
static size_t list_entry(fuse_req_t req, fuse_ino_t ino, const struct dirent *entry, char *buffer,
	size_t left, bool plus)
{
	struct fuse_entry_param param = { .attr.st_ino = entry->d_ino,
		.attr.st_mode = (mode_t)entry->d_type << 12 };
	size_t size;

	if (!plus) {
		size = fuse_add_direntry(req, buffer, left, entry->d_name, &param.attr,
			entry->d_off);
		return size > left ? 0 : size;
	}
	if (fuse_add_direntry_plus(req, NULL, 0, entry->d_name, NULL, 0) > left)
		return 0;
	if (!is_dot(entry->d_name) && entry_fill(ino, entry->d_name, &param))
		param.ino = 0;
	return fuse_add_direntry_plus(req, buffer, left, entry->d_name, &param, entry->d_off);
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	struct fuse_file_info *file, bool plus)
{
	DIR *dir = (DIR *)(uintptr_t)file->fh; /* NOLINT: as it was given to the kernel */
	char *buffer = malloc(size);
	size_t used = 0, one;
	struct dirent *entry;

	request(READDIR);
	if (!buffer) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (offset != telldir(dir))
		seekdir(dir, offset);
	while ((entry = readdir(dir))) {
		one = list_entry(req, ino, entry, buffer + used, size - used, plus);
		if (!one)
			break;
		used += one;
	}
	fuse_reply_buf(req, buffer, used);
	free(buffer);
}

static void slow_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	struct fuse_file_info *file)
{
	list(req, ino, size, offset, file, false);
}

static void slow_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	struct fuse_file_info *file)
{
	list(req, ino, size, offset, file, true);
}

static void slow_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)ino;
	request(RELEASEDIR);
	reply(req, closedir((DIR *)(uintptr_t)file->fh));
}

static void slow_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *file)
{
	(void)ino;
	(void)data;
	request(FSYNC);
	reply(req, fsync(dirfd((DIR *)(uintptr_t)file->fh)));
}

static void slow_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;

	(void)ino;
	request(STATFS);
	if (fstatvfs(node_root, &st))
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}

static void counts_reply(fuse_req_t req, size_t size)
{
	char text[KINDS * 32];
	size_t used = 0;

	for (int i = 0; i < KINDS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %lu\n",
			kind_names[i], atomic_load(&counts[i]));
	if (!size)
		fuse_reply_xattr(req, used);
	else if (size < used)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, text, used);
}

/* The path that the calls for extended attributes take: they have no "at". */
static const char *xattr_path(struct place *place, fuse_ino_t ino)
{
	char below[4096];

	node_path(ino, NULL, below, sizeof(below));
	snprintf(place->path, sizeof(place->path), "/proc/self/fd/%d/%.4000s", node_root, below);
	return place->path;
}

static void value_reply(fuse_req_t req, ssize_t got, const char *value, size_t size)
{
	if (got < 0)
		fuse_reply_err(req, errno);
	else if (!size)
		fuse_reply_xattr(req, (size_t)got);
	else
		fuse_reply_buf(req, value, (size_t)got);
}

static void slow_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct place place;
	char value[65536];

	if (ino == FUSE_ROOT_ID && !strcmp(name, CONTROL)) {
		counts_reply(req, size);
		return;
	}
	request(XATTR);
	value_reply(req,
		lgetxattr(xattr_path(&place, ino), name, value,
			size < sizeof(value) ? size : sizeof(value)),
		value, size);
}

static void slow_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct place place;
	char names[65536];

	request(XATTR);
	value_reply(req,
		llistxattr(xattr_path(&place, ino), names,
			size < sizeof(names) ? size : sizeof(names)),
		names, size);
}

static void slow_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
	size_t size, int flags)
{
	struct place place;

	if (ino == FUSE_ROOT_ID && !strcmp(name, CONTROL)) {
		for (int i = 0; i < KINDS; i++)
			atomic_store(&counts[i], 0);
		fuse_reply_err(req, 0);
		return;
	}
	request(XATTR);
	reply(req, lsetxattr(xattr_path(&place, ino), name, value, size, flags));
}

static void slow_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct place place;

	request(XATTR);
	reply(req, lremovexattr(xattr_path(&place, ino), name));
}

static void slow_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
	struct fuse_file_info *file)
{
	off_t found;

	(void)ino;
	request(LSEEK);
	found = lseek((int)file->fh, offset, whence);
	if (found < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_lseek(req, found);
}

static const struct fuse_lowlevel_ops operations = {
	.init = slow_init, .lookup = slow_lookup, .forget = slow_forget, .getattr = slow_getattr,
	.setattr = slow_setattr, .readlink = slow_readlink, .mknod = slow_mknod,
	.mkdir = slow_mkdir, .unlink = slow_unlink, .rmdir = slow_rmdir, .symlink = slow_symlink,
	.rename = slow_rename, .link = slow_link, .open = slow_open, .read = slow_read,
	.write_buf = slow_write_buf, .flush = slow_flush, .release = slow_release,
	.fsync = slow_fsync, .opendir = slow_opendir, .readdir = slow_readdir,
	.readdirplus = slow_readdirplus, .releasedir = slow_releasedir,
	.fsyncdir = slow_fsyncdir, .statfs = slow_statfs, .setxattr = slow_setxattr,
	.getxattr = slow_getxattr, .listxattr = slow_listxattr,
	.removexattr = slow_removexattr, .create = slow_create, .lseek = slow_lseek,
};

static int serve(struct fuse_session *session, const char *mountpoint)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int rc;

	if (!config || fuse_set_signal_handlers(session) || fuse_session_mount(session, mountpoint))
		return 1;
	fuse_loop_cfg_set_clone_fd(config, 1);
	fuse_loop_cfg_set_idle_threads(config, THREADS);
	fuse_loop_cfg_set_max_threads(config, THREADS);
	rc = fuse_session_loop_mt(session, config);
	fuse_session_unmount(session);
	fuse_loop_cfg_destroy(config);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	char *words[] = { argv[0], (char *)"-o",
		(char *)"allow_other,default_permissions,max_read=1048576,fsname=slowfs", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	struct fuse_session *session;
	int rc;

	if (argc != 4) {
		fprintf(stderr, "usage: slowfs DIRECTORY MOUNTPOINT MICROSECONDS\n");
		return 2;
	}
	delay_us = strtol(argv[3], NULL, 10);
	node_root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (node_root < 0) {
		perror(argv[1]);
		return 1;
	}
	umask(0);
	session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	if (!session)
		return 1;
	rc = serve(session, argv[2]);
	fuse_session_destroy(session);
	return rc;
}
