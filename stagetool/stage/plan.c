#include "stage/plan_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"

int plan_error(const struct spec *spec, int code, struct error *err)
{
	return error_prefix(
		err, code, "%s %s", spec->side == SPEC_IN ? "stage-in" : "stage-out", spec->text);
}

struct plan_item *plan_add(struct plan *plan, const struct spec *spec)
{
	/* Grown at powers of two, so that the room need not be kept. */
	if ((plan->count & (plan->count - 1)) == 0) {
		size_t room = plan->count ? plan->count * 2 : 1;
		struct plan_item *items = realloc(plan->items, room * sizeof(*items));

		if (!items)
			return NULL;
		plan->items = items;
	}
	plan->items[plan->count] = (struct plan_item){ .spec = spec };
	return &plan->items[plan->count++];
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->count; i++) {
		free(plan->items[i].shared);
		free(plan->items[i].resolved);
		free(plan->items[i].local);
		free(plan->items[i].problem);
	}
	free(plan->items);
	free(plan);
}

static int by_local(const void *left, const void *right)
{
	const struct plan_item *const *a = left, *const *b = right;

	return strcmp((*a)->local, (*b)->local);
}

static int by_shared(const void *left, const void *right)
{
	const struct plan_item *const *a = left, *const *b = right;

	return strcmp((*a)->resolved, (*b)->resolved);
}

int plan_check_targets(const struct plan *plan, bool of_shared, struct error *err)
{
	autofree const struct plan_item **order =
		calloc(plan->count + 1, sizeof(struct plan_item *));
	size_t count = 0;

	if (!order)
		return error_sys(err, -ENOMEM, "plan");
	for (size_t i = 0; i < plan->count; i++) {
		if (!plan->items[i].missing)
			order[count++] = &plan->items[i];
	}
	qsort(order, count, sizeof(*order), of_shared ? by_shared : by_local);
	for (size_t i = 1; i < count; i++) {
		const struct plan_item *a = order[i - 1], *b = order[i];

		if ((of_shared ? by_shared : by_local)(&a, &b) == 0)
			return error_set(err, -EEXIST,
				"%s and %s have the same target %s (of %s and %s)",
				of_shared ? a->local : a->shared, of_shared ? b->local : b->shared,
				of_shared ? a->shared : a->local, a->spec->text, b->spec->text);
	}
	return 0;
}

int plan_expand_from(
	const struct spec *spec, const struct plan_context *context, char **from, struct error *err)
{
	int (*expand)(const char *, const struct symbols *, char **, struct error *) =
		spec->from_glob ? symbols_expand_pattern : symbols_expand;
	int rc = expand(spec->from, context->symbols, from, err);

	if (rc == 0 && spec->side == SPEC_OUT && !spec->from_glob)
		rc = spec_check_local(*from, err);
	return rc;
}

static bool into_subdir(const struct spec *spec, const struct plan_context *context)
{
	return spec->side == SPEC_OUT && spec->gather == SPEC_GATHER_SUBDIR &&
	       (context->node_count > 1 || spec->gather_set) && !symbols_has_node(spec->from) &&
	       !symbols_has_node(spec->to);
}

/* An archive can not have a node's directory in itself: DIR/NAME becomes DIR/<node>/NAME. */
static char *beside_node(const char *to, const char *node)
{
	const char *name = path_base(to);
	autofree char *dir = strndup(to, (size_t)(name - to));
	autofree char *own = dir ? path_join(dir, node) : NULL;

	return own ? path_join(own, name) : NULL;
}

int plan_expand_to(
	const struct spec *spec, const struct plan_context *context, char **to, struct error *err)
{
	autofree char *plain = NULL, *node = NULL;
	int rc = symbols_expand(spec->to, context->symbols, &plain, err);

	if (rc == 0 && spec->side == SPEC_IN)
		rc = spec_check_local(plain, err);
	if (rc == 0 && into_subdir(spec, context))
		rc = symbols_expand("%N", context->symbols, &node, err);
	if (rc < 0)
		return rc;
	*to = !node				   ? take_ptr(plain) :
		spec->pack && !spec->to_dir ? beside_node(plain, node) :
					      path_join(plain, node);
	return *to ? 0 : error_sys(err, -ENOMEM, "plan");
}

/* NULL on ENOMEM. */
static void add_suffix(char **target, const char *suffix)
{
	char *plain = *target;

	if (asprintf(target, "%s.%s", plain, suffix) < 0)
		*target = NULL;
	free(plain);
}

int plan_target(
	const struct spec *spec, const char *to, const char *from, char **target, struct error *err)
{
	const char *name = path_base(from);

	if (!spec->to_dir) {
		*target = strdup(to);
	} else {
		if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			return error_set(err, -EINVAL, "%s has no name of its own", from);
		*target = strcmp(to, ".") == 0 ? strdup(name) : path_join(to, name);
		if (*target && spec->pack)
			add_suffix(target, spec_pack_name(spec->pack));
	}
	return *target ? 0 : error_sys(err, -ENOMEM, "plan");
}
