#include "archive/pack_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/acl.h"
#include "base/cleanup.h"

static la_ssize_t write_sink(struct archive *archive, void *ctx, const void *data, size_t size)
{
	struct pack *pack = ctx;

	(void)archive;
	return sink_write(&pack->sink, data, size, &pack->sunk) < 0 ? -1 : (la_ssize_t)size;
}

/* What libarchive says went wrong, or why the sink did. */
static int write_error(const struct pack *pack, struct error *err)
{
	const char *text = archive_error_string(pack->archive);

	if (pack->sunk.code)
		return error_set(err, pack->sunk.code, "%s", pack->sunk.text);
	return error_set(err, -EIO, "%s", text ? text : "it can not be written");
}

int pack_write_begin(struct pack *pack, struct error *err)
{
	int status;

	pack->archive = archive_write_new();
	pack->entry = archive_entry_new();
	if (!pack->archive || !pack->entry)
		return error_sys(err, -ENOMEM, "packing");
	status = pack->options.format->zip ? archive_write_set_format_zip(pack->archive) :
					     archive_write_set_format_pax(pack->archive);
	/* GNU tar knows these attributes in one form only, and warns of the other. */
	if (status == ARCHIVE_OK && !pack->options.format->zip)
		status = archive_write_set_format_option(
			pack->archive, "pax", "xattrheader", "SCHILY");
	if (status == ARCHIVE_OK)
		status = archive_write_set_bytes_per_block(pack->archive, 0);
	if (status == ARCHIVE_OK)
		status = archive_write_open(pack->archive, pack, NULL, write_sink, NULL);
	return status == ARCHIVE_OK ? 0 : write_error(pack, err);
}

int pack_write_end(struct pack *pack, struct error *err)
{
	int rc = archive_write_close(pack->archive) == ARCHIVE_OK ? 0 : write_error(pack, err);

	archive_write_free(pack->archive);
	return rc ? rc : sink_finish(&pack->sink, err);
}

/* A tar archive has a time as a decimal number; libarchive writes the part behind the point as it is, and so before
 * 1970 as if it went forward. */
static void set_mtime(struct pack *pack, const struct timespec *time)
{
	time_t seconds = time->tv_sec;
	long nanoseconds = time->tv_nsec;

	if (!pack->options.format->zip && seconds < 0 && nanoseconds) {
		seconds++;
		nanoseconds = 1000000000 - nanoseconds;
	}
	/* -0.25 can not be said so. */
	if (!seconds && time->tv_sec < 0) {
		seconds = -1;
		nanoseconds = 0;
	}
	archive_entry_set_mtime(pack->entry, seconds, nanoseconds);
}

static void set_values(struct pack *pack, struct pack_entry *from)
{
	struct error err = ERROR_INIT;
	int rc = 0;

	if (pack->options.format->zip) {
		pack->lost_values += from->n_values > 0;
		return;
	}
	for (size_t i = 0; i < from->n_values; i++) {
		const struct meta_value *value = &from->values[i];

		if (!strcmp(value->name, "system.posix_acl_access"))
			rc = acl_to_archive(pack->entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS,
				value->value, value->size, &err);
		else if (!strcmp(value->name, "system.posix_acl_default"))
			rc = acl_to_archive(pack->entry, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT,
				value->value, value->size, &err);
		else
			archive_entry_xattr_add_entry(
				pack->entry, value->name, value->value, value->size);
	}
	if (rc)
		pack_tell(pack, from, COPY_ATTRIBUTE, &err);
}

/* Fills entry but for what is special to its kind. */
static int set_entry(struct pack *pack, struct pack_entry *from, struct error *err)
{
	autofree char *path = pack_entry_path(from);

	if (!path)
		return error_sys(err, -ENOMEM, "packing");
	archive_entry_clear(pack->entry);
	archive_entry_set_pathname(pack->entry, *path ? path : ".");
	archive_entry_set_mode(pack->entry, from->st.st_mode);
	archive_entry_set_uid(pack->entry, from->st.st_uid);
	archive_entry_set_gid(pack->entry, from->st.st_gid);
	archive_entry_set_size(pack->entry, S_ISREG(from->st.st_mode) ? from->st.st_size : 0);
	set_mtime(pack, &from->st.st_mtim);
	if (from->target)
		archive_entry_set_symlink(pack->entry, from->target);
	set_values(pack, from);
	return 0;
}

/* The first name of a file that has several: true, and the entry is a link to it; else it is the first, or alone. */
static bool set_link(struct pack *pack, struct pack_entry *from)
{
	struct links_file *file;
	bool linked = false;

	if (from->st.st_nlink < 2 || S_ISDIR(from->st.st_mode))
		return false;
	file = links_lock(pack->links, &from->st, 1);
	if (!file)
		return false;
	if (!file->data) {
		file->data = pack_entry_path(from);
	} else if (pack->options.format->zip) {
		pack->lost_links++;
	} else {
		archive_entry_set_hardlink(pack->entry, file->data);
		archive_entry_set_size(pack->entry, 0);
		linked = true;
	}
	if (file->seen >= file->names) {
		free(file->data);
		file->data = NULL;
	}
	links_unlock(pack->links, file);
	return linked;
}

/* It is not in the archive after all: nothing may be a link to it. */
static void drop_link(struct pack *pack, const struct pack_entry *from)
{
	struct links_file *file =
		from->st.st_nlink > 1 ? links_lock(pack->links, &from->st, 0) : NULL;

	if (!file)
		return;
	free(file->data);
	file->data = NULL;
	links_unlock(pack->links, file);
}

/* Where a file has data, for a format that can say so. How much there is. */
static uint64_t set_sparse(struct pack *pack, int fd, const struct stat *st)
{
	off_t data = 0, hole = 0;
	uint64_t sum = 0;

	if (pack->options.format->zip || (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size)
		return (uint64_t)st->st_size;
	while ((data = lseek(fd, hole, SEEK_DATA)) >= 0 && data < st->st_size) {
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || hole > st->st_size)
			hole = st->st_size;
		archive_entry_sparse_add_entry(pack->entry, data, hole - data);
		sum += (uint64_t)(hole - data);
	}
	/* All of it is a hole. */
	if (data < 0 && errno == ENXIO && hole == 0)
		archive_entry_sparse_add_entry(pack->entry, st->st_size, 0);
	return sum;
}

static int write_header(struct pack *pack, struct error *err)
{
	int status = archive_write_header(pack->archive, pack->entry);

	/* It warns of names that are not ASCII, and writes them as they are. */
	return status >= ARCHIVE_WARN ? 0 : write_error(pack, err);
}

static int write_bytes(struct pack *pack, const char *data, size_t size, struct error *err)
{
	while (size) {
		la_ssize_t n = archive_write_data(pack->archive, data, size);

		if (n <= 0)
			return write_error(pack, err);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* The header has gone out: what can not be read now spoils the archive. */
static int write_pieces(struct pack *pack, const struct pack_entry *from, int fd, uint64_t data,
	struct error *err)
{
	uint64_t size = (uint64_t)from->st.st_size, at = 0;
	struct stat now;
	int rc = 0;

	while (at < size && !rc) {
		size_t want = size - at < PACK_PIECE ? (size_t)(size - at) : PACK_PIECE;
		ssize_t n = pread(fd, pack->piece, want, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, "read");
		if (!n)
			return error_set(err, -ESTALE, "it became shorter while it was read");
		if (pack_stopped(pack))
			return error_sys(err, -ECANCELED, "stopped");
		rc = write_bytes(pack, pack->piece, (size_t)n, err);
		at += (uint64_t)n;
		/* Holes are not counted. */
		pack->bytes += data < (uint64_t)n ? data : (uint64_t)n;
		data -= data < (uint64_t)n ? data : (uint64_t)n;
	}
	if (!rc && fstat(fd, &now) < 0)
		rc = error_errno(err, "stat");
	if (!rc && (now.st_mtim.tv_sec != from->st.st_mtim.tv_sec ||
			   now.st_mtim.tv_nsec != from->st.st_mtim.tv_nsec ||
			   now.st_size != from->st.st_size))
		rc = error_set(err, -ESTALE, "it changed while it was read");
	return rc;
}

/* One that is too large to be read ahead. 1: it is told to be missing. */
static int write_large(struct pack *pack, struct pack_entry *from, struct error *err)
{
	autoclose int fd = pack_read_open(from, 0);
	struct error why = ERROR_INIT;
	struct stat st;
	uint64_t data;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != from->st.st_ino ||
		st.st_dev != from->st.st_dev) {
		error_sys(&why, fd < 0 ? fd : -ESTALE, "open");
		pack_tell(pack, from,
			fd == -ENOENT ? COPY_VANISHED :
			fd < 0	      ? COPY_FAILED :
					COPY_CHANGED,
			&why);
		drop_link(pack, from);
		return 1;
	}
	from->st = st;
	rc = set_entry(pack, from, err);
	if (rc)
		return rc;
	data = set_sparse(pack, fd, &st);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	rc = write_header(pack, err);
	if (!rc)
		rc = write_pieces(pack, from, fd, data, err);
	return rc;
}

static int write_kind(struct pack *pack, struct pack_entry *from, struct error *err)
{
	int rc = set_entry(pack, from, err);

	if (rc)
		return rc;
	if (!set_link(pack, from) && S_ISREG(from->st.st_mode) && !from->data)
		return write_large(pack, from, err);
	rc = write_header(pack, err);
	if (!rc && from->data && archive_entry_size(pack->entry)) {
		rc = write_bytes(pack, from->data, (size_t)from->st.st_size, err);
		pack->bytes += (uint64_t)from->st.st_size;
	}
	return rc;
}

static void write_count(struct pack *pack, const struct pack_entry *from)
{
	if (S_ISREG(from->st.st_mode))
		pack->files++;
	else if (S_ISDIR(from->st.st_mode))
		pack->directories++;
	else if (S_ISLNK(from->st.st_mode))
		pack->symlinks++;
	else
		pack->others++;
}

/* Whether it is told instead of written. */
static bool write_refuses(struct pack *pack, struct pack_entry *entry)
{
	mode_t mode = entry->st.st_mode;
	struct error err = ERROR_INIT;

	if (entry->code) {
		pack_tell(pack, entry,
			entry->code == -ENOENT ? COPY_VANISHED :
			entry->code == -ESTALE ? COPY_CHANGED :
						 COPY_FAILED,
			&entry->error);
		return true;
	}
	if (S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) ||
		(S_ISFIFO(mode) && !pack->options.format->zip))
		return false;
	error_set(&err, -EOPNOTSUPP, "%s is not packed",
		S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device");
	pack_tell(pack, entry, COPY_SPECIAL, &err);
	return true;
}

int pack_write_entry(struct pack *pack, struct pack_entry *entry, struct error *err)
{
	int rc;

	if (entry->code == -ECANCELED)
		return error_sys(err, -ECANCELED, "stopped");
	if (write_refuses(pack, entry))
		return 0;
	if (entry->attribute.code)
		pack_tell(pack, entry, COPY_ATTRIBUTE, &entry->attribute);
	rc = write_kind(pack, entry, err);
	if (rc < 0) {
		autofree char *path = pack_entry_path(entry);

		return error_prefix(err, rc, "%s", path ? path : entry->name);
	}
	if (rc == 0)
		write_count(pack, entry);
	return 0;
}
