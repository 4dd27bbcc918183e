/*
 * Compressions that an archive is written with.
 */
#ifndef ARCHIVE_ENCODER_H
#define ARCHIVE_ENCODER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct encoder_kind {
	/* threads: that compress. NULL on ENOMEM. */
	void *(*open)(unsigned threads);
	/* Takes some of *in_size bytes and gives some of *out_size; both become what was taken and given. end:
	 * these are the last bytes; 1 once all of them came out. Negative errno with err. */
	int (*run)(void *state, const char *in, size_t *in_size, bool end, char *out,
		size_t *out_size, struct error *err);
	void (*close)(void *state);
};

extern const struct encoder_kind encoder_gzip, encoder_zstd;

#endif
