#include "archive/decoder.h"

const struct decoder_kind *decoder_find(const void *start, size_t size)
{
	static const struct decoder_kind *const kinds[] = { &decoder_gzip, &decoder_lz4 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i]->matches(start, size))
			return kinds[i];
	return NULL;
}
