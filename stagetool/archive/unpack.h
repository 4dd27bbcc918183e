/*
 * Unpacking an archive: tar in all its dialects, cpio, zip, 7z and ISO, plain or compressed by gzip, bzip2, xz,
 * lzma, lzip, lz4, zstd or compress.
 *
 * The calling thread reads and decompresses, once and from beginning to end; the copier's workers write. All
 * that the archive says of an entry is kept as a copy keeps it. What is not kept and what is refused:
 * copy/feed.h, tree/meta.h.
 */
#ifndef ARCHIVE_UNPACK_H
#define ARCHIVE_UNPACK_H

#include "copy/engine.h"

struct unpack;

/* From fd (borrowed) into dstname in dstdir, with options and hooks as of copy/feed.h. For the thread that
 * unpack_run and unpack_free are called from. */
int unpack_new(int fd, int dstdir, const char *dstname, const struct copy_options *options,
	const struct copy_hooks *hooks, struct unpack **unpack, struct error *err);

/* For copy_counts, also while it runs. Borrowed. */
const struct copy *unpack_copy(const struct unpack *unpack);

/* As copy_run. -EBADMSG: the archive is damaged or cut off, or is none; what came before is there. Once. */
int unpack_run(struct unpack *unpack, struct error *err);

void unpack_free(struct unpack *unpack);

#endif
