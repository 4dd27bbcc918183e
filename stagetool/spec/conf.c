#include "spec/conf_private.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"
#include "spec/spec_private.h"
#include "spec/symbols.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_STATE_DIR "/var/lib/stagetool"
#define DEFAULT_KEEP_FAILED (7 * 24 * 3600)
#define DEFAULT_STALL_LIMIT (30 * 60)
#define DEFAULT_MIN_FREE_PERCENT 5
#define THREADS_MAX 1024
#define PROJECT_ID_MAX (UINT32_MAX - 1) /* the last one means none */
#define TIER_PREFIX "tier "

/* The keys, and in which section they are. */
enum key {
	KEY_STATE_DIR,
	KEY_DEFAULT_TIER,
	KEY_SOURCES,
	KEY_PROTECT,
	KEY_KEEP_FAILED,
	KEY_STALL_LIMIT,
	KEY_EXTEND_LIMIT,
	KEY_THREADS,
	KEY_PATH,
	KEY_MIN_FREE,
	KEY_DAX,
	KEY_PROJECT_IDS,
	N_KEYS,
};
#define N_GENERAL_KEYS KEY_PATH

static const char *const key_names[N_KEYS] = {
	[KEY_STATE_DIR] = "state_dir",
	[KEY_DEFAULT_TIER] = "default_tier",
	[KEY_SOURCES] = "sources",
	[KEY_PROTECT] = "protect",
	[KEY_KEEP_FAILED] = "keep_failed",
	[KEY_STALL_LIMIT] = "stall_limit",
	[KEY_EXTEND_LIMIT] = "extend_limit",
	[KEY_THREADS] = "threads",
	[KEY_PATH] = "path",
	[KEY_MIN_FREE] = "min_free",
	[KEY_DAX] = "dax",
	[KEY_PROJECT_IDS] = "project_ids",
};

struct loading {
	struct conf *conf;
	const char *node;
	struct conf_tier *tier; /* of the section; NULL: [stagetool], or none yet */
	unsigned general_line;  /* of [stagetool]; 0: not seen */
	unsigned section_line;
	unsigned lines[N_KEYS]; /* where each key was given (the tier's ones: in this section) */
};

void conf_free(struct conf *conf)
{
	if (!conf)
		return;
	for (size_t i = 0; i < conf->n_tiers; i++) {
		free(conf->tiers[i].name);
		free(conf->tiers[i].path);
	}
	for (size_t i = 0; i < conf->n_sources; i++)
		free(conf->sources[i]);
	for (size_t i = 0; i < conf->n_protected; i++)
		free(conf->protected[i]);
	free(conf->tiers);
	free(conf->sources);
	free(conf->protected);
	free(conf->state_dir);
	free(conf->default_tier);
	free(conf);
}

/* An absolute path for a directory of ours, %N expanded. */
static int set_path(
	const struct loading *loading, const char *value, char **path, struct error *err)
{
	const struct symbols symbols = { .node = loading->node };
	autofree char *expanded = NULL, *clean = NULL;
	int rc;

	for (const char *at = strchr(value, '%'); at; at = strchr(at + 2, '%')) {
		if (at[1] != 'N' && at[1] != '%')
			return error_set(
				err, -EINVAL, "unknown symbol: expected %%N (node) or %%%%");
	}
	rc = symbols_expand(value, &symbols, &expanded, err);
	if (rc)
		return rc;
	clean = path_clean(expanded);
	if (!clean)
		return spec_no_memory(err);
	if (*clean != '/' || !clean[1] || path_has_dotdot(clean))
		return error_set(
			err, -EINVAL, "expected an absolute path below / and without \"..\"");
	*path = take_ptr(clean);
	return 0;
}

static int add_path(char ***paths, size_t *count, const char *path, struct error *err)
{
	char **grown;

	if (*path != '/' || path_has_dotdot(path))
		return error_set(
			err, -EINVAL, "\"%s\": expected absolute paths without \"..\"", path);
	grown = spec_grow(*paths, *count, sizeof(*grown), err);
	if (!grown)
		return -ENOMEM;
	*paths = grown;
	grown[*count] = path_clean(path);
	if (!grown[*count])
		return spec_no_memory(err);
	(*count)++;
	return 0;
}

static int set_paths(char ***paths, size_t *count, const char *value, struct error *err)
{
	autofree char *copy = strdup(value);
	char *rest = NULL;
	int rc = 0;

	if (!copy)
		return spec_no_memory(err);
	for (char *path = strtok_r(copy, " \t", &rest); path && !rc;
		path = strtok_r(NULL, " \t", &rest))
		rc = add_path(paths, count, path, err);
	return rc;
}

static int set_tier_name(struct conf *conf, const char *value, struct error *err)
{
	if (!spec_is_tier_name(value))
		return error_set(err, -EINVAL, "expected the NAME of a [tier NAME] section");
	return spec_set_text(&conf->default_tier, value, err);
}

static int set_keep_failed(struct conf *conf, const char *value, struct error *err)
{
	int rc = parse_duration(value, &conf->keep_failed, err);

	if (!rc && !conf->keep_failed)
		return error_set(err, -EINVAL,
			"results that could not be brought back would be removed at once: expected "
			"at least 1s");
	return rc;
}

static int set_stall_limit(struct conf *conf, const char *value, struct error *err)
{
	conf->stall_limit = 0;
	return strcmp(value, "none") ? parse_duration(value, &conf->stall_limit, err) : 0;
}

static int set_threads(struct conf *conf, const char *value, struct error *err)
{
	uint64_t threads = 0;
	int rc = parse_number(value, 0, THREADS_MAX, &threads, err);

	conf->threads = (unsigned)threads;
	return rc;
}

static int set_dax(struct conf_tier *tier, const char *value, struct error *err)
{
	bool require = !strcmp(value, "require");

	if (!require && strcmp(value, "any"))
		return error_set(err, -EINVAL, "expected any or require");
	tier->dax = require ? CONF_DAX_REQUIRE : CONF_DAX_ANY;
	return 0;
}

/* Project 0 is that of all files that have none. */
static int set_project_ids(struct conf_tier *tier, const char *value, struct error *err)
{
	const char *dash = strchr(value, '-');
	uint64_t from = 0, to = 0;
	char first[16];
	int rc;

	if (!strcmp(value, "none"))
		return 0;
	if (!dash || dash - value >= (ptrdiff_t)sizeof(first))
		return error_set(err, -EINVAL, "expected FIRST-LAST or none");
	snprintf(first, sizeof(first), "%.*s", (int)(dash - value), value);
	rc = parse_number(first, 1, PROJECT_ID_MAX, &from, err);
	if (!rc)
		rc = parse_number(dash + 1, 1, PROJECT_ID_MAX, &to, err);
	if (!rc && from > to)
		rc = error_set(err, -EINVAL, "expected FIRST-LAST, the lower number first");
	tier->project_first = (uint32_t)from;
	tier->project_last = (uint32_t)to;
	return rc;
}

static int set_value(struct loading *loading, enum key key, const char *value, struct error *err)
{
	struct conf *conf = loading->conf;
	struct conf_tier *tier = loading->tier;

	switch (key) {
	case KEY_STATE_DIR:
		return set_path(loading, value, &conf->state_dir, err);
	case KEY_DEFAULT_TIER:
		return set_tier_name(conf, value, err);
	case KEY_SOURCES:
		return set_paths(&conf->sources, &conf->n_sources, value, err);
	case KEY_PROTECT:
		return set_paths(&conf->protected, &conf->n_protected, value, err);
	case KEY_KEEP_FAILED:
		return set_keep_failed(conf, value, err);
	case KEY_STALL_LIMIT:
		return set_stall_limit(conf, value, err);
	case KEY_EXTEND_LIMIT:
		return parse_bool(value, &conf->extend_limit, err);
	case KEY_THREADS:
		return set_threads(conf, value, err);
	case KEY_PATH:
		return set_path(loading, value, &tier->path, err);
	case KEY_MIN_FREE:
		return parse_share(value, &tier->min_free_bytes, &tier->min_free_percent, err);
	case KEY_DAX:
		return set_dax(tier, value, err);
	case KEY_PROJECT_IDS:
		return set_project_ids(tier, value, err);
	case N_KEYS:
		break;
	}
	return -EINVAL;
}

/* The key called name in this section, or N_KEYS and err. */
static enum key find_key(const struct loading *loading, const struct conf_place *place,
	const char *name, struct error *err)
{
	int first = loading->tier ? N_GENERAL_KEYS : 0;
	int end = loading->tier ? N_KEYS : N_GENERAL_KEYS;
	char names[160] = "";
	size_t used = 0;

	for (int i = first; i < end; i++) {
		if (!strcmp(name, key_names[i]))
			return (enum key)i;
		used += (size_t)snprintf(
			names + used, sizeof(names) - used, "%s%s", used ? ", " : "", key_names[i]);
	}
	for (int i = 0; i < N_KEYS; i++) {
		if (!strcmp(name, key_names[i])) {
			conf_fail(place, err, "%s belongs into a %s section", name,
				i < N_GENERAL_KEYS ? "[stagetool]" : "[tier NAME]");
			return N_KEYS;
		}
	}
	conf_fail(place, err, "unknown key \"%s\": expected one of %s", name, names);
	return N_KEYS;
}

static int on_value(void *ctx, const struct conf_place *place, const char *name, const char *value,
	struct error *err)
{
	struct loading *loading = ctx;
	struct error reason = ERROR_INIT;
	enum key key;
	int rc;

	if (!loading->section_line)
		return conf_fail(place, err,
			"%s stands before the first section: expected [stagetool] or [tier NAME]",
			name);
	key = find_key(loading, place, name, err);
	if (key == N_KEYS)
		return -EINVAL;
	if (loading->lines[key] && key != KEY_SOURCES && key != KEY_PROTECT)
		return conf_fail(place, err, "%s is given twice (first in line %u)", name,
			loading->lines[key]);
	loading->lines[key] = place->line;
	rc = set_value(loading, key, value, &reason);
	if (rc == -ENOMEM)
		return spec_no_memory(err);
	return rc ? conf_fail(place, err, "%s = %s: %s", name, value, reason.text) : 0;
}

/* A section is over. */
static int check_section(const struct loading *loading, const char *file, struct error *err)
{
	struct conf_place place = { file, loading->section_line };

	if (!loading->tier)
		return 0;
	if (!loading->tier->path)
		return conf_fail(&place, err, "[tier %s] has no path: expected path = DIRECTORY",
			loading->tier->name);
	for (const struct conf_tier *other = loading->conf->tiers; other < loading->tier; other++) {
		place.line = loading->lines[KEY_PATH];
		if (!strcmp(other->path, loading->tier->path))
			return conf_fail(&place, err, "path = %s is already the path of [tier %s]",
				other->path, other->name);
	}
	return 0;
}

static int begin_tier(struct loading *loading, const struct conf_place *place, const char *name,
	struct error *err)
{
	struct conf *conf = loading->conf;
	struct conf_tier *tiers;

	if (!spec_is_tier_name(name))
		return conf_fail(place, err,
			"[tier %s]: expected a name of letters, digits, '.', '_' and '-'", name);
	for (size_t i = 0; i < conf->n_tiers; i++) {
		if (!strcmp(name, conf->tiers[i].name))
			return conf_fail(place, err, "[tier %s] is given twice", name);
	}
	tiers = spec_grow(conf->tiers, conf->n_tiers, sizeof(*tiers), err);
	if (!tiers)
		return -ENOMEM;
	conf->tiers = tiers;
	loading->tier = &tiers[conf->n_tiers];
	*loading->tier = (struct conf_tier){ .min_free_percent = DEFAULT_MIN_FREE_PERCENT };
	conf->n_tiers++;
	return spec_set_text(&loading->tier->name, name, err);
}

static int on_section(
	void *ctx, const struct conf_place *place, const char *name, struct error *err)
{
	struct loading *loading = ctx;
	int rc = check_section(loading, place->path, err);

	if (rc)
		return rc;
	loading->section_line = place->line;
	if (!strcmp(name, "stagetool")) {
		loading->tier = NULL;
		if (loading->general_line)
			return conf_fail(place, err,
				"[stagetool] is given twice (first in line %u)",
				loading->general_line);
		loading->general_line = place->line;
		return 0;
	}
	for (int i = N_GENERAL_KEYS; i < N_KEYS; i++)
		loading->lines[i] = 0;
	if (!strncmp(name, TIER_PREFIX, strlen(TIER_PREFIX)))
		return begin_tier(loading, place, name + strlen(TIER_PREFIX), err);
	return conf_fail(
		place, err, "unknown section [%s]: expected [stagetool] or [tier NAME]", name);
}

/* What was not written gets its default; what only the whole shows is checked. */
static int conf_complete(const struct loading *loading, const char *path, struct error *err)
{
	struct conf *conf = loading->conf;
	struct conf_place place = { path, loading->lines[KEY_DEFAULT_TIER] };
	struct error reason = ERROR_INIT;
	int rc = check_section(loading, path, err);

	if (rc)
		return rc;
	if (!conf->n_tiers)
		return error_set(err, -EINVAL,
			"%s: no tier: expected a section [tier NAME] with path = DIRECTORY", path);
	if (!conf->state_dir)
		rc = spec_set_text(&conf->state_dir, DEFAULT_STATE_DIR, err);
	if (!rc && !conf->default_tier)
		rc = spec_set_text(&conf->default_tier, conf->tiers[0].name, err);
	if (rc)
		return rc;
	if (!conf_tier(conf, NULL, &reason))
		return conf_fail(
			&place, err, "default_tier = %s: %s", conf->default_tier, reason.text);
	return 0;
}

int conf_load(const char *path, const char *node, struct conf **conf, struct error *err)
{
	struct loading loading = { .conf = calloc(1, sizeof(struct conf)), .node = node };
	const struct conf_events events = { on_section, on_value, &loading };
	int rc;

	if (!loading.conf)
		return spec_no_memory(err);
	loading.conf->keep_failed = DEFAULT_KEEP_FAILED;
	loading.conf->stall_limit = DEFAULT_STALL_LIMIT;
	loading.conf->extend_limit = true;
	rc = conf_file_read(path, &events, err);
	if (!rc)
		rc = conf_complete(&loading, path, err);
	if (rc) {
		conf_free(loading.conf);
		return rc;
	}
	*conf = loading.conf;
	return 0;
}

const struct conf_tier *conf_tier(const struct conf *conf, const char *name, struct error *err)
{
	char names[512] = "", quoted[SPEC_QUOTE_SIZE];
	size_t used = 0;

	if (!name)
		name = conf->default_tier;
	for (size_t i = 0; i < conf->n_tiers; i++) {
		if (!strcmp(name, conf->tiers[i].name))
			return &conf->tiers[i];
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
				used ? ", " : "", conf->tiers[i].name);
	}
	error_set(err, -ENOENT, "there is no tier %s: expected one of %s",
		spec_quote(name, 0, quoted), names);
	return NULL;
}

bool conf_allows_source(const struct conf *conf, const char *path)
{
	if (*path != '/' || path_has_dotdot(path))
		return false;
	for (size_t i = 0; i < conf->n_sources; i++) {
		const char *source = conf->sources[i];
		size_t length = strlen(source);

		if (!source[1] ||
			(!strncmp(path, source, length) && (!path[length] || path[length] == '/')))
			return true;
	}
	return !conf->n_sources;
}
