#include "stage/plan_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"
#include "tree/glob.h"

/* Looks at FROM: item->local becomes where it really is, missing and problem say what is wrong. */
static int look_at_local(struct plan_item *item, int stagefd, struct error *err)
{
	struct error found = ERROR_INIT;
	autofree char *real = NULL;
	autoclose int fd = inside_open(stagefd, item->local, O_PATH, &real, &found);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) < 0)
		return error_errno(err, "%s", item->local);
	if (fd >= 0 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		error_set(&found, -EINVAL, "%s is neither a file nor a directory", item->local);
	if (fd >= 0)
		item->is_dir = S_ISDIR(st.st_mode);
	if (!found.code) {
		free(item->local);
		item->local = take_ptr(real);
		return 0;
	}
	item->missing = true;
	if (item->spec->optional && (found.code == -ENOENT || found.code == -ENOTDIR))
		return 0;
	item->problem = strdup(found.text);
	return item->problem ? 0 : error_sys(err, -ENOMEM, "plan");
}

/* Looks at TO. What is wrong with it is a problem of this item alone. */
static int look_at_shared(
	struct plan_item *item, const struct plan_context *context, struct error *err)
{
	struct error found = ERROR_INIT;
	struct stat st;
	int rc = plan_resolve(item->shared, &item->resolved, &st, &found);

	if (rc == 0)
		rc = plan_check_source(context->conf, item->resolved, &found);
	if (rc == 0 || item->missing)
		return rc == -ENOMEM ? error_sys(err, rc, "plan") : 0;
	item->missing = true;
	item->problem = strdup(found.text);
	return item->problem ? 0 : error_sys(err, -ENOMEM, "plan");
}

/* Takes local and shared. */
static int add_item(struct plan *plan, const struct spec *spec, const struct plan_context *context,
	char *local, char *shared, struct error *err)
{
	struct plan_item *item = local && shared ? plan_add(plan, spec) : NULL;
	int rc;

	if (!item) {
		free(local);
		free(shared);
		return error_sys(err, -ENOMEM, "plan");
	}
	item->local = local;
	item->shared = shared;
	rc = look_at_local(item, context->stagefd, err);
	if (rc == 0)
		rc = look_at_shared(item, context, err);
	if (rc == 0 && !item->resolved)
		item->resolved = strdup(shared);
	return rc == 0 && !item->resolved ? error_sys(err, -ENOMEM, "plan") : rc;
}

static int add_one(struct plan *plan, const struct spec *spec, const struct plan_context *context,
	const char *from, const char *to, struct error *err)
{
	char *shared = NULL;
	int rc = plan_target(spec, to, from, &shared, err);

	return rc < 0 ? rc : add_item(plan, spec, context, strdup(from), shared, err);
}

/* An item that says of a pattern what found says. */
static int add_unmatched(struct plan *plan, const struct spec *spec, const char *from,
	const char *to, const struct error *found, struct error *err)
{
	bool quiet = spec->optional && found->code == -ENOENT;
	struct plan_item *item = plan_add(plan, spec);

	if (!item)
		return error_sys(err, -ENOMEM, "plan");
	item->missing = true;
	item->local = strdup(from);
	item->shared = strdup(to);
	item->resolved = strdup(to);
	item->problem = quiet ? NULL : strdup(found->text);
	if (!item->local || !item->shared || !item->resolved || (!quiet && !item->problem))
		return error_sys(err, -ENOMEM, "plan");
	return 0;
}

static int add_matches(struct plan *plan, const struct spec *spec,
	const struct plan_context *context, const char *from, const char *to, struct error *err)
{
	struct error found = ERROR_INIT;
	char **matches = NULL;
	size_t count = 0, taken = 0;
	int rc = glob_expand(context->stagefd, from, &matches, &count, &found);

	if (rc < 0)
		return add_unmatched(plan, spec, from, to, &found, err);
	for (size_t i = 0; i < count && rc == 0; i++) {
		/* A pattern does not mean what the tool keeps for itself. */
		if (spec_check_local(matches[i], NULL) < 0)
			continue;
		taken++;
		rc = add_one(plan, spec, context, matches[i], to, err);
	}
	glob_free(matches, count);
	if (rc == 0 && taken == 0) {
		error_set(&found, -ENOENT, "%s: nothing matches", from);
		rc = add_unmatched(plan, spec, from, to, &found, err);
	}
	return rc;
}

static int add_out(struct plan *plan, const struct spec *spec, const struct plan_context *context,
	struct error *err)
{
	autofree char *from = NULL, *to = NULL;
	int rc = plan_expand_from(spec, context, &from, err);

	if (rc == 0)
		rc = plan_expand_to(spec, context, &to, err);
	if (rc < 0)
		return rc;
	return spec->from_glob ? add_matches(plan, spec, context, from, to, err)
			       : add_one(plan, spec, context, from, to, err);
}

static int add_sync(struct plan *plan, const struct spec *spec, const struct plan_context *context,
	struct error *err)
{
	autofree char *from = NULL, *to = NULL;
	char *local = NULL;
	int rc = plan_expand_from(spec, context, &from, err);

	if (rc == 0)
		rc = plan_expand_to(spec, context, &to, err);
	if (rc == 0)
		rc = plan_target(spec, to, from, &local, err);
	return rc < 0 ? rc : add_item(plan, spec, context, local, take_ptr(from), err);
}

static int add_specs(struct plan *plan, const struct spec_list *list,
	const struct plan_context *context, enum spec_side side, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < list->count && rc == 0; i++) {
		const struct spec *spec = &list->items[i];
		bool elsewhere = spec->dist == SPEC_DIST_FIRST && context->node_index != 0;

		if (spec->side != side || (side == SPEC_IN && (!spec->sync || elsewhere)))
			continue;
		rc = side == SPEC_OUT ? add_out(plan, spec, context, err)
				      : add_sync(plan, spec, context, err);
		if (rc < 0)
			plan_error(spec, rc, err);
	}
	return rc;
}

int plan_out(const struct spec_list *list, const struct plan_context *context, struct plan **plan,
	struct error *err)
{
	struct plan *made = calloc(1, sizeof(*made));
	int rc = made ? 0 : error_sys(err, -ENOMEM, "plan");

	if (rc == 0)
		rc = add_specs(made, list, context, SPEC_OUT, err);
	if (rc == 0)
		rc = add_specs(made, list, context, SPEC_IN, err);
	if (rc == 0)
		rc = plan_check_targets(made, true, err);
	if (rc == 0)
		*plan = made;
	else
		plan_free(made);
	return rc;
}
