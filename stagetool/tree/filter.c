#include "tree/filter.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

/* A longer name than any filesystem has. */
#define COMPONENT_SIZE 4096

struct rule {
	bool include;
	bool only_dirs; /* it ended in '/' */
	bool by_path;   /* it held a '/': parts are matched from the root on; else the one part
			   anywhere */
	char *text;     /* what parts point into */
	char **parts;
	size_t n_parts;
};

struct filter {
	size_t n_rules;
	struct rule rules[];
};

/* The components of dir, then name. */
struct cursor {
	const char *dir;
	const char *name; /* NULL: it was given out */
};

static bool cursor_at_end(const struct cursor *cursor)
{
	return !*cursor->dir && !cursor->name;
}

static bool cursor_next(struct cursor *cursor, char component[COMPONENT_SIZE])
{
	const char *start = *cursor->dir ? cursor->dir : cursor->name;
	size_t length;

	if (!start)
		return false;
	length = strcspn(start, "/");
	if (start == cursor->dir)
		cursor->dir += length + (start[length] == '/');
	else
		cursor->name = NULL;
	if (length >= COMPONENT_SIZE)
		length = COMPONENT_SIZE - 1;
	memcpy(component, start, length);
	component[length] = '\0';
	return true;
}

static bool part_matches(const char *part, const char *component)
{
	return !fnmatch(part, component, FNM_NOESCAPE);
}

static bool part_is_any(const char *part)
{
	return !strcmp(part, "**");
}

static int rule_split(struct rule *rule, const char *glob, struct error *err)
{
	size_t n = 1;
	char *at, *rest = NULL;

	for (const char *slash = rule->text; (slash = strchr(slash, '/')); slash++)
		n++;
	rule->parts = calloc(n, sizeof(*rule->parts));
	if (!rule->parts)
		return error_sys(err, -ENOMEM, "pattern %s", glob);
	for (at = strtok_r(rule->text, "/", &rest); at; at = strtok_r(NULL, "/", &rest)) {
		if (!strcmp(at, ".") || !strcmp(at, ".."))
			return error_set(err, -EINVAL,
				"pattern %s: \".\" and \"..\" match nothing: expected names and "
				"wildcards",
				glob);
		if (rule->n_parts && part_is_any(at) && part_is_any(rule->parts[rule->n_parts - 1]))
			continue;
		rule->parts[rule->n_parts++] = at;
	}
	if (!rule->n_parts)
		return error_set(
			err, -EINVAL, "pattern \"%s\": expected names and wildcards", glob);
	return 0;
}

static int rule_init(struct rule *rule, const struct filter_pattern *pattern, struct error *err)
{
	const char *slash = strchr(pattern->glob, '/');
	size_t length = strlen(pattern->glob);

	rule->include = pattern->include;
	rule->only_dirs = length && pattern->glob[length - 1] == '/';
	rule->by_path = slash && slash[1 + strspn(slash + 1, "/")];
	/* "/name" is at the root only. */
	if (*pattern->glob == '/')
		rule->by_path = true;
	rule->text = strdup(pattern->glob);
	if (!rule->text)
		return error_sys(err, -ENOMEM, "pattern %s", pattern->glob);
	return rule_split(rule, pattern->glob, err);
}

int filter_new(
	const struct filter_pattern *patterns, size_t n, struct filter **filter, struct error *err)
{
	struct filter *made;

	*filter = NULL;
	if (!n)
		return 0;
	made = calloc(1, sizeof(*made) + n * sizeof(made->rules[0]));
	if (!made)
		return error_sys(err, -ENOMEM, "patterns");
	for (made->n_rules = 0; made->n_rules < n;) {
		struct rule *rule = &made->rules[made->n_rules];
		int rc = rule_init(rule, &patterns[made->n_rules++], err);

		if (rc) {
			filter_free(made);
			return rc;
		}
	}
	*filter = made;
	return 0;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; i < filter->n_rules; i++) {
		free(filter->rules[i].text);
		free(filter->rules[i].parts);
	}
	free(filter);
}

/* Whether the parts match the path, or a directory on the way. Where a part after "**" does not
 * match, that "**" takes one component more, and no earlier one has to: they have left the longest
 * rest that there is. So the time is that of the path times that of the pattern, and no recursion
 * is as deep. */
static bool parts_match(const struct rule *rule, struct cursor cursor, bool is_dir)
{
	struct cursor resume = cursor;
	size_t part = 0, after_any = 0; /* 0: there was no "**" yet */
	char component[COMPONENT_SIZE];

	while (part < rule->n_parts) {
		bool any = part_is_any(rule->parts[part]);

		/* At the end it stands for what is inside, not for the directory itself. */
		if (any && part + 1 < rule->n_parts) {
			after_any = ++part;
			resume = cursor;
		} else if (cursor_next(&cursor, component) &&
			   (any || part_matches(rule->parts[part], component))) {
			part++;
		} else {
			if (!after_any || !cursor_next(&resume, component))
				return false;
			cursor = resume;
			part = after_any;
		}
	}
	return !rule->only_dirs || is_dir || !cursor_at_end(&cursor);
}

/* Whether the rule matches the entry or a directory that it is in. */
static bool rule_matches(const struct rule *rule, struct cursor cursor, bool is_dir)
{
	char component[COMPONENT_SIZE];

	if (rule->by_path)
		return parts_match(rule, cursor, is_dir);
	while (cursor_next(&cursor, component)) {
		if (part_matches(rule->parts[0], component))
			return !rule->only_dirs || is_dir || !cursor_at_end(&cursor);
	}
	return false;
}

/* Whether the rule could match something below the directory. */
static bool rule_reaches(const struct rule *rule, struct cursor cursor)
{
	char component[COMPONENT_SIZE];

	if (!rule->by_path)
		return true;
	for (size_t part = 0; part < rule->n_parts; part++) {
		if (part_is_any(rule->parts[part]) || !cursor_next(&cursor, component))
			return true;
		if (!part_matches(rule->parts[part], component))
			return false;
	}
	return false;
}

enum filter_answer filter_match(
	const struct filter *filter, const char *dir, const char *name, bool is_dir)
{
	const struct cursor cursor = { dir, name };
	size_t after;
	bool in;

	if (!filter)
		return FILTER_IN;
	for (after = filter->n_rules; after; after--) {
		if (rule_matches(&filter->rules[after - 1], cursor, is_dir))
			break;
	}
	in = after ? filter->rules[after - 1].include : !filter->rules[0].include;
	if (in)
		return FILTER_IN;
	for (; is_dir && after < filter->n_rules; after++) {
		if (filter->rules[after].include && rule_reaches(&filter->rules[after], cursor))
			return FILTER_ENTER;
	}
	return FILTER_OUT;
}
