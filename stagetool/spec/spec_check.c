#include "spec/spec_private.h"

#include "base/cleanup.h"
#include "base/path.h"

#include <errno.h>
#include <string.h>

/* A place that a spec writes to. */
struct target {
	const struct spec *spec;
	char *path;
	const char *what; /* of the spec's work, for a message: "", " (sync)" or " (receipt)" */
	bool pattern;     /* the directory for what a pattern matches, not an entry itself */
};

struct targets {
	struct target *all;
	size_t count;
};

static void targets_free(struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		free(targets->all[i].path);
	free(targets->all);
}

static int targets_add(struct targets *targets, const struct spec *spec, const char *path,
	const char *what, struct error *err)
{
	struct target *target = &targets->all[targets->count++];

	*target = (struct target){ spec, NULL, what, spec->from_glob };
	return spec_set_text(&target->path, path, err);
}

/* Where what is at FROM will be: below TO where that is a directory. */
static int targets_add_to(struct targets *targets, const struct spec *spec, struct error *err)
{
	autofree char *below = NULL;

	if (!spec->to_dir || spec->from_glob)
		return targets_add(targets, spec, spec->to, "", err);
	if (!strcmp(spec->to, "."))
		return targets_add(targets, spec, path_base(spec->from), "", err);
	below = path_join(spec->to, path_base(spec->from));
	return below ? targets_add(targets, spec, below, "", err) : spec_no_memory(err);
}

/* The receipt of the target that was added last. */
static int targets_add_receipt(struct targets *targets, const struct spec *spec, struct error *err)
{
	static const char suffix[] = ".receipt.json";
	const char *path = targets->all[targets->count - 1].path;
	autofree char *receipt = malloc(strlen(path) + sizeof(suffix));

	if (!receipt)
		return spec_no_memory(err);
	stpcpy(stpcpy(receipt, path), suffix);
	return targets_add(targets, spec, receipt, " (receipt)", err);
}

static int compare_bytes(unsigned char a, unsigned char b)
{
	/* What is below an entry comes right after it: '/' is less than any byte of a name. */
	return (a == '/' ? 1 : a) - (b == '/' ? 1 : b);
}

static int target_compare(const void *left, const void *right)
{
	const struct target *a = left, *b = right;
	const char *x = a->path, *y = b->path;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	if (*x || *y)
		return compare_bytes((unsigned char)*x, (unsigned char)*y);
	if (a->pattern != b->pattern)
		return a->pattern - b->pattern;
	return (a->spec > b->spec) - (a->spec < b->spec);
}

/* equal: both write one entry; else inner's is inside what outer brings. The spec that was written
 * first is named first. */
static int targets_fail(
	const struct target *outer, const struct target *inner, bool equal, struct error *err)
{
	const struct target *first = outer->spec < inner->spec ? outer : inner;
	const struct target *second = first == outer ? inner : outer;
	const char *place = inner->spec->side == SPEC_IN && !*inner->what ? " in $STAGE_DIR" : "";
	char texts[2][SPEC_QUOTE_SIZE], path[SPEC_QUOTE_SIZE];

	return error_set(err, -EINVAL, "%s %s%s and %s %s%s: %s %s%s: give one of them another TO",
		spec_side_name(first->spec->side), spec_quote(first->spec->text, 0, texts[0]),
		first->what, spec_side_name(second->spec->side),
		spec_quote(second->spec->text, 0, texts[1]), second->what,
		equal ? "both have the target" : "one goes inside what the other one brings, to",
		spec_quote(inner->path, 0, path), place);
}

static bool path_is_inside(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return !strncmp(path, directory, length) &&
	       (path[length] == '/' || (length && directory[length - 1] == '/'));
}

/* nested: also refuses a target that is inside what another spec writes. */
static int targets_check(struct targets *targets, bool nested, struct error *err)
{
	const struct target *whole = NULL;

	qsort(targets->all, targets->count, sizeof(*targets->all), target_compare);
	for (size_t i = 0; i < targets->count; i++) {
		const struct target *next = &targets->all[i];

		if (whole && !strcmp(whole->path, next->path) && (nested || !next->pattern))
			return targets_fail(whole, next, !next->pattern, err);
		if (whole && nested && path_is_inside(next->path, whole->path))
			return targets_fail(whole, next, false, err);
		if (!next->pattern)
			whole = next;
	}
	return 0;
}

static int collect_in(const struct spec_list *list, struct targets *targets, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < list->count && !rc; i++) {
		const struct spec *spec = &list->items[i];

		if (spec->side == SPEC_IN)
			rc = targets_add_to(targets, spec, err);
	}
	return rc;
}

/* What is written on the shared filesystem. A receipt is written last, over what another spec
 * brought. */
static int collect_out(const struct spec_list *list, struct targets *targets, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < list->count && !rc; i++) {
		const struct spec *spec = &list->items[i];

		if (spec->side == SPEC_IN && spec->sync)
			rc = targets_add(targets, spec, spec->from, " (sync)", err);
		if (spec->side == SPEC_IN)
			continue;
		rc = targets_add_to(targets, spec, err);
		if (!rc && spec->receipt && !spec->from_glob)
			rc = targets_add_receipt(targets, spec, err);
	}
	return rc;
}

/* One place shows one thing. */
static int check_places(const struct spec_list *list, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		for (size_t j = 0; list->items[i].at && j < i; j++) {
			const struct spec *a = &list->items[j], *b = &list->items[i];
			char texts[2][SPEC_QUOTE_SIZE];

			if (a->at && !strcmp(a->at, b->at))
				return error_set(err, -EINVAL,
					"--stage-in %s and --stage-in %s: both are to be seen at "
					"%s: give one of them another at=",
					spec_quote(a->text, 0, texts[0]),
					spec_quote(b->text, 0, texts[1]), a->at);
		}
	}
	return 0;
}

int spec_list_check(const struct spec_list *list, struct error *err)
{
	struct targets targets = { calloc(2 * list->count + 1, sizeof(struct target)), 0 };
	int rc;

	if (!targets.all)
		return spec_no_memory(err);
	rc = collect_in(list, &targets, err);
	if (!rc)
		rc = targets_check(&targets, true, err);
	while (targets.count)
		free(targets.all[--targets.count].path);
	if (!rc)
		rc = collect_out(list, &targets, err);
	if (!rc)
		rc = targets_check(&targets, false, err);
	targets_free(&targets);
	return rc ? rc : check_places(list, err);
}
