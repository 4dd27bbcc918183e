#include <errno.h>
#include <zstd.h>

#include "archive/encoder.h"

/* With a checksum, which libarchive's zstd does not write. At least one thread beside ours: what comes out is
 * then the same for any number of them. */
static void *zstd_open(unsigned threads)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();

	if (!context)
		return NULL;
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	/* A library without threads says no, and works alone. */
	ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers, (int)(threads ? threads : 1));
	return context;
}

static int zstd_run(void *state, const char *in, size_t *in_size, bool end, char *out,
	size_t *out_size, struct error *err)
{
	ZSTD_inBuffer input = { in, *in_size, 0 };
	ZSTD_outBuffer output = { out, *out_size, 0 };
	size_t left = ZSTD_compressStream2(
		state, &output, &input, end ? ZSTD_e_end : ZSTD_e_continue);

	*in_size = input.pos;
	*out_size = output.pos;
	if (ZSTD_isError(left))
		return error_set(err, -EIO, "zstd: %s", ZSTD_getErrorName(left));
	return end && left == 0;
}

static void zstd_close(void *state)
{
	ZSTD_freeCCtx(state);
}

const struct encoder_kind encoder_zstd = { zstd_open, zstd_run, zstd_close };
