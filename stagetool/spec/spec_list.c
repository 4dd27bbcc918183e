#include "spec/spec_private.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define TIER_NAME_MAX 40

void spec_list_free(struct spec_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		spec_free(&list->items[i]);
	free(list->items);
	free(list->tier);
	memset(list, 0, sizeof(*list));
}

int spec_list_push(struct spec_list *list, struct spec *spec, struct error *err)
{
	struct spec *items = spec_grow(list->items, list->count, sizeof(*items), err);

	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->count++] = *spec;
	list->bytes += strlen(spec->text) + 1;
	memset(spec, 0, sizeof(*spec));
	return 0;
}

/* Back to the first count items. */
static void list_truncate(struct spec_list *list, size_t count)
{
	while (list->count > count) {
		struct spec *last = &list->items[--list->count];

		list->bytes -= strlen(last->text) + 1;
		spec_free(last);
	}
}

static int list_add_one(struct spec_list *list, const struct spec_source *source, const char *base,
	struct error *err)
{
	char quoted[SPEC_QUOTE_SIZE];
	struct spec spec;
	int rc;

	if (strlen(source->text) >= SPEC_MAX_BYTES - list->bytes)
		return error_set(err, -EINVAL,
			"%s: %s: the --stage options of this job are longer than %d bytes together",
			spec_side_name(source->side), spec_quote(source->text, 0, quoted),
			SPEC_MAX_BYTES);
	rc = spec_parse(source, base, false, &spec, err);
	if (rc)
		return rc;
	rc = spec_list_push(list, &spec, err);
	spec_free(&spec);
	return rc;
}

/* A whole file of at most SPEC_MAX_BYTES, with a NUL behind it. Caller frees. */
static int file_read(const char *path, char **text, size_t *length, struct error *err)
{
	autoclose int fd = path_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY, err);
	autofree char *buffer = NULL;
	size_t used = 0;

	if (fd < 0)
		return fd;
	buffer = malloc(SPEC_MAX_BYTES + 2);
	if (!buffer)
		return spec_no_memory(err);
	while (used <= SPEC_MAX_BYTES) {
		ssize_t got = read(fd, buffer + used, SPEC_MAX_BYTES + 1 - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno(err, "%s", path);
		if (!got)
			break;
		used += (size_t)got;
	}
	if (used > SPEC_MAX_BYTES)
		return error_set(err, -EINVAL, "%s: is longer than %d bytes", path, SPEC_MAX_BYTES);
	buffer[used] = '\0';
	*length = used;
	*text = take_ptr(buffer);
	return 0;
}

static int file_add_line(struct spec_list *list, const struct spec_source *source, size_t length,
	const char *base, struct error *err)
{
	size_t used = strlen(source->text);

	if (used < length)
		return spec_fail(source, used, err, "a NUL byte: expected a text file of specs");
	if (!used || *source->text == '#')
		return 0;
	if (*source->text == '@')
		return spec_fail(source, 0, err,
			"a file of specs can not name another one (write ./@x for a name that "
			"begins with '@')");
	return list_add_one(list, source, base, err);
}

static int list_add_lines(struct spec_list *list, struct spec_source *source, char *text,
	size_t length, const char *base, struct error *err)
{
	char *end = text + length;
	int rc = 0;

	for (char *line = text; line < end && !rc; line++) {
		char *newline = memchr(line, '\n', (size_t)(end - line));
		char *stop = newline ? newline : end;

		*stop = '\0';
		source->line++;
		source->text = line;
		rc = file_add_line(list, source, (size_t)(stop - line), base, err);
		line = stop;
	}
	return rc;
}

static int list_add_file(struct spec_list *list, enum spec_side side, const char *file,
	const char *base, struct error *err)
{
	struct spec_source source = { side, file, 0, NULL };
	char *path = *file == '/' ? strdup(file) : path_join(base, file);
	char *text = NULL;
	size_t length = 0;
	int rc = path ? file_read(path, &text, &length, err) : spec_no_memory(err);

	free(path);
	if (rc)
		return error_prefix(err, rc, "%s: file of specs", spec_side_name(side));
	rc = list_add_lines(list, &source, text, length, base, err);
	free(text);
	return rc;
}

int spec_list_add(struct spec_list *list, enum spec_side side, const char *text, const char *base,
	struct error *err)
{
	struct spec_source source = { side, NULL, 0, text };
	size_t count = list->count;
	int rc;

	if (*text != '@')
		return list_add_one(list, &source, base, err);
	if (!text[1])
		return spec_fail(&source, 1, err, "a file name is missing: expected @FILE");
	if (text[1] != '/' && !base)
		return spec_fail(&source, 1, err,
			"the file is named by a relative path, and it is not known relative to "
			"what: expected @/PATH");
	rc = list_add_file(list, side, text + 1, base, err);
	if (rc)
		list_truncate(list, count);
	return rc;
}

bool spec_is_tier_name(const char *name)
{
	size_t length =
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	return length && !name[length] && length <= TIER_NAME_MAX && !strchr("._-", *name);
}

int spec_list_set_tier(struct spec_list *list, const char *name, struct error *err)
{
	char quoted[SPEC_QUOTE_SIZE];

	if (!spec_is_tier_name(name))
		return error_set(err, -EINVAL,
			"--stage-tier: %s is not the name of a tier: expected letters, digits, "
			"'.', '_' and '-', as in nvme",
			spec_quote(name, 0, quoted));
	return spec_set_text(&list->tier, name, err);
}

int spec_list_set_size(struct spec_list *list, const char *text, struct error *err)
{
	char quoted[SPEC_QUOTE_SIZE];
	struct error reason = ERROR_INIT;
	uint64_t size;
	int rc = parse_size(text, &size, &reason);

	if (rc == -ERANGE)
		return error_set(err, -EINVAL, "--stage-size: %s is too large for a size",
			spec_quote(text, 0, quoted));
	if (rc || !size)
		return error_set(err, -EINVAL,
			"--stage-size: %s is not a size%s: expected a number and K, M, G, T or P, "
			"as in 500G or 1.5T",
			spec_quote(text, 0, quoted), rc ? "" : " that can hold anything");
	list->size = size;
	return 0;
}
