/*
 * A job's options: lines of which the first byte says what the rest is.
 *   i, o  a value of --stage-in, --stage-out      t, z  of --stage-tier, --stage-size
 *   b     the directory that relative paths of the next lines are relative to
 *   v     what all symbols stand for              d     the rest of the input is an encoded text
 * What is accepted is encoded and decoded again, and must be the same; its paths are expanded.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "spec/spec.h"
#include "spec/symbols.h"

#include <fnmatch.h>

struct asked {
	struct spec_list list;
	const char *base, *value;
};

static void check_failed(const struct error *err)
{
	fuzz_require(err->code < 0 && *err->text);
}

static void add(struct asked *asked, enum spec_side side, const char *text)
{
	size_t count = asked->list.count, bytes = asked->list.bytes;
	struct error err = ERROR_INIT;

	if (*text == '@') /* files of this machine */
		return;
	if (!spec_list_add(&asked->list, side, text, asked->base, &err)) {
		fuzz_require(asked->list.count == count + 1);
		return;
	}
	check_failed(&err);
	fuzz_require(asked->list.count == count && asked->list.bytes == bytes);
}

static void read_line(struct asked *asked, const char *line)
{
	switch (*line) {
	case 'i':
		add(asked, SPEC_IN, line + 1);
		break;
	case 'o':
		add(asked, SPEC_OUT, line + 1);
		break;
	case 't':
		spec_list_set_tier(&asked->list, line + 1, NULL);
		break;
	case 'z':
		spec_list_set_size(&asked->list, line + 1, NULL);
		break;
	case 'b':
		asked->base = line[1] == '/' ? line + 1 : NULL;
		break;
	case 'v':
		asked->value = line + 1;
		break;
	default:
		break;
	}
}

static void check_equal(const struct spec *a, const struct spec *b)
{
	fuzz_require(a->side == b->side && !strcmp(a->from, b->from) && !strcmp(a->to, b->to));
	fuzz_require(a->from_glob == b->from_glob && a->to_dir == b->to_dir);
	fuzz_require(a->dist == b->dist && a->when == b->when && a->conflict == b->conflict);
	fuzz_require(a->gather == b->gather && a->gather_set == b->gather_set);
	fuzz_require(a->sync == b->sync && a->verify == b->verify && a->optional == b->optional);
	fuzz_require(a->remove == b->remove && a->receipt == b->receipt);
	fuzz_require(a->n_patterns == b->n_patterns);
	for (size_t i = 0; i < a->n_patterns; i++) {
		fuzz_require(a->patterns[i].include == b->patterns[i].include);
		fuzz_require(!strcmp(a->patterns[i].glob, b->patterns[i].glob));
	}
}

static void check_lists_equal(const struct spec_list *a, const struct spec_list *b)
{
	fuzz_require(a->count == b->count && a->size == b->size && !a->tier == !b->tier);
	fuzz_require(!a->tier || !strcmp(a->tier, b->tier));
	for (size_t i = 0; i < a->count; i++)
		check_equal(&a->items[i], &b->items[i]);
}

static size_t components(const char *path)
{
	size_t slashes = 0;

	for (; *path; path++)
		slashes += *path == '/';
	return slashes;
}

/* A value adds no component and, in a pattern, no wildcard. */
static void check_symbols(const char *path, const char *value, bool local)
{
	const struct symbols values = { value, value, value, value, value, value, value };
	autofree char *plain = NULL, *pattern = NULL;
	struct error err = ERROR_INIT;

	if (symbols_expand(path, &values, &plain, &err)) {
		check_failed(&err);
		fuzz_require(symbols_expand_pattern(path, &values, &pattern, NULL));
		return;
	}
	fuzz_require(!symbols_expand_pattern(path, &values, &pattern, NULL));
	fuzz_require(components(plain) == components(path));
	if (!strpbrk(path, "*?["))
		fuzz_require(!fnmatch(pattern, plain, FNM_PATHNAME | FNM_PERIOD | FNM_NOESCAPE));
	if (local && spec_check_local(plain, &err))
		check_failed(&err);
}

static void check_path(const char *path, bool local, const char *value)
{
	autofree char *clean = path_clean(path);

	fuzz_require(clean && !strcmp(clean, path));
	fuzz_require(!symbols_check(path, NULL, NULL));
	if (local)
		fuzz_require(!spec_check_local(path, NULL));
	else
		fuzz_require(*path == '/');
	check_symbols(path, value, local);
}

static void check_round_trip(const struct spec_list *list)
{
	struct spec_list again = { 0 };
	struct error err = ERROR_INIT;
	autofree char *text = NULL, *text_again = NULL;

	if (spec_list_check(list, &err) || spec_list_encode(list, &text, &err)) {
		check_failed(&err);
		return;
	}
	fuzz_require(!spec_list_decode(text, &again, NULL));
	check_lists_equal(list, &again);
	fuzz_require(!spec_list_encode(&again, &text_again, NULL));
	fuzz_require(!strcmp(text, text_again));
	spec_list_free(&again);
}

static void read_encoded(const char *text)
{
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;

	if (spec_list_decode(text, &list, &err)) {
		check_failed(&err);
		fuzz_require(!list.count && !list.items);
		return;
	}
	check_round_trip(&list);
	spec_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct asked asked = { .value = "7" };
	autofree char *text = fuzz_text(data, size);
	char *rest = text, *line;

	while (rest && *rest != 'd' && (line = fuzz_line(&rest)))
		read_line(&asked, line);
	if (rest && *rest == 'd')
		read_encoded(rest + 1);
	for (size_t i = 0; i < asked.list.count; i++) {
		const struct spec *spec = &asked.list.items[i];

		check_path(spec->from, spec->side == SPEC_OUT, asked.value);
		check_path(spec->to, spec->side == SPEC_IN, asked.value);
	}
	check_round_trip(&asked.list);
	spec_list_free(&asked.list);
	return 0;
}
