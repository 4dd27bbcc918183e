#include "stage/plan_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/views.h"
#include "tree/glob.h"

/* Whether this process may read it: only opening it shows, on a server that has its own mind. */
static int check_readable(const char *path, const struct stat *st, struct error *err)
{
	int flags = S_ISDIR(st->st_mode) ? O_DIRECTORY : O_NONBLOCK;
	autoclose int fd = -1;

	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return error_set(err, -EINVAL, "%s is neither a file nor a directory", path);
	fd = path_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags, err);
	return fd < 0 ? fd : 0;
}

/* What FROM is: *resolved (caller frees) is NULL where it is not there and need not be. */
static int look_at_shared(const struct spec *spec, const struct conf *conf, const char *from,
	char **resolved, bool *is_dir, struct error *err)
{
	struct stat st = { 0 };
	autofree char *found = NULL;
	int rc = plan_resolve(from, &found, &st, err);

	if (rc == 0 && !st.st_mode)
		return spec->optional ? 0 : error_sys(err, -ENOENT, "%s", from);
	if (rc == 0)
		rc = plan_check_source(conf, found, err);
	if (rc == 0)
		rc = check_readable(found, &st, err);
	if (rc < 0)
		return rc;
	*is_dir = S_ISDIR(st.st_mode);
	*resolved = take_ptr(found);
	return 0;
}

static int add_item(struct plan *plan, const struct spec *spec, const struct plan_context *context,
	const char *from, const char *to, struct error *err)
{
	struct plan_item item = { .spec = spec }, *added;
	int rc = look_at_shared(spec, context->conf, from, &item.resolved, &item.is_dir, err);

	if (rc < 0 || !item.resolved)
		return rc;
	if (spec->as == SPEC_AS_UNPACK && item.is_dir)
		rc = error_set(err, -EISDIR, "%s is a directory: not an archive", from);
	if (rc == 0 && spec->at)
		rc = views_check(spec, context, plan_brings_dir(&item), err);
	if (rc < 0) {
		free(item.resolved);
		return rc;
	}
	added = plan_add(plan, spec);
	if (!added) {
		free(item.resolved);
		return error_sys(err, -ENOMEM, "plan");
	}
	*added = item;
	added->shared = strdup(from);
	return added->shared ? plan_target(spec, to, from, &added->local, err)
			     : error_sys(err, -ENOMEM, "plan");
}

static int add_matches(struct plan *plan, const struct spec *spec,
	const struct plan_context *context, const char *from, const char *to, struct error *err)
{
	char **matches = NULL;
	size_t count = 0;
	int rc = glob_expand(AT_FDCWD, from, &matches, &count, err);

	if (rc < 0)
		return rc;
	if (count == 0 && !spec->optional)
		rc = error_set(err, -ENOENT, "%s: nothing matches", from);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = add_item(plan, spec, context, matches[i], to, err);
	glob_free(matches, count);
	return rc;
}

static int add_spec(struct plan *plan, const struct spec *spec, const struct plan_context *context,
	struct error *err)
{
	autofree char *from = NULL, *to = NULL;
	int rc = plan_expand_from(spec, context, &from, err);

	if (rc == 0)
		rc = plan_expand_to(spec, context, &to, err);
	if (rc < 0)
		return rc;
	return spec->from_glob ? add_matches(plan, spec, context, from, to, err)
			       : add_item(plan, spec, context, from, to, err);
}

int plan_in(const struct spec_list *list, const struct plan_context *context, struct plan **plan,
	struct error *err)
{
	struct plan *made = calloc(1, sizeof(*made));
	int rc = made ? 0 : error_sys(err, -ENOMEM, "plan");

	for (size_t i = 0; i < list->count && rc == 0; i++) {
		const struct spec *spec = &list->items[i];

		if (spec->side != SPEC_IN ||
			(spec->dist == SPEC_DIST_FIRST && context->node_index != 0))
			continue;
		rc = add_spec(made, spec, context, err);
		if (rc < 0)
			plan_error(spec, rc, err);
	}
	if (rc == 0)
		rc = plan_check_targets(made, false, err);
	if (rc == 0)
		*plan = made;
	else
		plan_free(made);
	return rc;
}
