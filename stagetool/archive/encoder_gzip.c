#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "archive/encoder.h"

static void *gzip_open(unsigned threads)
{
	z_stream *stream = calloc(1, sizeof(*stream));

	(void)threads; /* zlib has one */
	/* 16: with gzip's header (no name, no time) and checksum. */
	if (stream && deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
			      Z_DEFAULT_STRATEGY) != Z_OK) {
		free(stream);
		return NULL;
	}
	return stream;
}

static int gzip_run(void *state, const char *in, size_t *in_size, bool end, char *out,
	size_t *out_size, struct error *err)
{
	z_stream *stream = state;
	size_t had = *in_size, room = *out_size;
	int status;

	stream->next_in = (Bytef *)in;
	stream->avail_in = (uInt)had;
	stream->next_out = (Bytef *)out;
	stream->avail_out = (uInt)room;
	status = deflate(stream, end ? Z_FINISH : Z_NO_FLUSH);
	*in_size = had - stream->avail_in;
	*out_size = room - stream->avail_out;
	if (status == Z_STREAM_ERROR)
		return error_set(err, -EIO, "gzip: %s", stream->msg ? stream->msg : "failed");
	return status == Z_STREAM_END;
}

static void gzip_close(void *state)
{
	deflateEnd(state);
	free(state);
}

const struct encoder_kind encoder_gzip = { gzip_open, gzip_run, gzip_close };
