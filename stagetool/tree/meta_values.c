#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tree/meta_internal.h"

/* Values that are gathered: an array, names and values in one piece of memory. */
struct gathering {
	char *memory;
	size_t used, count;
	size_t *places; /* of each: where its name and its value begin, and the size of that */
};

static int gather_one(struct gathering *to, const struct meta_source *source, const char *name)
{
	autofree void *value = NULL;
	ssize_t size = xattr_value(source, name, &value);
	size_t length = strlen(name) + 1;
	size_t *places;
	char *memory;

	if (size < 0)
		return size == -ENODATA ? 0 : (int)size;
	memory = realloc(to->memory, to->used + length + (size_t)size);
	if (!memory)
		return -ENOMEM;
	to->memory = memory;
	places = reallocarray(to->places, to->count + 1, 3 * sizeof(*places));
	if (!places)
		return -ENOMEM;
	to->places = places;
	places += 3 * to->count++;
	places[0] = to->used;
	places[1] = to->used + length;
	places[2] = (size_t)size;
	memcpy(memory + places[0], name, length);
	memcpy(memory + places[1], value, (size_t)size);
	to->used += length + (size_t)size;
	return 0;
}

static void gather(struct gathering *to, const struct meta_source *source, const char *name,
	int *first, struct error *err)
{
	int rc = gather_one(to, source, name);

	if (rc < 0 && !*first)
		*first = error_sys(err, rc, "%s", name);
}

static int gather_finish(const struct gathering *from, void **memory, struct meta_value **values)
{
	size_t head = from->count * sizeof(struct meta_value);
	struct meta_value *all = malloc(head + from->used + 1);
	char *data;

	if (!all)
		return -ENOMEM;
	data = (char *)(all + from->count);
	if (from->used)
		memcpy(data, from->memory, from->used);
	for (size_t i = 0; i < from->count; i++) {
		const size_t *places = from->places + 3 * i;

		all[i] = (struct meta_value){ data + places[0], data + places[1], places[2] };
	}
	*memory = *values = all;
	return 0;
}

int meta_values(const struct meta_source *source, void **memory, struct meta_value **values,
	size_t *n, struct error *err)
{
	struct gathering all = { .count = 0 };
	int first = source->code ? error_sys(err, source->code, "extended attributes") : 0;

	*memory = NULL;
	*values = NULL;
	*n = 0;
	for (size_t at = 0; at < source->names_size; at += strlen(source->names + at) + 1)
		gather(&all, source, source->names + at, &first, err);
	if (source->has & META_HAS_ACCESS_ACL)
		gather(&all, source, META_ACCESS_ACL, &first, err);
	if (source->has & META_HAS_DEFAULT_ACL)
		gather(&all, source, META_DEFAULT_ACL, &first, err);
	if (all.count && gather_finish(&all, memory, values))
		first = error_sys(err, -ENOMEM, "extended attributes");
	*n = *values ? all.count : 0;
	free(all.memory);
	free(all.places);
	return first;
}
