#include "stage/fields.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

static json_t *fields_hex(const char *text)
{
	size_t length = strlen(text);
	autofree char *hex = malloc(2 * length + 1);

	if (!hex)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		hex[2 * i] = digits[(unsigned char)text[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)text[i] & 15];
	}
	hex[2 * length] = '\0';
	return json_pack("{s:s}", "hex", hex);
}

int fields_set_bytes(json_t *object, const char *key, const char *text)
{
	json_t *value;

	if (!text)
		return 0;
	value = json_string(text);
	if (!value)
		value = fields_hex(text);
	return json_object_set_new(object, key, value) ? -ENOMEM : 0;
}

int fields_set_number(json_t *object, const char *key, uint64_t number)
{
	json_int_t value = number > INT64_MAX ? INT64_MAX : (json_int_t)number;

	return json_object_set_new(object, key, json_integer(value)) ? -ENOMEM : 0;
}

/* The bytes that hex stands for; NULL if it does not stand for any. */
static char *fields_unhex(const char *hex, size_t length)
{
	char *text = malloc(length / 2 + 1);

	for (size_t i = 0; text && i < length; i++) {
		const char *digit = memchr(digits, hex[i], sizeof(digits) - 1);

		if (!digit || length % 2) {
			free(text);
			return NULL;
		}
		if (i % 2)
			text[i / 2] = (char)(text[i / 2] | (digit - digits));
		else
			text[i / 2] = (char)((digit - digits) << 4);
	}
	if (text)
		text[length / 2] = '\0';
	return text;
}

int fields_get_bytes(const json_t *object, const char *key, bool required, size_t max, char **text,
	struct error *err)
{
	const json_t *value = json_object_get(object, key);
	const json_t *hex = json_object_get(value, "hex");
	const json_t *string = hex ? hex : value;
	size_t length = json_string_length(string);

	*text = NULL;
	if (!value && !required)
		return 0;
	if (!json_is_string(string))
		return error_set(err, -EBADMSG, "\"%s\": expected a string", key);
	if ((hex ? length / 2 : length) > max)
		return error_set(err, -EBADMSG, "\"%s\": longer than %zu bytes", key, max);
	*text = hex ? fields_unhex(json_string_value(hex), length)
		    : strdup(json_string_value(string));
	if (!*text || strlen(*text) != (hex ? length / 2 : length)) {
		free(take_ptr(*text));
		return error_set(err, -EBADMSG, "\"%s\": not a string of bytes without NUL", key);
	}
	return 0;
}

int fields_get_number(
	const json_t *object, const char *key, uint64_t max, uint64_t *number, struct error *err)
{
	const json_t *value = json_object_get(object, key);

	*number = 0;
	if (!value)
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		(uint64_t)json_integer_value(value) > max)
		return error_set(err, -EBADMSG, "\"%s\": expected a number from 0 to %ju", key,
			(uintmax_t)max);
	*number = (uint64_t)json_integer_value(value);
	return 0;
}

int fields_get_bool(const json_t *object, const char *key, bool *value, struct error *err)
{
	const json_t *found = json_object_get(object, key);

	if (found && !json_is_boolean(found))
		return error_set(err, -EBADMSG, "\"%s\": expected true or false", key);
	*value = json_is_true(found);
	return 0;
}
