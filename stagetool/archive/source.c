#include "archive/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/retry.h"

/* What one read asks for. */
#define SOURCE_READ (1u << 20)
/* What is read to see what it is: an ISO image says so behind its first 32 KiB. */
#define SOURCE_AHEAD (64u << 10)
#define TAR_BLOCK 512u

/* Up to size bytes; 0 at the end; negative errno. */
static ssize_t source_pull(struct source *source, char *data, size_t size)
{
	unsigned attempt = 0;
	ssize_t n;

	do {
		n = source->regular ? pread(source->fd, data, size, source->offset) :
				      read(source->fd, data, size);
		if (n < 0)
			n = -errno;
	} while (n == -EINTR || (n < 0 && source->regular && retry_again((int)n, &attempt)));
	if (n > 0) {
		source->offset += n;
		source->length += (uint64_t)n;
	}
	return n;
}

static bool all_zeros(const char *data, size_t size)
{
	return !size || (!data[0] && !memcmp(data, data + 1, size - 1));
}

/* What a tar archive ends with. */
static void source_note_end(struct source *source, const char *data, size_t size)
{
	if (size >= TAR_BLOCK)
		source->zeros = all_zeros(data + size - TAR_BLOCK, TAR_BLOCK);
	else
		source->zeros = source->zeros && all_zeros(data, size);
}

/* What is in buffer, filled if it is empty. */
static ssize_t source_fill(struct source *source, struct error *err)
{
	ssize_t n;

	if (source->ahead)
		return (ssize_t)source->ahead;
	source->at = 0;
	n = source_pull(source, source->buffer, SOURCE_READ);
	if (n < 0)
		return error_sys(err, (int)n, "read");
	source->ahead = (size_t)n;
	return n;
}

static ssize_t source_plain(struct source *source, const void **data, struct error *err)
{
	ssize_t n = source_fill(source, err);

	*data = source->buffer + source->at;
	source->ahead = 0;
	return n;
}

static ssize_t source_decoded(struct source *source, const void **data, struct error *err)
{
	size_t out = 0;
	int rc = 0;

	*data = source->plain;
	while (!out && !rc) {
		ssize_t n = source_fill(source, err);
		size_t in = (size_t)n;

		if (n < 0)
			return n;
		out = SOURCE_READ;
		rc = source->decoder->run(source->decoding, source->buffer + source->at, &in,
			source->plain, &out, err);
		if (rc < 0)
			return rc;
		source->at += in;
		source->ahead -= in;
		if (!n && !out && !source->decoder->may_end(source->decoding))
			return error_set(err, -EBADMSG, "the compressed data is cut off");
		if (!n)
			break;
	}
	return (ssize_t)out;
}

static la_ssize_t source_read(struct archive *archive, void *ctx, const void **data)
{
	struct source *source = ctx;
	struct error err = ERROR_INIT;
	ssize_t n;

	if (source->cancel && atomic_load_explicit(source->cancel, memory_order_relaxed)) {
		archive_set_error(archive, ECANCELED, "stopped");
		return -1;
	}
	n = source->decoder ? source_decoded(source, data, &err) : source_plain(source, data, &err);
	if (n < 0) {
		archive_set_error(archive, (int)-n, "%s", err.text);
		return -1;
	}
	if (n)
		source_note_end(source, *data, (size_t)n);
	return n;
}

static la_int64_t source_seek(struct archive *archive, void *ctx, la_int64_t offset, int whence)
{
	struct source *source = ctx;

	(void)archive;
	if (whence == SEEK_CUR)
		offset += source->offset - (int64_t)source->ahead;
	if (whence == SEEK_END)
		offset += source->st.st_size;
	if (offset < 0)
		return ARCHIVE_FATAL;
	source->ahead = 0;
	source->offset = offset;
	return offset;
}

static bool begins(const struct source *source, size_t at, const char *magic, size_t size)
{
	return source->ahead >= at + size && !memcmp(source->buffer + at, magic, size);
}

/* Whether its contents are found by seeking, and its names are in an encoding of the format's. */
static bool source_has_table(const struct source *source)
{
	return begins(source, 0, "PK\3\4", 4) || begins(source, 0, "PK\5\6", 4) ||
	       begins(source, 0, "PK\7\10", 4) || begins(source, 0, "7z\xbc\xaf\x27\x1c", 6) ||
	       begins(source, 32769, "CD001", 5);
}

static int source_look(struct source *source, struct error *err)
{
	ssize_t n;

	do {
		n = source_pull(source, source->buffer + source->ahead,
			SOURCE_AHEAD - source->ahead);
		if (n < 0)
			return error_sys(err, (int)n, "read");
		source->ahead += (size_t)n;
	} while (n && source->ahead < SOURCE_AHEAD);
	if (!source->ahead)
		return error_set(err, -EBADMSG, "it is empty: not an archive");
	return 0;
}

static int support(struct archive *archive)
{
	int (*const filters[])(struct archive *) = { archive_read_support_filter_gzip,
		archive_read_support_filter_bzip2, archive_read_support_filter_compress,
		archive_read_support_filter_lz4, archive_read_support_filter_lzip,
		archive_read_support_filter_lzma, archive_read_support_filter_xz,
		archive_read_support_filter_zstd };
	int (*const formats[])(struct archive *) = { archive_read_support_format_tar,
		archive_read_support_format_cpio, archive_read_support_format_zip,
		archive_read_support_format_7zip, archive_read_support_format_iso9660 };

	/* What is not built into libarchive it would run a program for, and warns. */
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (filters[i](archive) != ARCHIVE_OK)
			return -ENOTSUP;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i](archive) != ARCHIVE_OK)
			return -ENOTSUP;
	return 0;
}

/* Of this thread, until source_close. In the C locale what is said to be UTF-8 comes as it is from a tar archive
 * (in another one libarchive would compose it, and two names could become one), and not at all from a zip. */
static int source_set_locale(struct source *source, struct error *err)
{
	source->locale = newlocale(LC_ALL_MASK, source->seeks ? "C.UTF-8" : "C", NULL);
	if (!source->locale)
		return error_errno(err, "locale");
	source->before = uselocale(source->locale);
	return 0;
}

static int source_start(struct source *source, struct error *err)
{
	struct archive *archive = source->archive;
	bool table = source_has_table(source);
	int rc;

	source->seeks = table;
	source->decoder = decoder_find(source->buffer, source->ahead);
	if (source->decoder) {
		source->plain = malloc(SOURCE_READ);
		source->decoding = source->decoder->open();
		if (!source->plain || !source->decoding)
			return error_sys(err, -ENOMEM, "an archive");
	}
	rc = source_set_locale(source, err);
	if (rc)
		return rc;
	if (support(archive))
		return error_set(err, -ENOTSUP, "libarchive was built without what this needs: %s",
			archive_error_string(archive));
	archive_read_set_callback_data(archive, source);
	archive_read_set_read_callback(archive, source_read);
	if (table && source->regular)
		archive_read_set_seek_callback(archive, source_seek);
	return archive_read_open1(archive) == ARCHIVE_OK ? 0 : source_error(source, err);
}

int source_open(struct source *source, int fd, const atomic_bool *cancel, struct error *err)
{
	int rc;

	*source = (struct source){ .fd = fd, .cancel = cancel };
	if (fstat(fd, &source->st))
		return error_errno(err, "fstat");
	if (S_ISDIR(source->st.st_mode))
		return error_set(err, -EISDIR, "it is a directory, not an archive");
	rc = library_load(err);
	if (rc)
		return rc;
	source->regular = S_ISREG(source->st.st_mode);
	if (source->regular)
		posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	source->buffer = malloc(SOURCE_READ);
	source->archive = archive_read_new();
	if (!source->buffer || !source->archive)
		return error_sys(err, -ENOMEM, "an archive");
	rc = source_look(source, err);
	return rc ? rc : source_start(source, err);
}

void source_close(struct source *source)
{
	if (source->archive)
		archive_read_free(source->archive);
	if (source->locale) {
		uselocale(source->before);
		freelocale(source->locale);
	}
	if (source->decoding)
		source->decoder->close(source->decoding);
	free(source->plain);
	free(source->buffer);
}

bool source_composes_names(const struct source *source)
{
	return source->seeks;
}

bool source_is_cut(const struct source *source)
{
	bool tar = (archive_format(source->archive) & ARCHIVE_FORMAT_BASE_MASK) ==
		   ARCHIVE_FORMAT_TAR;

	return tar && archive_filter_count(source->archive) == 1 && !source->zeros;
}

int source_error(const struct source *source, struct error *err)
{
	const char *text = archive_error_string(source->archive);
	int code = archive_errno(source->archive);

	if (code == ECANCELED)
		return error_sys(err, -ECANCELED, "stopped");
	/* Codes of libarchive's own are negative. */
	return error_set(err, code > 0 && code != EINVAL && code != EILSEQ ? -code : -EBADMSG,
		"at byte %llu of the archive: %s",
		source->decoder ? (unsigned long long)(source->length - source->ahead) :
				  (unsigned long long)archive_filter_bytes(source->archive, -1),
		text ? text : "damaged");
}
