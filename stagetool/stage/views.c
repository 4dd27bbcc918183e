#include "stage/views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "spec/view.h"
#include "stage/plan_private.h"

static int views_compare(const void *a, const void *b)
{
	return strcmp(((const struct handoff_view *)a)->place, ((const struct handoff_view *)b)->place);
}

static int views_add(const struct spec *spec, const struct plan_context *context,
	struct handoff_view *view, struct error *err)
{
	autofree char *from = NULL, *to = NULL;
	int rc = plan_expand_from(spec, context, &from, err);

	if (rc == 0)
		rc = plan_expand_to(spec, context, &to, err);
	if (rc == 0)
		rc = symbols_expand(spec->at, context->symbols, &view->place, err);
	view->optional = spec->optional;
	return rc < 0 ? rc : plan_target(spec, to, from, &view->local, err);
}

int views_make(const struct spec_list *list, const struct plan_context *context,
	struct handoff *handoff, struct error *err)
{
	handoff->views = calloc(list->count + 1, sizeof(*handoff->views));
	if (!handoff->views)
		return error_sys(err, -ENOMEM, "views");
	for (size_t i = 0; i < list->count; i++) {
		const struct spec *spec = &list->items[i];
		int rc;

		if (!spec->at || (spec->dist == SPEC_DIST_FIRST && context->node_index != 0))
			continue;
		rc = views_add(spec, context, &handoff->views[handoff->n_views++], err);
		if (rc < 0)
			return plan_error(spec, rc, err);
	}
	qsort(handoff->views, handoff->n_views, sizeof(*handoff->views), views_compare);
	return 0;
}

int views_check(const struct spec *spec, const struct plan_context *context, bool is_dir,
	struct error *err)
{
	struct error why = ERROR_INIT;
	autofree char *place = NULL;
	autoclose int fd = -1;
	struct stat st;
	int rc = symbols_expand(spec->at, context->symbols, &place, err);

	if (rc < 0)
		return rc;
	fd = view_open(place, context->conf, &st, &why);
	if (fd < 0)
		return error_set(err, fd, "at: %s", why.text);
	if (S_ISDIR(st.st_mode) != is_dir)
		return error_set(err, is_dir ? -ENOTDIR : -EISDIR,
			"at: %s is %s directory, and what is to be seen there is %s", place,
			is_dir ? "no" : "a", is_dir ? "one" : "a file");
	return 0;
}
