#include "spec/spec_private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

static bool spec_is_escapable(char byte)
{
	return byte == ':' || byte == ',' || byte == '\\';
}

/* Every byte is one that a spec may hold, and every '\' escapes something. */
static int spec_check_bytes(const struct spec_source *source, struct error *err)
{
	const char *text = source->text;

	for (size_t i = 0; text[i]; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '\r' && !text[i + 1] && source->file)
			return spec_fail(source, i, err,
				"the line ends in a carriage return (0x0d): write the file with "
				"Unix line ends");
		if (byte < 0x20 || byte == 0x7f)
			return spec_fail(source, i, err,
				"control byte 0x%02x: an option may not hold one (in FROM, a "
				"pattern's ? can stand for it)",
				byte);
		if (byte != '\\')
			continue;
		if (!spec_is_escapable(text[i + 1]))
			return spec_fail(source, i, err,
				"a '\\' stands only before ':' ',' or '\\': write \\\\ for a '\\' "
				"in a name");
		i++;
	}
	return 0;
}

size_t spec_field_end(const char *text, size_t start)
{
	size_t i = start;

	while (text[i] && text[i] != ',')
		i += text[i] == '\\' ? 2 : 1;
	return i;
}

char *spec_unescape(const struct spec_source *source, struct spec_field field)
{
	char *plain = malloc(field.end - field.start + 1);
	size_t used = 0;

	if (!plain)
		return NULL;
	for (size_t i = field.start; i < field.end; i++) {
		if (source->text[i] == '\\')
			i++;
		plain[used++] = source->text[i];
	}
	plain[used] = '\0';
	return plain;
}

size_t spec_offset(const struct spec_source *source, struct spec_field field, size_t index)
{
	size_t i = field.start;

	for (; index && i < field.end; index--)
		i += source->text[i] == '\\' ? 2 : 1;
	return i;
}

/* Finds the ':' between FROM and TO (colon is field.end where there is none). */
static int spec_split(
	const struct spec_source *source, struct spec_field field, size_t *colon, struct error *err)
{
	const char *text = source->text;

	*colon = field.end;
	for (size_t i = field.start; text[i]; i++) {
		if (text[i] == '\\') {
			i++;
		} else if (text[i] == ':' && i > field.end) {
			return spec_fail(source, i, err,
				*colon == field.end
					? "a ':' after the options: expected FROM:TO,OPTIONS "
					  "(write \\: for a ':' in a value, \\, for a ',' in a "
					  "name)"
					: "a second ':': write \\: for a ':' in a value");
		} else if (text[i] == ':' && *colon != field.end) {
			return spec_fail(source, i, err,
				"a second ':': expected FROM:TO (write \\: for a ':' in a name)");
		} else if (text[i] == ':') {
			*colon = i;
		}
	}
	return 0;
}

int spec_parse(const struct spec_source *source, const char *base, bool literal, struct spec *spec,
	struct error *err)
{
	struct spec_field paths = { 0, 0 }, from, to;
	size_t colon;
	int rc = spec_check_bytes(source, err);

	memset(spec, 0, sizeof(*spec));
	spec->side = source->side;
	if (rc)
		return rc;
	paths.end = spec_field_end(source->text, 0);
	rc = spec_split(source, paths, &colon, err);
	if (rc)
		return rc;
	from = (struct spec_field){ 0, colon };
	to = (struct spec_field){ colon + 1, paths.end };
	rc = spec_parse_paths(
		source, from, colon < paths.end ? &to : NULL, base, literal, spec, err);
	if (!rc)
		rc = spec_parse_options(source, paths.end, spec, err);
	if (!rc)
		rc = spec_set_text(&spec->text, source->text, err);
	if (rc)
		spec_free(spec);
	return rc;
}

void spec_free(struct spec *spec)
{
	free(spec->text);
	free(spec->from);
	free(spec->to);
	free(spec->at);
	for (size_t i = 0; i < spec->n_patterns; i++)
		free(spec->patterns[i].glob);
	free(spec->patterns);
	memset(spec, 0, sizeof(*spec));
}
