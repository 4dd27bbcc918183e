#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/retry.h"
#include "copy/file.h"

void copy_file_undo(struct copy_file *file, unsigned worker)
{
	if (file->have_source)
		meta_source_free(&file->source);
	file->have_source = false;
	if (file->src >= 0)
		close(file->src);
	if (file->dst >= 0)
		close(file->dst);
	file->src = file->dst = -1;
	if (file->created) {
		unlinkat(file->dirfd, file->temporary ? file->temp : file->entry.dst_name, 0);
		copy_count(file->copy, COPY_COUNT_BYTES, -(long)file->sent, worker);
	}
	if (file->planned && !file->finished)
		atomic_fetch_sub_explicit(
			&file->copy->planned, file->planned, memory_order_relaxed);
	file->planned = 0;
	file->created = false;
	file->sent = 0;
	if (file->dirfd >= 0)
		copy_dir_unpin(file->entry.dir);
	file->dirfd = -1;
}

/* What was sent, but not quite as it was. */
struct finish_notes {
	unsigned dropped;
	bool incomplete;
	struct error attribute;
};

static void finish_attributes(struct copy_file *file, struct finish_notes *notes)
{
	notes->attribute.code = 0;
	notes->dropped = 0;
	notes->incomplete =
		meta_apply(file->copy->meta, &file->source, file->dst, &file->made,
			&file->entry.dir->place, &notes->dropped, &notes->attribute) < 0;
}

/* The last moment at which the filesystem can say that a write was lost. */
static int finish_close(struct copy_file *file, struct error *err)
{
	int rc = close(file->dst);

	file->dst = -1;
	return rc && errno != EINTR ? error_errno(err, "close") : 0;
}

static int finish_publish(struct copy_file *file, struct publish_result *result, struct error *err)
{
	struct copy *copy = file->copy;
	struct publish_request request = { file->dirfd, file->entry.dir->place.dev, file->temp,
		file->entry.dst_name, &file->entry.expect, copy->options.conflict,
		copy->options.conflict_suffix, file->made.st_ino };
	int rc;

	atomic_fetch_add_explicit(&file->entry.dir->naming, 1, memory_order_relaxed);
	rc = publish_entry(copy->publish, &request, result, err);
	atomic_fetch_sub_explicit(&file->entry.dir->naming, 1, memory_order_relaxed);

	file->created = false; /* no temporary is left, however it went */
	return rc;
}

static void finish_tell_notes(struct copy_file *file, const struct finish_notes *notes,
	const struct stat *dst, unsigned worker)
{
	if (notes->incomplete)
		copy_entry_tell(&file->entry, COPY_ATTRIBUTE, dst, &notes->attribute, worker);
	if (notes->dropped) {
		struct error why = ERROR_INIT;
		char text[64];

		error_set(&why, -EPERM, "without %s",
			meta_dropped_text(notes->dropped, text, sizeof(text)));
		copy_entry_tell(&file->entry, COPY_DROPPED, dst, &why, worker);
	}
}

/* What the destination is now: after the rename, which changes its ctime. */
static const struct stat *finish_stat(
	struct copy_file *file, const struct publish_result *result, struct stat *dst)
{
	if (file->temporary && file->copy->hooks.outcome && !file->copy->hooks.blind &&
		!fstatat(file->dirfd, result->name, dst, AT_SYMLINK_NOFOLLOW) &&
		(result->same || dst->st_ino == file->made.st_ino))
		return dst;
	return &file->made;
}

static void finish_tell(struct copy_file *file, const struct finish_notes *notes,
	const struct publish_result *result, const struct error *err, unsigned worker)
{
	struct copy_entry *entry = &file->entry;
	const struct stat *dst;
	struct stat now;

	atomic_store_explicit(&entry->dir->touched, true, memory_order_relaxed);
	if (result->fate != PUBLISH_DONE) {
		copy_entry_tell(entry, COPY_CONFLICT, NULL, err, worker);
		if (file->leads)
			copy_group_end(
				entry, result->fate == PUBLISH_BESIDE ? result->name : NULL, false);
		return;
	}
	dst = finish_stat(file, result, &now);
	finish_tell_notes(file, notes, dst, worker);
	copy_entry_tell(entry, COPY_DONE, dst, NULL, worker);
	if (file->leads)
		copy_group_end(entry, result->name, true);
}

/* Filesystems commit together what many ask for at the same time: waiting here is latency, too. */
static int finish_sync(struct copy_file *file, struct error *err, unsigned worker)
{
	uint64_t start = copy_width_start(file->copy, worker);
	int rc = publish_sync(file->dst, err);

	copy_width_note(file->copy, COPY_TIMED_SYNC, start, 1);
	return rc;
}

int copy_file_finish(struct copy_file *file, struct error *err, unsigned worker)
{
	struct finish_notes notes;
	struct publish_result result = { .fate = PUBLISH_DONE };
	struct copy *copy = file->copy;
	int rc = 0;

	finish_attributes(file, &notes);
	if (notes.incomplete && file->attempt < RETRY_MAX &&
		retry_is_transient(notes.attribute.code)) {
		*err = notes.attribute;
		return err->code;
	}
	if (copy->options.durable || copy->options.verify)
		rc = finish_sync(file, err, worker);
	if (!rc && copy->options.verify && !file->stream)
		rc = copy_verify(file->src, file->dst, file->entry.st.st_size, &copy->stop, err);
	if (!rc && !file->temporary && copy->hooks.outcome && !copy->hooks.blind &&
		fstat(file->dst, &file->made))
		rc = error_errno(err, "fstat");
	if (!rc)
		rc = finish_close(file, err);
	if (rc < 0)
		return rc;
	if (file->temporary) {
		rc = finish_publish(file, &result, err);
		if (rc < 0)
			return rc;
	} else {
		strcpy(result.name, file->entry.dst_name);
	}
	file->created = false;
	file->finished = true;
	finish_tell(file, &notes, &result, err, worker);
	return 0;
}
