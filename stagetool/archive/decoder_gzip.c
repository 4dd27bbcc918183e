#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "archive/decoder.h"

struct gzip {
	z_stream stream;
	bool between; /* two members, or before the first */
	bool any; /* a member was whole */
};

static bool gzip_matches(const unsigned char *start, size_t size)
{
	return size >= 3 && !memcmp(start, "\x1f\x8b\x08", 3);
}

static void *gzip_open(void)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	/* 16: with gzip's header and checksum. */
	if (gzip && inflateInit2(&gzip->stream, 16 + MAX_WBITS) != Z_OK) {
		free(gzip);
		return NULL;
	}
	if (gzip)
		gzip->between = true;
	return gzip;
}

/* What comes behind a member: another one, or zeros and the like, which do not count. */
static bool gzip_goes_on(struct gzip *gzip, const char *in, size_t size)
{
	return !gzip->any || (size && in[0] == '\x1f');
}

static int gzip_run(void *state, const char *in, size_t *in_size, char *out, size_t *out_size,
	struct error *err)
{
	struct gzip *gzip = state;
	z_stream *stream = &gzip->stream;
	size_t had = *in_size, room = *out_size;
	int status;

	if (gzip->between && had && !gzip_goes_on(gzip, in, had)) {
		*in_size = *out_size = 0;
		return 1;
	}
	stream->next_in = (Bytef *)in;
	stream->avail_in = (uInt)had;
	stream->next_out = (Bytef *)out;
	stream->avail_out = (uInt)room;
	status = inflate(stream, Z_NO_FLUSH);
	*in_size = had - stream->avail_in;
	*out_size = room - stream->avail_out;
	if (*in_size)
		gzip->between = false;
	if (status == Z_STREAM_END) {
		gzip->between = gzip->any = true;
		inflateReset(stream);
	} else if (status != Z_OK && status != Z_BUF_ERROR) {
		return error_set(err, status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG, "gzip: %s",
			stream->msg ? stream->msg : "damaged");
	}
	return 0;
}

static bool gzip_may_end(const void *state)
{
	const struct gzip *gzip = state;

	return gzip->between;
}

static void gzip_close(void *state)
{
	struct gzip *gzip = state;

	inflateEnd(&gzip->stream);
	free(gzip);
}

const struct decoder_kind decoder_gzip = { gzip_matches, gzip_open, gzip_run, gzip_may_end,
	gzip_close };
