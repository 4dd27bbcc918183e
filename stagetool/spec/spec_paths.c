#include "spec/spec_private.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "spec/symbols.h"

#include <errno.h>
#include <string.h>

#define GLOB_BYTES "*?["

/* FROM or TO on its way into a struct spec. */
struct side_path {
	const struct spec_source *source;
	struct spec_field field;
	const char *label; /* "FROM" or "TO" */
	char *plain;       /* unescaped */
};

static int path_fail(
	const struct side_path *path, size_t index, struct error *err, const char *reason)
{
	return spec_fail(path->source, spec_offset(path->source, path->field, index), err, "%s %s",
		path->label, reason);
}

static bool component_is(const char *component, size_t length, const char *name)
{
	return length == strlen(name) && !memcmp(component, name, length);
}

static bool component_begins(const char *component, size_t length, const char *prefix)
{
	size_t prefix_length = strlen(prefix);

	return length >= prefix_length && !memcmp(component, prefix, prefix_length);
}

/* Where the last component as written begins: of "a/b/" that is the empty one. */
static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What is wrong with a path whichever side it is on. */
static int check_components(const struct side_path *path, struct error *err)
{
	const char *component = path->plain;
	bool first = true, quoted = false;

	while (*component) {
		size_t length = strcspn(component, "/");
		size_t index = (size_t)(component - path->plain);

		if (first && *component == '~')
			return path_fail(path, index, err,
				"begins with '~', which no shell expands here: write the whole "
				"path (or ./~x for a name that begins so)");
		if (*component == '$' && !quoted)
			return path_fail(path, index, err,
				"holds a name that begins with '$', which no shell expands here: "
				"write it out, or use symbols such as %u and %j (or ./$x for a "
				"name that begins so)");
		if (component_begins(component, length, SPEC_RESERVED_PREFIX))
			return path_fail(path, index, err,
				"holds a name that begins with " SPEC_RESERVED_PREFIX
				", which the tool keeps for its own files");
		quoted = component_is(component, length, ".");
		first = false;
		component += length;
		component += strspn(component, "/");
	}
	return 0;
}

static int side_path_read(struct side_path *path, struct error *err)
{
	struct error reason = ERROR_INIT;
	unsigned column;
	int rc;

	path->plain = spec_unescape(path->source, path->field);
	if (!path->plain)
		return spec_no_memory(err);
	if (!*path->plain)
		return spec_fail(path->source, path->field.start, err, "%s is empty: expected %s",
			path->label,
			path->source->side == SPEC_IN ? "FROM[:TO][,OPTION]..."
						      : "FROM:TO[,OPTION]...");
	rc = check_components(path, err);
	if (rc)
		return rc;
	if (symbols_check(path->plain, &column, &reason))
		return path_fail(path, column - 1, err, reason.text);
	return 0;
}

/* The directory that relative paths are relative to, as a piece of a spec's path: nothing in it is
 * a symbol, nor (in a pattern) a wildcard. */
static char *base_escape(const char *base, bool pattern)
{
	char *escaped = malloc(3 * strlen(base) + 1);
	char *out = escaped;

	for (; escaped && *base; base++) {
		if (pattern && strchr(GLOB_BYTES, *base)) {
			*out++ = '[';
			*out++ = *base;
			*out++ = ']';
			continue;
		}
		if (*base == '%')
			*out++ = '%';
		*out++ = *base;
	}
	if (escaped)
		*out = '\0';
	return escaped;
}

/* What is wrong with the directory that a path is relative to: what the path may not hold either. */
static int check_base(const struct side_path *path, const char *base, struct error *err)
{
	for (const char *byte = base; *byte; byte++) {
		if ((unsigned char)*byte < 0x20 || *byte == 0x7f)
			return path_fail(path, 0, err,
				"is relative to a directory whose name holds a control byte: "
				"expected an absolute path, or work in another directory");
	}
	if (strstr(base, "/" SPEC_RESERVED_PREFIX))
		return path_fail(path, 0, err,
			"is relative to a directory whose name begins with " SPEC_RESERVED_PREFIX
			", which the tool keeps for its own files: expected an absolute path, or "
			"work in another directory");
	return 0;
}

/* The path on the shared filesystem, absolute and cleaned. */
static int shared_path(const struct side_path *path, const char *base, bool pattern, char **shared,
	struct error *err)
{
	autofree char *prefix = NULL, *joined = NULL;
	int rc;

	if (*path->plain == '/') {
		*shared = path_clean(path->plain);
		return *shared ? 0 : spec_no_memory(err);
	}
	if (!base || *base != '/')
		return path_fail(path, 0, err,
			"is a relative path on the shared filesystem, and it is not known relative "
			"to what: expected an absolute path");
	rc = check_base(path, base, err);
	if (rc)
		return rc;
	prefix = base_escape(base, pattern);
	joined = prefix ? path_join(prefix, path->plain) : NULL;
	*shared = joined ? path_clean(joined) : NULL;
	return *shared ? 0 : spec_no_memory(err);
}

/* The path below $STAGE_DIR, cleaned. */
static int local_path(const struct side_path *path, char **local, struct error *err)
{
	const char *component = path->plain;

	if (*component == '/')
		return path_fail(path, 0, err,
			"is below $STAGE_DIR and must be relative to it: expected a path without "
			"'/' at its beginning");
	while (*component) {
		size_t length = strcspn(component, "/");

		if (component_is(component, length, ".."))
			return path_fail(path, (size_t)(component - path->plain), err,
				"leaves $STAGE_DIR: \"..\" is not allowed in it");
		component += length;
		component += strspn(component, "/");
	}
	*local = path_clean(path->plain);
	if (!*local)
		return spec_no_memory(err);
	if (component_is(*local, strcspn(*local, "/"), SPEC_RESERVED))
		return path_fail(path, 0, err,
			"is " SPEC_RESERVED
			" or below it, where the tool keeps its own files: choose another name");
	return 0;
}

int spec_check_local(const char *local, struct error *err)
{
	if (!*local || *local == '/' || path_has_dotdot(local))
		return error_set(err, -EINVAL, "\"%s\" is not a path below the stage", local);
	if (component_is(local, strcspn(local, "/"), SPEC_RESERVED))
		return error_set(err, -EINVAL,
			"\"%s\" is " SPEC_RESERVED
			" or below it, where the tool keeps its own files",
			local);
	for (const char *component = local; *component;) {
		size_t length = strcspn(component, "/");

		if (component_begins(component, length, SPEC_RESERVED_PREFIX))
			return error_set(err, -EINVAL,
				"\"%s\" holds a name that begins with " SPEC_RESERVED_PREFIX
				", which the tool keeps for its own files",
				local);
		component += length;
		component += strspn(component, "/");
	}
	return 0;
}

/* FROM's own name is needed, and it has one. */
static int check_named(
	const struct side_path *from, const struct spec *spec, bool to_written, struct error *err)
{
	const char *name = path_base(spec->from);

	if (strcmp(spec->from, "/") && strcmp(name, ".") && strcmp(name, ".."))
		return 0;
	return path_fail(from, 0, err,
		to_written ? "has no name of its own that it could have in a directory: give TO "
			     "the new name, without '/' at its end"
			   : "has no name of its own that it could have in $STAGE_DIR: expected "
			     "FROM:TO");
}

/* TO as it was written: a directory to go into, or a new name. */
static int check_target(const struct side_path *to, const struct spec *spec, struct error *err)
{
	const char *last = last_component(to->plain);

	if (!*last)
		return 0;
	if (spec->from_glob)
		return path_fail(to, 0, err,
			"must end in '/' where FROM is a pattern: it is the directory for what "
			"matches (write [*] [?] [[] for a '*' '?' '[' in a name)");
	if (!strcmp(last, "..") || (!strcmp(last, ".") && strcmp(spec->from, ".")))
		return path_fail(to, (size_t)(last - to->plain), err,
			"would be the new name of FROM, and '.' and '..' are none: end it in '/' "
			"for a directory that FROM goes into");
	if (!strcmp(spec->to, "/"))
		return path_fail(
			to, 0, err, "is the root of all files, which can not be a new name");
	return 0;
}

/* TO of a stage-in where none was written. */
static int default_target(const struct side_path *from, struct spec *spec, struct error *err)
{
	size_t end = from->field.end;
	int rc;

	if (spec->side == SPEC_OUT)
		return spec_fail(from->source, end, err,
			"TO is missing: expected FROM:TO, where TO is on the shared filesystem");
	if (spec->from_glob)
		return spec_fail(from->source, end, err,
			"TO is missing: where FROM is a pattern, expected FROM:TO/ (./ is "
			"$STAGE_DIR itself; write [*] [?] [[] for a '*' '?' '[' in a name)");
	rc = check_named(from, spec, false, err);
	if (rc)
		return rc;
	rc = spec_set_text(&spec->to, path_base(spec->from), err);
	if (rc)
		return rc;
	if (!strcmp(spec->to, SPEC_RESERVED))
		return path_fail(from, 0, err,
			"is called " SPEC_RESERVED
			", which the tool keeps for its own files in $STAGE_DIR: expected FROM:TO");
	return 0;
}

int spec_parse_paths(const struct spec_source *source, struct spec_field from_field,
	const struct spec_field *to_field, const char *base, bool literal, struct spec *spec,
	struct error *err)
{
	autofree char *from_plain = NULL, *to_plain = NULL;
	struct side_path from = { source, from_field, "FROM", NULL };
	struct side_path to = { source, to_field ? *to_field : from_field, "TO", NULL };
	bool in = source->side == SPEC_IN;
	int rc = side_path_read(&from, err);

	from_plain = from.plain;
	if (rc)
		return rc;
	spec->from_glob = !literal && strpbrk(from.plain, GLOB_BYTES);
	rc = in ? shared_path(&from, base, spec->from_glob, &spec->from, err)
		: local_path(&from, &spec->from, err);
	if (rc)
		return rc;
	if (!to_field)
		return default_target(&from, spec, err);
	rc = side_path_read(&to, err);
	to_plain = to.plain;
	if (rc)
		return rc;
	rc = in ? local_path(&to, &spec->to, err) : shared_path(&to, base, false, &spec->to, err);
	if (!rc)
		rc = check_target(&to, spec, err);
	spec->to_dir = !*last_component(to.plain);
	if (!rc && spec->to_dir)
		rc = check_named(&from, spec, true, err);
	return rc;
}
