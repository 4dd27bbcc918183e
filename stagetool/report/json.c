#include "base/cleanup.h"
#include "report/summary.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How many bytes from text on (up to end) are one valid UTF-8 character that is not a control; 0: none. */
static size_t json_character(const unsigned char *text, const unsigned char *end)
{
	json_t *string;
	size_t length;

	if (*text < 0x80)
		return *text >= 0x20 && *text != 0x7f;
	length = *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
	if ((size_t)(end - text) < length)
		return 0;
	string = json_stringn((const char *)text, length); /* NULL where it is not valid */
	json_decref(string);
	return string ? length : 0;
}

static char *json_escape(const char *bytes, bool *escaped)
{
	static const char digits[] = "0123456789abcdef";
	size_t length = strlen(bytes), used = 0;
	const unsigned char *text = (const unsigned char *)bytes, *end = text + length;
	char *out = malloc(4 * length + 1);

	*escaped = false;
	if (!out)
		return NULL;
	while (text < end) {
		size_t width = json_character(text, end);

		if (width) {
			memcpy(out + used, text, width);
			used += width;
			text += width;
			continue;
		}
		*escaped = true;
		memcpy(out + used, "\\x", 2);
		out[used + 2] = digits[*text >> 4];
		out[used + 3] = digits[*text & 15];
		used += 4;
		text++;
	}
	out[used] = '\0';
	return out;
}

json_t *summary_json_bytes(const char *bytes)
{
	bool escaped;
	autofree char *text = json_escape(bytes, &escaped);

	return text ? json_string(text) : NULL;
}

static json_t *json_hex(const char *bytes)
{
	static const char digits[] = "0123456789abcdef";
	size_t length = strlen(bytes);
	autofree char *text = malloc(2 * length + 1);

	if (!text)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		text[2 * i] = digits[(unsigned char)bytes[i] >> 4];
		text[2 * i + 1] = digits[(unsigned char)bytes[i] & 15];
	}
	text[2 * length] = '\0';
	return json_string(text);
}

static json_t *json_problem(const struct summary_problem *problem)
{
	json_t *object = json_object();
	bool escaped;
	autofree char *path = json_escape(problem->path, &escaped);

	json_object_set_new(object, "path", path ? json_string(path) : NULL);
	if (escaped)
		json_object_set_new(object, "path_hex", json_hex(problem->path));
	json_object_set_new(object, "kind", json_string(problem->kind));
	json_object_set_new(object, "text", summary_json_bytes(problem->text));
	return object;
}

static void json_add_count(json_t *object, const char *name, uint64_t number)
{
	json_object_set_new(object, name, json_integer((json_int_t)number));
}

json_t *summary_json(const struct summary *summary)
{
	const struct copy_counts *counts = &summary->counts;
	json_t *object = json_object(), *problems = json_array();

	json_add_count(object, "files", counts->files);
	json_add_count(object, "directories", counts->directories);
	json_add_count(object, "symlinks", counts->symlinks);
	json_add_count(object, "others", counts->others);
	json_add_count(object, "bytes", counts->bytes);
	json_add_count(object, "unchanged", counts->unchanged);
	json_add_count(object, "removed", summary->removed);
	json_add_count(object, "failed", counts->failed);
	json_add_count(object, "conflicts", counts->conflicts);
	json_add_count(object, "changed", counts->changed);
	json_add_count(object, "vanished", counts->vanished);
	json_add_count(object, "attributes", counts->attributes);
	json_add_count(object, "dropped", counts->dropped);
	json_add_count(object, "special", counts->special);
	json_object_set_new(object, "seconds", json_real(summary->seconds));
	for (size_t i = 0; i < summary->n_problems; i++)
		json_array_append_new(problems, json_problem(&summary->problems[i]));
	json_object_set_new(object, "problems", problems);
	json_add_count(object, "problems_unnamed", summary->n_unnamed);
	return object;
}
