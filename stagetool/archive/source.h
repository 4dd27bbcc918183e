/*
 * An archive that is read: libarchive on an open file.
 *
 * It is read once, from its beginning to its end, and never sought on, but for formats whose table of contents
 * is at their end (zip, 7z) or anywhere (ISO), where it is a regular file. No external program is ever run.
 */
#ifndef ARCHIVE_SOURCE_H
#define ARCHIVE_SOURCE_H

#include <locale.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "archive/library.h"
#include "archive/decoder.h"
#include "base/error.h"

struct source {
	int fd; /* borrowed */
	struct stat st;
	struct archive *archive; /* for archive_read_next_header and so on, of the thread that opened it */
	const atomic_bool *cancel;
	/* Private: */
	char *buffer;
	size_t ahead; /* bytes of buffer that were not given on, from at: of the beginning, to know what it
		       * is; of what is decoded */
	size_t at;
	const struct decoder_kind *decoder; /* NULL: libarchive's affair */
	void *decoding;
	char *plain;
	bool regular, seeks, zeros;
	int64_t offset;
	uint64_t length; /* that was read */
	locale_t locale, before;
};

/* Names are bytes, in any locale: libarchive converts none, where the format does not say that they are
 * UTF-16 or UTF-8 (zip, 7z, ISO with Joliet only), which come as UTF-8. Source is borrowed until source_close, also
 * after a failure. cancel may be NULL. */
int source_open(struct source *source, int fd, const atomic_bool *cancel, struct error *err);
void source_close(struct source *source);

/* Whether names are UTF-8 that libarchive has brought into its composed form, so that two may have become
 * one. */
bool source_composes_names(const struct source *source);

/* At its end: whether a plain tar archive lacks the zeros that say that this is its end. */
bool source_is_cut(const struct source *source);

/* The last error of libarchive, with where it was: "at byte 123 of the archive: ...". Returns a negative
 * errno. */
int source_error(const struct source *source, struct error *err);

#endif
