#include "spec/spec_private.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "spec/protect.h"
#include "spec/symbols.h"

#include <errno.h>
#include <string.h>

static int at_fail(const struct spec_source *source, struct spec_field value, struct error *err,
	const char *reason)
{
	return spec_fail(source, value.start, err, "\"at\" %s", reason);
}

/* The place itself, symbols not expanded. */
static int at_check(const struct spec_source *source, struct spec_field value, const char *place,
	const struct spec *spec, struct error *err)
{
	struct error reason = ERROR_INIT;

	if (*place != '/')
		return at_fail(source, value, err,
			"needs the absolute path at which the job is to see FROM, or \"same\" for "
			"FROM's own path");
	if (path_has_dotdot(place))
		return at_fail(source, value, err,
			"holds \"..\": expected the path itself, as the job is to see it");
	if (spec->from_glob)
		return at_fail(source, value, err,
			"can not go with a pattern as FROM: name the directory or file itself");
	if (symbols_check(place, NULL, &reason) || protect_check(place, NULL, &reason))
		return spec_fail(source, value.start, err, "\"at\": %s", reason.text);
	return 0;
}

int spec_parse_at(const struct spec_source *source, struct spec_field value, struct spec *spec,
	struct error *err)
{
	autofree char *plain = spec_unescape(source, value);
	autofree char *place = NULL;
	int rc;

	if (!plain)
		return spec_no_memory(err);
	place = path_clean(strcmp(plain, "same") ? plain : spec->from);
	if (!place)
		return spec_no_memory(err);
	rc = at_check(source, value, *plain ? place : "", spec, err);
	if (!rc)
		spec->at = take_ptr(place);
	return rc;
}
