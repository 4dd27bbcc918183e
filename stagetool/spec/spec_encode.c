#include "spec/spec_private.h"

#include "base/cleanup.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * The text: a line "stagetool 1", then "in SPEC", "out SPEC", "tier NAME", "size BYTES". A SPEC has
 * its shared side absolute, so it means the same in any directory. "in-literal SPEC" is one whose
 * FROM holds wildcards that are only names: those of the directory it was relative to.
 */
#define HEADER "stagetool 1"

/* Text that grows; failed once memory ran out. */
struct encoding {
	char *text;
	size_t used, size;
	bool failed;
};

static void put_bytes(struct encoding *out, const char *bytes, size_t length)
{
	if (out->used + length + 1 > out->size && !out->failed) {
		size_t size = 2 * (out->used + length + 1);
		char *text = realloc(out->text, size);

		out->failed = !text;
		if (text) {
			out->text = text;
			out->size = size;
		}
	}
	if (out->failed)
		return;
	memcpy(out->text + out->used, bytes, length);
	out->used += length;
	out->text[out->used] = '\0';
}

static void put_text(struct encoding *out, const char *text)
{
	put_bytes(out, text, strlen(text));
}

static void put_escaped(struct encoding *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (memchr(":,\\", text[i], 3))
			put_bytes(out, "\\", 1);
		put_bytes(out, text + i, 1);
	}
}

/* A path so that it is read back as it is: "./" goes before what would be taken for more than a
 * name. */
static void put_path(struct encoding *out, const char *path)
{
	if (*path == '@' || *path == '~')
		put_text(out, "./");
	while (*path) {
		size_t length = strcspn(path, "/");

		length += path[length] == '/';
		if (*path == '$')
			put_text(out, "./");
		put_escaped(out, path, length);
		path += length;
	}
}

static void put_option(void *ctx, const char *name, const char *value)
{
	struct encoding *out = ctx;

	put_text(out, ",");
	put_text(out, name);
	if (value) {
		put_text(out, "=");
		put_escaped(out, value, strlen(value));
	}
}

static void put_spec(struct encoding *out, const struct spec *spec)
{
	if (spec->side == SPEC_OUT)
		put_text(out, "out ");
	else if (!spec->from_glob && strpbrk(spec->from, "*?["))
		put_text(out, "in-literal ");
	else
		put_text(out, "in ");
	put_path(out, spec->from);
	put_text(out, ":");
	put_path(out, spec->to);
	if (spec->to_dir && strcmp(spec->to, "/"))
		put_text(out, "/");
	spec_each_option(spec, put_option, out);
	put_text(out, "\n");
}

int spec_list_encode(const struct spec_list *list, char **text, struct error *err)
{
	struct encoding out = { NULL, 0, 0, false };
	char size[32];

	put_text(&out, HEADER "\n");
	for (size_t i = 0; i < list->count; i++)
		put_spec(&out, &list->items[i]);
	if (list->tier) {
		put_text(&out, "tier ");
		put_text(&out, list->tier);
		put_text(&out, "\n");
	}
	if (list->size) {
		snprintf(size, sizeof(size), "size %llu\n", (unsigned long long)list->size);
		put_text(&out, size);
	}
	if (out.failed || out.used > SPEC_MAX_BYTES) {
		free(out.text);
		if (out.failed)
			return spec_no_memory(err);
		return error_set(err, -EINVAL,
			"the --stage options of this job are longer than %d bytes together, "
			"relative paths made absolute",
			SPEC_MAX_BYTES);
	}
	*text = out.text;
	return 0;
}

static int decode_spec(struct spec_list *list, enum spec_side side, bool literal, const char *text,
	struct error *err)
{
	struct spec_source source = { side, NULL, 0, text };
	struct spec spec;
	int rc = spec_parse(&source, NULL, literal, &spec, err);

	if (rc)
		return rc;
	rc = spec_list_push(list, &spec, err);
	spec_free(&spec);
	return rc;
}

static int decode_line(struct spec_list *list, char *line, struct error *err)
{
	char *value = strchr(line, ' ');

	if (value) {
		*value++ = '\0';
		if (!strcmp(line, "in"))
			return decode_spec(list, SPEC_IN, false, value, err);
		if (!strcmp(line, "in-literal"))
			return decode_spec(list, SPEC_IN, true, value, err);
		if (!strcmp(line, "out"))
			return decode_spec(list, SPEC_OUT, false, value, err);
		if (!strcmp(line, "tier") && !list->tier)
			return spec_list_set_tier(list, value, err);
		if (!strcmp(line, "size") && !list->size)
			return spec_list_set_size(list, value, err);
	}
	return error_set(err, -EINVAL,
		"unknown, or given twice: expected in, out, tier or size and its value");
}

static int decode_lines(struct spec_list *list, char *text, struct error *err)
{
	unsigned number = 0;

	while (*text) {
		char *end = strchr(text, '\n');
		int rc;

		number++;
		if (!end)
			return error_set(err, -EINVAL, "line %u is cut off", number);
		*end = '\0';
		if (number == 1 && strcmp(text, HEADER))
			return error_set(err, -EINVAL,
				"they were written by another version of stagetool: expected "
				"\"" HEADER "\" first");
		rc = number == 1 ? 0 : decode_line(list, text, err);
		if (rc)
			return error_prefix(err, rc, "line %u", number);
		text = end + 1;
	}
	return number ? 0 : error_set(err, -EINVAL, "they are empty");
}

int spec_list_decode(const char *text, struct spec_list *list, struct error *err)
{
	struct spec_list decoded = { 0 };
	autofree char *copy = NULL;
	int rc;

	if (strnlen(text, SPEC_MAX_BYTES + 1) > SPEC_MAX_BYTES)
		return error_set(err, -EINVAL, "the job's staging options: longer than %d bytes",
			SPEC_MAX_BYTES);
	copy = strdup(text);
	if (!copy)
		return spec_no_memory(err);
	rc = decode_lines(&decoded, copy, err);
	if (!rc)
		rc = spec_list_check(&decoded, err);
	if (rc) {
		spec_list_free(&decoded);
		return error_prefix(err, rc, "the job's staging options");
	}
	*list = decoded;
	return 0;
}
