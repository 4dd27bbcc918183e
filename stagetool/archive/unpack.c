#include "archive/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/attributes.h"
#include "archive/source.h"
#include "base/cleanup.h"
#include "copy/feed.h"

struct unpack {
	struct source source;
	struct copy_feed *feed;
	struct archive_entry *entry; /* that is at hand; libarchive's */
	uint64_t number;
	char *last; /* the path of the last entry */
};

int unpack_new(int fd, int dstdir, const char *dstname, const struct copy_options *options,
	const struct copy_hooks *hooks, struct unpack **unpack, struct error *err)
{
	struct unpack *new = calloc(1, sizeof(*new));
	int rc;

	if (!new)
		return error_sys(err, -ENOMEM, "unpacking");
	rc = source_open(&new->source, fd, options->cancel, err);
	if (!rc)
		rc = copy_feed_new(dstdir, dstname, options, hooks, &new->feed, err);
	if (rc) {
		unpack_free(new);
		return rc;
	}
	*unpack = new;
	return 0;
}

void unpack_free(struct unpack *unpack)
{
	if (!unpack)
		return;
	copy_feed_free(unpack->feed);
	source_close(&unpack->source);
	free(unpack->last);
	free(unpack);
}

const struct copy *unpack_copy(const struct unpack *unpack)
{
	return copy_feed_copy(unpack->feed);
}

/* The bytes of a file. Negative: the archive can not be read on. */
static int unpack_data(struct unpack *unpack, struct error *err)
{
	struct archive *archive = unpack->source.archive;
	const void *data;
	size_t size;
	la_int64_t offset;
	int status;

	do {
		status = archive_read_data_block(archive, &data, &size, &offset);
		if (status == ARCHIVE_OK)
			copy_feed_data(unpack->feed, data, size, (uint64_t)offset);
	} while ((status == ARCHIVE_OK || status == ARCHIVE_RETRY) &&
		 !copy_feed_stopped(unpack->feed));
	if (status == ARCHIVE_EOF) {
		/* Some formats say only now how much it was. */
		copy_feed_end(unpack->feed,
			archive_entry_size_is_set(unpack->entry) ?
				archive_entry_size(unpack->entry) :
				-1,
			NULL);
		return 0;
	}
	if (status == ARCHIVE_OK || status == ARCHIVE_RETRY) {
		error_sys(err, -ECANCELED, "stopped");
		copy_feed_end(unpack->feed, -1, err);
		return 0;
	}
	source_error(&unpack->source, err);
	copy_feed_end(unpack->feed, -1, err);
	return status == ARCHIVE_FATAL ? err->code : 0;
}

static int unpack_file(struct unpack *unpack, const struct copy_fed *fed, struct error *err)
{
	if (copy_feed_file(unpack->feed, fed))
		return unpack_data(unpack, err);
	return 0;
}

static bool is_tar(const struct unpack *unpack)
{
	return (archive_format(unpack->source.archive) & ARCHIVE_FORMAT_BASE_MASK) ==
	       ARCHIVE_FORMAT_TAR;
}

/* A format may give the bytes with any of a file's names: with the last one, cpio does. */
static int unpack_link(struct unpack *unpack, struct copy_fed *fed, const char *old,
	struct error *err)
{
	int rc;

	if (!archive_entry_size_is_set(unpack->entry) || archive_entry_size(unpack->entry) <= 0 ||
		is_tar(unpack)) {
		copy_feed_link(unpack->feed, fed, old);
		return 0;
	}
	rc = unpack_file(unpack, fed, err);
	if (!rc)
		copy_feed_relink(unpack->feed, fed->path, old);
	return rc;
}

/* Two names that libarchive has made one can not be told from two members of one name. */
static bool has_odd_bytes(const char *path)
{
	while (*path && !(*path & 0x80))
		path++;
	return *path;
}

static int unpack_fed(struct unpack *unpack, struct copy_fed *fed, struct error *err)
{
	const char *link = archive_entry_hardlink(unpack->entry);
	struct error why = ERROR_INIT;

	if (source_composes_names(&unpack->source) && has_odd_bytes(fed->path) &&
		copy_feed_came(unpack->feed, fed->path)) {
		error_set(&why, -EEXIST, "another entry has its name, or one that differs in "
					 "composed characters only: not unpacked");
		copy_feed_fail(unpack->feed, fed, &why);
		return 0;
	}
	fed->target = archive_entry_symlink(unpack->entry);
	if (link)
		return unpack_link(unpack, fed, link, err);
	if (S_ISLNK(fed->st.st_mode) && !fed->target) {
		error_set(&why, -EBADMSG, "a symlink without a target");
		copy_feed_fail(unpack->feed, fed, &why);
	} else if (S_ISREG(fed->st.st_mode)) {
		return unpack_file(unpack, fed, err);
	} else {
		copy_feed_entry(unpack->feed, fed);
	}
	return 0;
}

/* Names come as they are where they can not be converted. */
static bool is_about_conversion(const char *text)
{
	return text && strstr(text, "be converted from");
}

/* status: of the header. Negative: the archive can not be read on. */
static int unpack_entry(struct unpack *unpack, int status, struct error *err)
{
	const char *path = archive_entry_pathname(unpack->entry);
	const char *warning = archive_error_string(unpack->source.archive);
	struct error why = ERROR_INIT;
	struct attributes_origin origin = { .archive = &unpack->source.st, .is_tar = is_tar(unpack) };
	struct attributes attributes;
	struct copy_fed fed = { .path = path };
	char number[48];
	int rc;

	unpack->number++;
	origin.number = unpack->number;
	rc = attributes_take(unpack->entry, &origin, &attributes, &why);
	fed.st = attributes.st;
	fed.values = attributes.values;
	fed.n_values = attributes.n_values;
	free(unpack->last);
	unpack->last = path ? strdup(path) : NULL;
	if (!path || !*path || status == ARCHIVE_FAILED) {
		snprintf(number, sizeof(number), "entry %llu", (unsigned long long)unpack->number);
		if (!path || !*path)
			fed.path = number;
		error_set(&why, -EBADMSG, "it can not be read: %s",
			warning ? warning : "it has no name");
		copy_feed_fail(unpack->feed, &fed, &why);
		attributes_free(&attributes);
		return 0;
	}
	if (rc)
		copy_feed_lacks(unpack->feed, &fed, &why);
	if (status == ARCHIVE_WARN && !is_about_conversion(warning)) {
		error_set(&why, -EBADMSG, "its header: %s", warning ? warning : "damaged");
		copy_feed_lacks(unpack->feed, &fed, &why);
	}
	rc = unpack_fed(unpack, &fed, err);
	attributes_free(&attributes);
	return rc;
}

static int unpack_entries(struct unpack *unpack, struct error *err)
{
	struct archive *archive = unpack->source.archive;
	int status, rc = 0;

	while (!rc && !copy_feed_stopped(unpack->feed)) {
		status = archive_read_next_header(archive, &unpack->entry);
		if (status == ARCHIVE_EOF)
			break;
		if (status == ARCHIVE_FATAL || (status < ARCHIVE_WARN && status != ARCHIVE_FAILED &&
						       status != ARCHIVE_RETRY))
			rc = source_error(&unpack->source, err);
		else if (status != ARCHIVE_RETRY)
			rc = unpack_entry(unpack, status, err);
	}
	if (!rc && !copy_feed_stopped(unpack->feed) && source_is_cut(&unpack->source))
		rc = error_set(err, -EBADMSG, "at byte %llu: the archive ends without the mark of its "
					      "end: it has been cut off",
			(unsigned long long)unpack->source.length);
	return rc;
}

int unpack_run(struct unpack *unpack, struct error *err)
{
	struct error failed = ERROR_INIT;
	int rc = unpack_entries(unpack, &failed);
	int end_rc = copy_feed_finish(unpack->feed, err);

	/* What stopped the writing says more than that the reading was stopped. */
	if (end_rc)
		return end_rc;
	if (rc && unpack->last)
		error_prefix(&failed, rc, "%s %s", unpack->number ? "in or after" : "before",
			unpack->last);
	return rc ? error_set(err, rc, "%s", failed.text) : 0;
}
