#include "spec/symbols.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static const char known[] = "jAaxuNn%";

int symbols_check(const char *text, unsigned *column, struct error *err)
{
	for (size_t i = 0; text[i]; i++) {
		if (text[i] != '%')
			continue;
		if (text[i + 1] && strchr(known, text[i + 1])) {
			i++;
			continue;
		}
		if (column)
			*column = (unsigned)i + 1;
		return error_set(err, -EINVAL,
			"holds the unknown symbol \"%.*s\": expected %%j (job id), %%A %%a "
			"(array), %%x (job name), %%u (user), %%N (node), %%n (node index) or %%%% "
			"(a '%%')",
			text[i + 1] && (unsigned char)text[i + 1] < 0x80 ? 2 : 1, text + i);
	}
	return 0;
}

bool symbols_has_node(const char *text)
{
	for (; *text; text++) {
		if (*text != '%')
			continue;
		text++;
		if (*text == 'N' || *text == 'n')
			return true;
		if (!*text)
			break;
	}
	return false;
}

static const char *symbols_value(const struct symbols *values, char symbol)
{
	switch (symbol) {
	case 'j':
		return values->job_id;
	case 'A':
		return values->array_job_id;
	case 'a':
		return values->array_task_id;
	case 'x':
		return values->job_name;
	case 'u':
		return values->user;
	case 'N':
		return values->node;
	case 'n':
		return values->node_index;
	default:
		return "%";
	}
}

/* Text that grows. */
struct output {
	char *text;
	size_t used, size;
};

static int output_add(struct output *output, char byte, struct error *err)
{
	if (output->used == output->size) {
		size_t size = output->size ? 2 * output->size : 128;
		char *text = realloc(output->text, size);

		if (!text)
			return error_sys(err, -ENOMEM, "expanding a path");
		output->text = text;
		output->size = size;
	}
	output->text[output->used++] = byte;
	return 0;
}

/* A value never adds a component, nor (in a pattern) a wildcard. */
static int output_add_value(
	struct output *output, const char *value, bool pattern, struct error *err)
{
	int rc = 0;

	for (; *value && !rc; value++) {
		unsigned char byte = (unsigned char)*value;

		if (byte == '/' || byte < 0x20 || byte == 0x7f) {
			rc = output_add(output, '_', err);
		} else if (pattern && strchr("*?[", byte)) {
			rc = output_add(output, '[', err);
			if (!rc)
				rc = output_add(output, (char)byte, err);
			if (!rc)
				rc = output_add(output, ']', err);
		} else {
			rc = output_add(output, (char)byte, err);
		}
	}
	return rc;
}

/* The component that text begins with came out as result. One without a symbol is what the user
 * wrote. */
static int symbols_check_component(const char *text, const char *result, struct error *err)
{
	size_t length = strcspn(text, "/");

	if (!memchr(text, '%', length))
		return 0;
	if (*result && strcmp(result, ".") && strcmp(result, ".."))
		return 0;
	return error_set(err, -EINVAL, "\"%.*s\" comes out as \"%s\", which is no name",
		(int)length, text, result);
}

static int symbols_expand_component(struct output *output, const char **rest,
	const struct symbols *values, bool pattern, struct error *err)
{
	const char *text = *rest;
	size_t start = output->used;
	int rc = 0;

	for (; *text && *text != '/' && !rc; text++) {
		const char *value;

		if (*text != '%') {
			rc = output_add(output, *text, err);
			continue;
		}
		value = symbols_value(values, *++text);
		if (!value)
			return error_set(err, -EINVAL, "%%%c is not known here", *text);
		rc = output_add_value(output, value, pattern, err);
	}
	if (!rc)
		rc = output_add(output, '\0', err);
	if (!rc)
		rc = symbols_check_component(*rest, output->text + start, err);
	if (rc)
		return rc;
	output->used--;
	*rest = text;
	return 0;
}

static int expand(
	const char *text, const struct symbols *values, bool pattern, char **out, struct error *err)
{
	struct output output = { NULL, 0, 0 };
	int rc = symbols_check(text, NULL, err);

	while (!rc && *text) {
		rc = *text == '/' ? output_add(&output, *text++, err)
				  : symbols_expand_component(&output, &text, values, pattern, err);
	}
	if (!rc)
		rc = output_add(&output, '\0', err);
	if (rc) {
		free(output.text);
		return rc;
	}
	*out = output.text;
	return 0;
}

int symbols_expand(const char *text, const struct symbols *values, char **out, struct error *err)
{
	return expand(text, values, false, out, err);
}

int symbols_expand_pattern(
	const char *text, const struct symbols *values, char **out, struct error *err)
{
	return expand(text, values, true, out, err);
}
