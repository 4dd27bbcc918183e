/*
 * Compressions that are undone here and not by libarchive, which does not look at their checksums.
 */
#ifndef ARCHIVE_DECODER_H
#define ARCHIVE_DECODER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct decoder_kind {
	/* Whether data that begins so is of this kind. */
	bool (*matches)(const unsigned char *start, size_t size);
	void *(*open)(void); /* NULL on ENOMEM */
	/* Takes some of *in_size bytes and gives some of *out_size; both become what was taken and given.
	 * 1: the data is at its end, what follows does not belong to it. -EBADMSG with err: damaged. */
	int (*run)(void *state, const char *in, size_t *in_size, char *out, size_t *out_size,
		struct error *err);
	/* Whether the input may end here. */
	bool (*may_end)(const void *state);
	void (*close)(void *state);
};

/* The kind of data that begins so; NULL: none of these. */
const struct decoder_kind *decoder_find(const void *start, size_t size);

extern const struct decoder_kind decoder_gzip, decoder_lz4;

#endif
