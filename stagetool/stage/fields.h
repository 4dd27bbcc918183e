/*
 * Fields of a JSON object, read with their type and range proven.
 *
 * JSON text is UTF-8 and names of files are bytes: a string that is not UTF-8 is written as an
 * object {"hex": "..."} and read back as the bytes it was.
 */
#ifndef STAGE_FIELDS_H
#define STAGE_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Sets key to the bytes of text; NULL leaves it out. -ENOMEM. */
int fields_set_bytes(json_t *object, const char *key, const char *text);
int fields_set_number(json_t *object, const char *key, uint64_t number);

/* The bytes of key into *text (caller frees). Missing: *text NULL, an error only where required.
 * -EBADMSG with the key where it is something else, or longer than max bytes. */
int fields_get_bytes(const json_t *object, const char *key, bool required, size_t max, char **text,
	struct error *err);

/* A whole number from 0 to max; missing is 0. -EBADMSG. */
int fields_get_number(
	const json_t *object, const char *key, uint64_t max, uint64_t *number, struct error *err);

/* Missing is false. -EBADMSG. */
int fields_get_bool(const json_t *object, const char *key, bool *value, struct error *err);

#endif
