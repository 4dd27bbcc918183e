#include "archive/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SINK_SIZE (1u << 20)

int sink_open(struct sink *sink, int fd, const struct encoder_kind *encoder, unsigned threads,
	struct error *err)
{
	*sink = (struct sink){ .fd = fd, .encoder = encoder };
	sink->buffer = malloc(SINK_SIZE);
	if (encoder)
		sink->encoding = encoder->open(threads);
	if (!sink->buffer || (encoder && !sink->encoding))
		return error_sys(err, -ENOMEM, "packing");
	return 0;
}

void sink_close(struct sink *sink)
{
	if (sink->encoding)
		sink->encoder->close(sink->encoding);
	free(sink->buffer);
}

static int sink_flush(struct sink *sink, struct error *err)
{
	const char *data = sink->buffer;

	while (sink->used) {
		ssize_t n = write(sink->fd, data, sink->used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? error_errno(err, "write") :
				   error_set(err, -EIO, "write: nothing was written");
		data += n;
		sink->used -= (size_t)n;
		sink->written += (uint64_t)n;
	}
	return 0;
}

static int sink_plain(struct sink *sink, const char *data, size_t size, struct error *err)
{
	while (size) {
		size_t n = SINK_SIZE - sink->used;

		if (n > size)
			n = size;
		memcpy(sink->buffer + sink->used, data, n);
		sink->used += n;
		data += n;
		size -= n;
		if (sink->used == SINK_SIZE && sink_flush(sink, err))
			return err->code;
	}
	return 0;
}

/* end: and all that the compression holds. */
static int sink_encode(struct sink *sink, const char *data, size_t size, bool end,
	struct error *err)
{
	int rc = 0;

	while (size || (end && !rc)) {
		size_t in = size, out = SINK_SIZE - sink->used;

		rc = sink->encoder->run(
			sink->encoding, data, &in, end, sink->buffer + sink->used, &out, err);
		if (rc < 0)
			return rc;
		data += in;
		size -= in;
		sink->used += out;
		if (sink->used == SINK_SIZE && sink_flush(sink, err))
			return err->code;
	}
	return 0;
}

int sink_write(struct sink *sink, const void *data, size_t size, struct error *err)
{
	return sink->encoder ? sink_encode(sink, data, size, false, err) :
			       sink_plain(sink, data, size, err);
}

int sink_finish(struct sink *sink, struct error *err)
{
	int rc = sink->encoder ? sink_encode(sink, "", 0, true, err) : 0;

	return rc ? rc : sink_flush(sink, err);
}
