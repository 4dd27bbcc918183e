/*
 * include= and exclude=: a line with a path (a '/' at its end: a directory), then patterns, which
 * begin with '+' or '-'. What --stage-in takes for a pattern the filter takes, too; and what takes
 * part is reached: no directory above it is left out.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "spec/spec.h"
#include "tree/filter.h"

#define PATTERNS_MAX 64

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr(":,\\", *text))
			putc('\\', out);
		putc(*text, out);
	}
}

static bool spec_takes(const struct filter_pattern *pattern)
{
	autofree char *text = NULL;
	struct spec_list list = { 0 };
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool takes;

	fuzz_require(out);
	fputs(pattern->include ? "/x,include=" : "/x,exclude=", out);
	put_escaped(out, pattern->glob);
	fuzz_require(!fclose(out));
	takes = !spec_list_add(&list, SPEC_IN, text, NULL, NULL);
	spec_list_free(&list);
	return takes;
}

static enum filter_answer answer(const struct filter *filter, const char *path, bool is_dir)
{
	const char *name = path_base(path);
	autofree char *dir = strndup(path, name == path ? 0 : (size_t)(name - path) - 1);

	fuzz_require(dir);
	return filter_match(filter, dir, name, is_dir);
}

static void check(const struct filter *filter, char *path, bool is_dir)
{
	enum filter_answer found = answer(filter, path, is_dir);

	fuzz_require(is_dir || found != FILTER_ENTER);
	if (found == FILTER_OUT)
		return;
	for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		fuzz_require(answer(filter, path, true) != FILTER_OUT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct filter_pattern patterns[PATTERNS_MAX];
	autofree char *text = fuzz_text(data, size), *path = NULL;
	char *rest = text, *line = fuzz_line(&rest);
	struct filter *filter;
	size_t n = 0;
	bool is_dir;

	if (!line || !*line || path_has_dotdot(line))
		return 0;
	is_dir = line[strlen(line) - 1] == '/';
	path = path_clean(line + strspn(line, "/"));
	fuzz_require(path);
	while (n < PATTERNS_MAX && (line = fuzz_line(&rest)))
		if (*line == '+' || *line == '-')
			patterns[n++] = (struct filter_pattern){ *line == '+', line + 1 };
	if (filter_new(patterns, n, &filter, NULL)) {
		bool taken = true;

		for (size_t i = 0; i < n; i++)
			taken = taken && spec_takes(&patterns[i]);
		fuzz_require(!taken && !filter);
		return 0;
	}
	check(filter, path, is_dir);
	filter_free(filter);
	return 0;
}
