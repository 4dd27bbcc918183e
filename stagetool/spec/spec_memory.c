#include "spec/spec_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int spec_no_memory(struct error *err)
{
	return error_sys(err, -ENOMEM, "reading options");
}

int spec_set_text(char **copy, const char *text, struct error *err)
{
	char *made = strdup(text);

	if (!made)
		return spec_no_memory(err);
	free(*copy);
	*copy = made;
	return 0;
}

void *spec_grow(void *items, size_t count, size_t size, struct error *err)
{
	/* The room is the next power of two. */
	if (items && count & (count - 1))
		return items;
	items = reallocarray(items, count ? 2 * count : 1, size);
	if (!items)
		spec_no_memory(err);
	return items;
}
