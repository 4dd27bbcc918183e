/*
 * Where an archive is written to: a file, through a compression, in large writes.
 */
#ifndef ARCHIVE_SINK_H
#define ARCHIVE_SINK_H

#include <stdint.h>

#include "archive/encoder.h"

struct sink {
	int fd; /* borrowed */
	const struct encoder_kind *encoder; /* NULL: as it is */
	void *encoding;
	char *buffer;
	size_t used;
	uint64_t written;
};

/* threads: for the compression. Release with sink_close, also after a failure. */
int sink_open(struct sink *sink, int fd, const struct encoder_kind *encoder, unsigned threads,
	struct error *err);
int sink_write(struct sink *sink, const void *data, size_t size, struct error *err);
/* All that was written is in the file. */
int sink_finish(struct sink *sink, struct error *err);
void sink_close(struct sink *sink);

#endif
