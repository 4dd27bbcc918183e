/*
 * What the files of the spec module share; nobody else includes it.
 */
#ifndef SPEC_PRIVATE_H
#define SPEC_PRIVATE_H

#include "spec/spec.h"

/* A spec as it was written, for messages. All borrowed. */
struct spec_source {
	enum spec_side side;
	const char *file; /* of @FILE; NULL: the option itself */
	unsigned line;
	const char *text;
};

/* A piece of source->text, still escaped: [start, end). */
struct spec_field {
	size_t start, end;
};

#define SPEC_RESERVED ".stagetool"
#define SPEC_RESERVED_PREFIX ".stagetool-tmp."

/* "--stage-in" or "--stage-out". */
const char *spec_side_name(enum spec_side side);

/* Fills err with option, file and line, column of offset in the text, and the formatted reason.
 * Returns -EINVAL. */
int spec_fail(const struct spec_source *source, size_t offset, struct error *err,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fills err for memory that is not there. Returns -ENOMEM. */
int spec_no_memory(struct error *err);

/* *copy (freed) becomes a copy of text. */
int spec_set_text(char **copy, const char *text, struct error *err);

/* items with room for one more behind count ones of size bytes, all added in this way. NULL and err
 * on ENOMEM, items is then as it was. */
void *spec_grow(void *items, size_t count, size_t size, struct error *err);

/* text for a message: control bytes escaped, cut around focus where it is long. Returns buffer. */
#define SPEC_QUOTE_SIZE 512
char *spec_quote(const char *text, size_t focus, char buffer[SPEC_QUOTE_SIZE]);

/* Whether name was probably meant to be candidate. */
bool spec_similar(const char *name, const char *candidate);

/* The field without its escapes. Caller frees; NULL on ENOMEM. */
char *spec_unescape(const struct spec_source *source, struct spec_field field);

/* Where byte number index of the unescaped field stands in the text. */
size_t spec_offset(const struct spec_source *source, struct spec_field field, size_t index);

/* The end of the field that begins at start: the next unescaped ',' or the end of the text. Every
 * '\' in the text must escape something. */
size_t spec_field_end(const char *text, size_t start);

/* Parses source->text into *spec (overwritten; on failure it holds nothing). literal: FROM is no
 * pattern whatever it holds. */
int spec_parse(const struct spec_source *source, const char *base, bool literal, struct spec *spec,
	struct error *err);
void spec_free(struct spec *spec);

/* The halves of spec_parse: FROM and TO (to NULL: it was not written) into spec, and the options,
 * which begin with a ',' at offset. */
int spec_parse_paths(const struct spec_source *source, struct spec_field from,
	const struct spec_field *to, const char *base, bool literal, struct spec *spec,
	struct error *err);
int spec_parse_options(
	const struct spec_source *source, size_t offset, struct spec *spec, struct error *err);

/* The value of at= into spec, whose paths are there. */
int spec_parse_at(const struct spec_source *source, struct spec_field value, struct spec *spec,
	struct error *err);

/* Calls put for each option of spec that is not at its default; value NULL for a flag. */
void spec_each_option(const struct spec *spec,
	void (*put)(void *ctx, const char *name, const char *value), void *ctx);

/* Takes *spec into the list (spec is emptied). On failure nothing changes. */
int spec_list_push(struct spec_list *list, struct spec *spec, struct error *err);

#endif
