#include "stage/item_filter.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

int item_filter_new(const struct spec *spec, struct filter **filter, struct error *err)
{
	autofree struct filter_pattern *patterns = calloc(spec->n_patterns + 1, sizeof(*patterns));

	if (!patterns)
		return error_sys(err, -ENOMEM, "filter");
	for (size_t i = 0; i < spec->n_patterns; i++)
		patterns[i] = (struct filter_pattern){ spec->patterns[i].include,
			spec->patterns[i].glob };
	*filter = NULL;
	return filter_new(patterns, spec->n_patterns, filter, err);
}
