#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "copy/file.h"

static int file_open_flags(const struct copy_file *file)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;

	if (!file->blocking)
		flags |= O_NONBLOCK;
	if (!atomic_load_explicit(&file->copy->no_noatime, memory_order_relaxed))
		flags |= O_NOATIME;
	return flags;
}

/* Opens the source. Negative errno without text. */
static int file_open(struct copy_file *file, int dirfd)
{
	struct copy *copy = file->copy;
	unsigned attempt = 0;

	while (true) {
		int flags = file_open_flags(file);

		file->src = openat(dirfd, file->entry.src_name, flags);
		if (file->src >= 0)
			return fstat(file->src, &file->entry.st) ? -errno : 0;
		if (errno == EPERM && flags & O_NOATIME)
			atomic_store_explicit(&copy->no_noatime, true, memory_order_relaxed);
		else if (errno != EINTR && !copy_relieve_fds(copy, -errno, &attempt))
			return -errno;
	}
}

void copy_file_end_group(struct copy_file *file)
{
	struct copy_entry entry = file->entry;

	if (!file->leads)
		return;
	entry.st = file->led;
	file->leads = false;
	copy_group_end(&entry, NULL, false);
}

/* It was listed as a file, and is another thing now: whatever it is, it is handled as that. */
static int file_became_other(struct copy_file *file, int dirfd, struct error *err, unsigned worker)
{
	struct copy_entry *entry = &file->entry;

	if (fstatat(dirfd, entry->src_name, &entry->st, AT_SYMLINK_NOFOLLOW))
		return error_errno(err, "stat");
	if (S_ISREG(entry->st.st_mode))
		return error_sys(err, -EAGAIN, "open: it is being exchanged");
	copy_file_end_group(file);
	copy_other_send(entry, worker);
	return COPY_FILE_THROUGH;
}

static int file_open_source(struct copy_file *file, struct error *err, unsigned worker)
{
	int dirfd = copy_entry_pin_source(&file->entry, err);
	uint64_t start = copy_width_start(file->copy, worker);
	int rc;

	if (dirfd < 0)
		return dirfd;
	rc = file_open(file, dirfd);
	copy_width_note(file->copy, COPY_TIMED_OPEN, start, 1);
	if (rc == -ELOOP || rc == -ENXIO || (!rc && !S_ISREG(file->entry.st.st_mode)))
		rc = file_became_other(file, dirfd, err, worker);
	else if (rc < 0)
		error_sys(err, rc, "open");
	copy_entry_unpin_source(&file->entry);
	return rc;
}

static bool file_is_pseudo(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Whether sizes mean nothing on its filesystem, which is asked once. */
static bool file_is_stream(const struct copy_file *file)
{
	enum { ASKED = 1, PSEUDO = 2 };
	struct known *known = &file->copy->known;
	dev_t dev = file->entry.st.st_dev;
	unsigned flags = known_flags(known, dev, dev);

	if (!(flags & ASKED)) {
		flags = ASKED | (file_is_pseudo(file->src) ? PSEUDO : 0);
		known_note(known, dev, dev, flags);
	}
	return flags & PSEUDO;
}

static bool file_is_on_local(const struct copy_file *file)
{
	enum { ASKED = 4, LOCAL = 8 };
	struct known *known = &file->copy->known;
	dev_t dev = file->entry.dir->place.dev;
	unsigned flags = known_flags(known, dev, dev);
	struct statfs fs;

	if (flags & ASKED || fstatfs(file->dst, &fs))
		return flags & LOCAL;
	flags = ASKED;
	switch ((unsigned long)fs.f_type & 0xffffffff) {
	case TMPFS_MAGIC:
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
		flags |= LOCAL;
	}
	known_note(known, dev, dev, flags);
	return flags & LOCAL;
}

/* What was made is as the one before it that was made with the same mode, in a directory that nobody else
 * can get into yet: it need not be looked at. Its inode number is then not known, which only matters where
 * replies get lost, or a caller or other names of the file want it. */
static bool file_is_usual(const struct copy_file *file)
{
	const struct copy_dir *dir = file->entry.dir;
	const struct copy_hooks *hooks = &file->copy->hooks;

	return dir->made && !file->leads && (hooks->blind || !hooks->outcome) &&
	       file_is_on_local(file);
}

static int file_look_at_made(struct copy_file *file, mode_t mode, struct error *err)
{
	struct copy_usual *usual = &file->entry.dir->usual;
	bool can_be_usual = file_is_usual(file);
	int unknown = 0;

	if (can_be_usual && atomic_load_explicit(&usual->state, memory_order_acquire) == 2 &&
		usual->asked == mode) {
		file->made = (struct stat){ .st_dev = file->entry.dir->place.dev, .st_nlink = 1,
			.st_mode = usual->mode, .st_uid = usual->uid, .st_gid = usual->gid };
		return 0;
	}
	if (fstat(file->dst, &file->made))
		return error_errno(err, "fstat");
	if (can_be_usual && atomic_compare_exchange_strong(&usual->state, &unknown, 1)) {
		usual->asked = mode;
		usual->mode = file->made.st_mode;
		usual->uid = file->made.st_uid;
		usual->gid = file->made.st_gid;
		atomic_store_explicit(&usual->state, 2, memory_order_release);
	}
	return 0;
}

/* Makes the destination: under its final name where nobody looks and the name is free, else under a
 * temporary one. */
static int file_create(struct copy_file *file, mode_t mode, struct error *err)
{
	struct copy *copy = file->copy;
	int flags = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC |
		    (copy->options.verify ? O_RDWR : O_WRONLY);
	unsigned attempt = 0;
	int rc = 0;

	file->temporary = copy->options.publish;
	do {
		if (!file->temporary) {
			file->dst = openat(file->dirfd, file->entry.dst_name, flags, mode);
			if (file->dst >= 0)
				break;
			rc = errno == EEXIST ? -EEXIST : error_errno(err, "create");
			if (rc == -EEXIST)
				file->temporary = true;
		}
		if (file->temporary)
			rc = file->dst =
				publish_create(copy->publish, file->dirfd, mode, file->temp, err);
	} while (file->dst < 0 && copy_relieve_fds(copy, rc, &attempt));
	if (file->dst < 0)
		return rc;
	file->created = true;
	return file_look_at_made(file, mode, err);
}

int copy_file_make(struct copy_file *file, struct error *err, unsigned worker)
{
	struct copy_dir *dir = file->entry.dir;
	unsigned crowd;
	uint64_t start;
	int rc;

	file->dirfd = copy_dir_pin(dir, worker, err);
	if (file->dirfd < 0)
		return file->dirfd;
	crowd = atomic_fetch_add_explicit(&dir->naming, 1, memory_order_relaxed) + 1;
	start = copy_width_start(file->copy, worker);
	rc = file_create(file, meta_create_mode(file->copy->meta, &file->source, &dir->place), err);
	copy_width_note(file->copy, COPY_TIMED_CREATE, start, crowd);
	atomic_fetch_sub_explicit(&dir->naming, 1, memory_order_relaxed);
	if (rc == -ENOSPC || rc == -EDQUOT)
		copy_no_space(file->copy, file->dirfd, true, err);
	return rc;
}

/* The bytes that the copy may bring in all. */
int copy_file_plan(struct copy_file *file, uint64_t size, struct error *err)
{
	uint64_t max = file->copy->options.max_bytes;

	if (!max)
		return 0;
	file->planned += size;
	if (atomic_fetch_add_explicit(&file->copy->planned, size, memory_order_relaxed) + size <=
		max)
		return 0;
	error_set(err, -ENOSPC, "no space left: the limit of %llu bytes is reached",
		(unsigned long long)max);
	copy_stop(file->copy, err);
	return -ENOSPC;
}

int copy_file_begin(struct copy_file *file, struct error *err, unsigned worker)
{
	int rc;

	if (copy_stopped(file->copy))
		return error_sys(err, -ECANCELED, "stopped");
	file->of_source = true;
	rc = file_open_source(file, err, worker);
	if (rc)
		return rc;
	file->of_source = false;
	if (file->leads && (file->led.st_ino != file->entry.st.st_ino ||
				   file->led.st_dev != file->entry.st.st_dev))
		copy_file_end_group(file);
	if (file->entry.st.st_nlink > 1 && !file->leads) {
		if (copy_group_claim(&file->entry, false, worker) == COPY_CLAIM_THROUGH)
			return COPY_FILE_THROUGH;
		file->leads = true;
		file->led = file->entry.st;
	}
	rc = copy_file_plan(file,
		range_has_holes(&file->entry.st) ? (uint64_t)file->entry.st.st_blocks * 512 :
						   (uint64_t)file->entry.st.st_size,
		err);
	if (rc)
		return rc;
	file->stream = file_is_stream(file);
	meta_read(file->copy->meta, file->src, &file->entry.st, &file->source);
	file->have_source = true;
	return copy_file_make(file, err, worker);
}
