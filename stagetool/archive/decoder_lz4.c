#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>

#include "archive/decoder.h"

struct lz4 {
	LZ4F_dctx *context;
	bool between; /* two frames, or before the first */
};

/* Frames only: what lz4 -l wrote is libarchive's. */
static bool lz4_matches(const unsigned char *start, size_t size)
{
	return size >= 4 && !memcmp(start, "\x04\x22\x4d\x18", 4);
}

static void *lz4_open(void)
{
	struct lz4 *lz4 = calloc(1, sizeof(*lz4));

	if (lz4 && LZ4F_isError(LZ4F_createDecompressionContext(&lz4->context, LZ4F_VERSION))) {
		free(lz4);
		return NULL;
	}
	if (lz4)
		lz4->between = true;
	return lz4;
}

static int lz4_run(void *state, const char *in, size_t *in_size, char *out, size_t *out_size,
	struct error *err)
{
	struct lz4 *lz4 = state;
	size_t left = LZ4F_decompress(lz4->context, out, out_size, in, in_size, NULL);

	if (LZ4F_isError(left))
		return error_set(err, -EBADMSG, "lz4: %s", LZ4F_getErrorName(left));
	if (*in_size || left == 0)
		lz4->between = left == 0;
	return 0;
}

static bool lz4_may_end(const void *state)
{
	const struct lz4 *lz4 = state;

	return lz4->between;
}

static void lz4_close(void *state)
{
	struct lz4 *lz4 = state;

	LZ4F_freeDecompressionContext(lz4->context);
	free(lz4);
}

const struct decoder_kind decoder_lz4 = { lz4_matches, lz4_open, lz4_run, lz4_may_end, lz4_close };
