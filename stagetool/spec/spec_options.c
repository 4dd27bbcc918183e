#include "spec/spec_private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIDE_IN (1U << SPEC_IN)
#define SIDE_OUT (1U << SPEC_OUT)

enum option_kind {
	OPTION_FLAG,    /* sets a bool */
	OPTION_CHOICE,  /* sets an enum to the index of a value */
	OPTION_PATTERN, /* adds a pattern; repeatable */
	OPTION_PLACE,   /* the path of at= */
	OPTION_ABSENT,  /* planned: refused by name, never ignored */
};

struct option {
	const char *name;
	unsigned sides;
	enum option_kind kind;
	size_t place;              /* in struct spec */
	const char *const *values; /* in the order of the enum */
	const char *const *absent; /* values that are planned */
};

#define NO_PLACE SIZE_MAX

static const char *const as_values[] = { "copy", "unpack", NULL };
static const char *const as_absent[] = { "image", "overlay", "lazy", NULL };
static const char *const dist_values[] = { "all", "first", NULL };
static const char *const dist_absent[] = { "shard", "bcast", NULL };
static const char *const when_values[] = { "always", "success", "failure", NULL };
static const char *const gather_values[] = { "subdir", "merge", NULL };
static const char *const conflict_values[] = { "keep", "fail", "overwrite", NULL };
/* In the order of enum spec_pack, and of what comes first in a message. */
static const char *const pack_values[] = { "none", "tar.zst", "tar.gz", "tar", "zip", NULL };
static const char *const none[] = { NULL };

enum option_id {
	OPTION_AS,
	OPTION_DIST,
	OPTION_AT,
	OPTION_SYNC,
	OPTION_CACHE,
	OPTION_WHEN,
	OPTION_GATHER,
	OPTION_PACK,
	OPTION_CONFLICT,
	OPTION_DELETE,
	OPTION_RECEIPT,
	OPTION_INCLUDE,
	OPTION_EXCLUDE,
	OPTION_VERIFY,
	OPTION_OPTIONAL,
	N_OPTIONS,
};

#define FLAG(name, sides, member)                                                                  \
	{                                                                                          \
		name, sides, OPTION_FLAG, offsetof(struct spec, member), none, none                \
	}
#define CHOICE(name, sides, member, values, absent)                                                \
	{                                                                                          \
		name, sides, OPTION_CHOICE, offsetof(struct spec, member), values, absent          \
	}

static const struct option options[N_OPTIONS] = {
	[OPTION_AS] = CHOICE("as", SIDE_IN, as, as_values, as_absent),
	[OPTION_DIST] = CHOICE("dist", SIDE_IN, dist, dist_values, dist_absent),
	[OPTION_AT] = { "at", SIDE_IN, OPTION_PLACE, NO_PLACE, none, none },
	[OPTION_SYNC] = FLAG("sync", SIDE_IN, sync),
	[OPTION_CACHE] = { "cache", SIDE_IN, OPTION_ABSENT, NO_PLACE, none, none },
	[OPTION_WHEN] = CHOICE("when", SIDE_OUT, when, when_values, none),
	[OPTION_GATHER] = CHOICE("gather", SIDE_OUT, gather, gather_values, none),
	[OPTION_PACK] = CHOICE("pack", SIDE_OUT, pack, pack_values, none),
	[OPTION_CONFLICT] = CHOICE("conflict", SIDE_OUT, conflict, conflict_values, none),
	[OPTION_DELETE] = FLAG("delete", SIDE_OUT, remove),
	[OPTION_RECEIPT] = FLAG("receipt", SIDE_OUT, receipt),
	[OPTION_INCLUDE] = { "include", SIDE_IN | SIDE_OUT, OPTION_PATTERN, NO_PLACE, none, none },
	[OPTION_EXCLUDE] = { "exclude", SIDE_IN | SIDE_OUT, OPTION_PATTERN, NO_PLACE, none, none },
	[OPTION_VERIFY] = FLAG("verify", SIDE_IN | SIDE_OUT, verify),
	[OPTION_OPTIONAL] = FLAG("optional", SIDE_IN | SIDE_OUT, optional),
};

/* One option as it was written. */
struct word {
	const struct spec_source *source;
	struct spec_field field;
	char *name;        /* up to the '=' */
	const char *value; /* NULL: there is no '=' */
};

static int word_fail(const struct word *word, struct error *err, const char *reason)
{
	return spec_fail(word->source, word->field.start, err, "%s", reason);
}

static int value_fail(const struct word *word, size_t index, struct error *err, const char *reason)
{
	index += (size_t)(word->value - word->name);
	return spec_fail(
		word->source, spec_offset(word->source, word->field, index), err, "%s", reason);
}

/* The names as "a, b, c" at the end of text. */
static void append_name(char *text, size_t size, const char *name)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
}

static bool option_is_known(const struct option *option, enum spec_side side)
{
	return option->kind != OPTION_ABSENT && option->sides & 1U << side;
}

/* What the unknown name may have meant: an option, or a value whose option was left out. */
static void guess_option(enum spec_side side, const char *name, char *guess, size_t size)
{
	*guess = '\0';
	for (size_t i = 0; i < N_OPTIONS; i++) {
		bool here = option_is_known(&options[i], side);

		for (size_t j = 0; here && options[i].values[j]; j++) {
			if (!strcmp(name, options[i].values[j]))
				snprintf(guess, size, "; did you mean \"%s=%s\"?", options[i].name,
					name);
		}
		if (!spec_similar(name, options[i].name) || options[i].kind == OPTION_ABSENT)
			continue;
		snprintf(guess, size, "; did you mean \"%s\"%s%s?", options[i].name,
			here ? "" : ", an option of ",
			here ? "" : spec_side_name(side == SPEC_IN ? SPEC_OUT : SPEC_IN));
		if (here)
			return;
	}
}

static int unknown_option(const struct word *word, struct error *err)
{
	enum spec_side side = word->source->side;
	char names[256] = "", guess[80], quoted[SPEC_QUOTE_SIZE];

	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (option_is_known(&options[i], side))
			append_name(names, sizeof(names), options[i].name);
	}
	guess_option(side, word->name, guess, sizeof(guess));
	return spec_fail(word->source, word->field.start, err,
		"unknown option %s%s expected one of %s", spec_quote(word->name, 0, quoted),
		*guess ? guess : ":", names);
}

static int find_option(const struct word *word, enum option_id *id, struct error *err)
{
	enum spec_side side = word->source->side;

	if (!*word->name)
		return word_fail(word, err,
			word->value ? "an option without a name: expected OPTION[=VALUE]"
				    : "an empty option: expected OPTION[=VALUE] after the ',' "
				      "(write \\, for a ',' in a name)");
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (strcmp(word->name, options[i].name))
			continue;
		*id = (enum option_id)i;
		if (options[i].sides & 1U << side)
			return 0;
		return spec_fail(word->source, word->field.start, err,
			"\"%s\" is an option of %s, not of %s", word->name,
			spec_side_name(side == SPEC_IN ? SPEC_OUT : SPEC_IN), spec_side_name(side));
	}
	return unknown_option(word, err);
}

static int set_choice(
	const struct word *word, const struct option *option, struct spec *spec, struct error *err)
{
	char names[128] = "", text[256 + SPEC_QUOTE_SIZE], quoted[SPEC_QUOTE_SIZE];
	const char *guess = NULL;

	for (size_t i = 0; option->values[i]; i++) {
		append_name(names, sizeof(names), option->values[i]);
		if (word->value && !strcmp(word->value, option->values[i])) {
			if (option->place != NO_PLACE)
				*(unsigned *)((char *)spec + option->place) = (unsigned)i;
			return 0;
		}
		if (word->value && spec_similar(word->value, option->values[i]))
			guess = option->values[i];
	}
	if (!word->value || !*word->value) {
		snprintf(text, sizeof(text), "\"%s\" needs a value: expected %s=VALUE, one of %s",
			option->name, option->name, names);
		return word_fail(word, err, text);
	}
	for (size_t i = 0; option->absent[i]; i++) {
		if (strcmp(word->value, option->absent[i]))
			continue;
		snprintf(text, sizeof(text), "%s=%s is not available in this version: expected %s",
			option->name, word->value, names);
		return word_fail(word, err, text);
	}
	snprintf(text, sizeof(text), "%s is not a value of \"%s\"%s%s%s expected %s%s",
		spec_quote(word->value, 0, quoted), option->name, guess ? "; did you mean \"" : "",
		guess ? guess : "", guess ? "\"?" : ":", option->values[1] ? "one of " : "", names);
	return value_fail(word, 0, err, text);
}

static int set_flag(
	const struct word *word, const struct option *option, struct spec *spec, struct error *err)
{
	char text[80];

	if (word->value) {
		snprintf(text, sizeof(text), "\"%s\" takes no value: expected \"%s\" alone",
			option->name, option->name);
		return word_fail(word, err, text);
	}
	*(bool *)((char *)spec + option->place) = true;
	return 0;
}

/* A pattern that can never match is a mistake. */
static int check_pattern(const struct word *word, struct error *err)
{
	const char *component = word->value;

	if (!component || !*component)
		return word_fail(
			word, err, "a pattern is missing: expected include=GLOB or exclude=GLOB");
	component += *component == '/';
	do {
		size_t length = strcspn(component, "/");
		bool dots = length && length <= 2 && !strncmp(component, "..", length);

		if (!length || dots)
			return value_fail(word, (size_t)(component - word->value), err,
				"an empty name, \".\" or \"..\" in a pattern can not match "
				"anything: expected names and wildcards, with single '/' between "
				"them");
		component += length;
		if (*component)
			component++;
	} while (*component);
	return 0;
}

static int add_pattern(const struct word *word, bool include, struct spec *spec, struct error *err)
{
	struct spec_pattern *patterns;
	int rc = check_pattern(word, err);

	if (rc)
		return rc;
	patterns = spec_grow(spec->patterns, spec->n_patterns, sizeof(*patterns), err);
	if (!patterns)
		return -ENOMEM;
	spec->patterns = patterns;
	patterns += spec->n_patterns++;
	*patterns = (struct spec_pattern){ include, NULL };
	return spec_set_text(&patterns->glob, word->value, err);
}

/* Escapes are no names: the first '=' of the text is that of the option. */
static int set_place(const struct word *word, struct spec *spec, struct error *err)
{
	const char *equals = strchr(word->source->text + word->field.start, '=');
	struct spec_field value = word->field;

	if (!word->value)
		return word_fail(word, err, "\"at\" needs a value: expected at=PATH or at=same");
	value.start = (size_t)(equals - word->source->text) + 1;
	return spec_parse_at(word->source, value, spec, err);
}

static int set_option(
	const struct word *word, enum option_id id, struct spec *spec, struct error *err)
{
	const struct option *option = &options[id];
	char text[80];

	switch (option->kind) {
	case OPTION_FLAG:
		return set_flag(word, option, spec, err);
	case OPTION_CHOICE:
		return set_choice(word, option, spec, err);
	case OPTION_PATTERN:
		return add_pattern(word, id == OPTION_INCLUDE, spec, err);
	case OPTION_PLACE:
		return set_place(word, spec, err);
	case OPTION_ABSENT:
		break;
	}
	snprintf(text, sizeof(text), "the option \"%s\" is not available in this version",
		option->name);
	return word_fail(word, err, text);
}

static int parse_word(const struct spec_source *source, struct spec_field field,
	size_t seen[N_OPTIONS], struct spec *spec, struct error *err)
{
	struct word word = { source, field, NULL, NULL };
	autofree char *plain = spec_unescape(source, field);
	enum option_id id = N_OPTIONS;
	char *equals;
	int rc;

	if (!plain)
		return spec_no_memory(err);
	word.name = plain;
	equals = strchr(plain, '=');
	if (equals) {
		*equals = '\0';
		word.value = equals + 1;
	}
	rc = find_option(&word, &id, err);
	if (rc)
		return rc;
	if (seen[id] && options[id].kind != OPTION_PATTERN)
		return spec_fail(source, field.start, err,
			"\"%s\" is given twice (first in column %zu)", word.name, seen[id]);
	seen[id] = field.start + 1;
	return set_option(&word, id, spec, err);
}

/* What goes back, and what is compared, is an archive there and a tree here. */
static int check_unpack(const struct spec_source *source, const struct spec *spec,
	const size_t seen[N_OPTIONS], struct error *err)
{
	if (spec->as != SPEC_AS_UNPACK)
		return 0;
	if (spec->sync)
		return spec_fail(source, seen[OPTION_SYNC] - 1, err,
			"\"sync\" can not go with as=unpack: write a --stage-out of its own");
	if (spec->verify)
		return spec_fail(source, seen[OPTION_VERIFY] - 1, err,
			"\"verify\" can not go with as=unpack: the checksums that an archive has are "
			"compared in any case");
	return 0;
}

int spec_parse_options(
	const struct spec_source *source, size_t offset, struct spec *spec, struct error *err)
{
	size_t seen[N_OPTIONS] = { 0 };

	while (source->text[offset]) {
		struct spec_field field = { offset + 1, spec_field_end(source->text, offset + 1) };
		int rc = parse_word(source, field, seen, spec, err);

		if (rc)
			return rc;
		offset = field.end;
	}
	spec->gather_set = seen[OPTION_GATHER];
	if (spec->sync && spec->from_glob)
		return spec_fail(source, seen[OPTION_SYNC] - 1, err,
			"\"sync\" can not go with a pattern as FROM: name the directory itself, or "
			"write a --stage-out of its own");
	if (spec->pack && (spec->verify || spec->remove))
		return spec_fail(source, seen[spec->verify ? OPTION_VERIFY : OPTION_DELETE] - 1, err,
			"\"%s\" can not go with pack=", spec->verify ? "verify" : "delete");
	return check_unpack(source, spec, seen, err);
}

const char *spec_pack_name(enum spec_pack pack)
{
	return pack_values[pack];
}

void spec_each_option(const struct spec *spec,
	void (*put)(void *ctx, const char *name, const char *value), void *ctx)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option *option = &options[i];
		const char *place = (const char *)spec;

		if (option->place == NO_PLACE)
			continue;
		place += option->place;
		if (option->kind == OPTION_FLAG && *(const bool *)place)
			put(ctx, option->name, NULL);
		if (option->kind == OPTION_CHOICE &&
			(*(const unsigned *)place || (i == OPTION_GATHER && spec->gather_set)))
			put(ctx, option->name, option->values[*(const unsigned *)place]);
	}
	if (spec->at)
		put(ctx, "at", spec->at);
	for (size_t i = 0; i < spec->n_patterns; i++)
		put(ctx, spec->patterns[i].include ? "include" : "exclude", spec->patterns[i].glob);
}
