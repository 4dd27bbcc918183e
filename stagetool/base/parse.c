#include "base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FRACTION_DIGITS 18

/* A decimal number in text. Read by hand: strtod and isdigit follow the locale. */
struct decimal {
	uint64_t whole;
	uint64_t fraction; /* of scale */
	uint64_t scale;    /* 1: there is no fraction */
};

static bool parse_is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Digits of text up to the first other byte, which *end gets. -EINVAL without one, -ERANGE. */
static int parse_digits(const char *text, uint64_t *value, const char **end)
{
	uint64_t sum = 0;

	if (!parse_is_digit(*text))
		return -EINVAL;
	for (; parse_is_digit(*text); text++) {
		if (__builtin_mul_overflow(sum, 10, &sum) ||
			__builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
			return -ERANGE;
	}
	*value = sum;
	*end = text;
	return 0;
}

static int parse_decimal(const char *text, struct decimal *number, const char **end)
{
	int rc = parse_digits(text, &number->whole, end);

	number->fraction = 0;
	number->scale = 1;
	if (rc || **end != '.')
		return rc;
	text = *end + 1;
	if (!parse_is_digit(*text))
		return -EINVAL;
	for (int digits = 0; parse_is_digit(*text); text++, digits++) {
		if (digits == FRACTION_DIGITS)
			return -EINVAL;
		number->fraction = number->fraction * 10 + (uint64_t)(*text - '0');
		number->scale *= 10;
	}
	*end = text;
	return 0;
}

/* The power of 1024 that unit stands for; -1: it is no unit. */
static int parse_unit(const char *unit)
{
	static const char letters[] = "BKMGTP";
	const char *found;

	if (!*unit)
		return 0;
	found = strchr(letters, *unit >= 'a' && *unit <= 'z' ? *unit - 'a' + 'A' : *unit);
	if (!found)
		return -1;
	if (!unit[1] ||
		(found > letters && (!strcasecmp(unit + 1, "B") || !strcasecmp(unit + 1, "iB"))))
		return (int)(found - letters);
	return -1;
}

int parse_size(const char *text, uint64_t *bytes, struct error *err)
{
	struct decimal number;
	const char *unit;
	int rc = parse_decimal(text, &number, &unit);
	int power = rc ? -1 : parse_unit(unit);
	uint64_t factor, part, sum;

	if (rc == -ERANGE)
		return error_set(err, -ERANGE, "\"%s\" is too large for a size", text);
	if (power < 0)
		return error_set(err, -EINVAL,
			"\"%s\" is not a size: expected a number and K, M, G, T or P, as in 500G "
			"or 1.5T",
			text);
	if (power == 0 && number.scale > 1)
		return error_set(err, -EINVAL,
			"\"%s\" is not a size: part of a byte; expected a unit after it, as in "
			"1.5G",
			text);
	factor = UINT64_C(1) << (10 * power);
	part = (uint64_t)((double)number.fraction / (double)number.scale * (double)factor);
	if (__builtin_mul_overflow(number.whole, factor, &sum) ||
		__builtin_add_overflow(sum, part, &sum))
		return error_set(err, -ERANGE, "\"%s\" is too large for a size", text);
	*bytes = sum;
	return 0;
}

int parse_duration(const char *text, uint64_t *seconds, struct error *err)
{
	static const struct {
		const char *unit;
		uint64_t seconds;
	} units[] = {
		{ "", 1 },
		{ "s", 1 },
		{ "m", 60 },
		{ "h", 3600 },
		{ "d", 86400 },
		{ "w", 604800 },
	};
	const char *unit;
	uint64_t number;
	int rc = parse_digits(text, &number, &unit);

	if (!rc) {
		rc = -EINVAL;
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			if (strcasecmp(unit, units[i].unit))
				continue;
			rc = __builtin_mul_overflow(number, units[i].seconds, &number) ? -ERANGE
										       : 0;
			break;
		}
	}
	if (rc == -ERANGE)
		return error_set(err, rc, "\"%s\" is too long for a time", text);
	if (rc)
		return error_set(err, rc,
			"\"%s\" is not a time: expected a whole number and s, m, h, d or w, as in "
			"7d",
			text);
	*seconds = number;
	return 0;
}

int parse_share(const char *text, uint64_t *bytes, double *percent, struct error *err)
{
	struct decimal number;
	const char *end;
	size_t length = strlen(text);
	double value;

	if (!length || text[length - 1] != '%') {
		int rc = parse_size(text, bytes, err);

		if (!rc)
			*percent = -1;
		return rc;
	}
	if (parse_decimal(text, &number, &end) || strcmp(end, "%"))
		return error_set(err, -EINVAL,
			"\"%s\" is not a share: expected a percentage or a size, as in 5%% or 100G",
			text);
	value = (double)number.whole + (double)number.fraction / (double)number.scale;
	if (value > 100)
		return error_set(err, -ERANGE, "\"%s\" is more than 100%%", text);
	*bytes = 0;
	*percent = value;
	return 0;
}

int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value, struct error *err)
{
	const char *end = "";
	uint64_t number = 0;
	int rc = parse_digits(text, &number, &end);

	if (rc == -EINVAL || *end)
		return error_set(err, -EINVAL,
			"\"%s\" is not a whole number: expected one from %llu to %llu", text,
			(unsigned long long)min, (unsigned long long)max);
	if (rc || number < min || number > max)
		return error_set(err, -ERANGE, "%s is out of range: expected %llu to %llu", text,
			(unsigned long long)min, (unsigned long long)max);
	*value = number;
	return 0;
}

int parse_bool(const char *text, bool *value, struct error *err)
{
	static const char *const words[2][4] = {
		{ "no", "false", "off", "0" },
		{ "yes", "true", "on", "1" },
	};

	for (int answer = 0; answer < 2; answer++) {
		for (int i = 0; i < 4; i++) {
			if (!strcasecmp(text, words[answer][i])) {
				*value = answer;
				return 0;
			}
		}
	}
	return error_set(err, -EINVAL, "\"%s\" is neither yes nor no", text);
}

char *parse_format_size(uint64_t bytes, char *buffer, unsigned long size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	unsigned unit = 0;

	/* What would be printed as 1024.0 of one unit is 1.0 of the next. */
	while (value >= (unit ? 1023.95 : 1024) && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(buffer, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return buffer;
}

char *parse_format_duration(double seconds, char *buffer, unsigned long size)
{
	unsigned long long whole;

	if (!isfinite(seconds) || seconds > 1e15) {
		snprintf(buffer, size, "unknown");
		return buffer;
	}
	if (seconds < 0)
		seconds = 0;
	whole = (unsigned long long)(seconds + 0.5);
	if (seconds < 0.995)
		snprintf(buffer, size, "%.2f s", seconds);
	else if (seconds < 59.95)
		snprintf(buffer, size, "%.1f s", seconds);
	else if (whole < 3600)
		snprintf(buffer, size, "%llu min %llu s", whole / 60, whole % 60);
	else if (whole < 86400)
		snprintf(buffer, size, "%llu h %llu min", whole / 3600, whole % 3600 / 60);
	else
		snprintf(buffer, size, "%llu d %llu h", whole / 86400, whole % 86400 / 3600);
	return buffer;
}
