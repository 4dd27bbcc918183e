/*
 * What conf.c and conf_file.c share; nobody else includes it.
 */
#ifndef SPEC_CONF_PRIVATE_H
#define SPEC_CONF_PRIVATE_H

#include "spec/conf.h"

/* Where the reading of a file is. */
struct conf_place {
	const char *path; /* borrowed */
	unsigned line;
};

/* Called for each "[name]" and each "key = value", in the order of the file. Nonzero ends the
 * reading. */
struct conf_events {
	int (*section)(
		void *ctx, const struct conf_place *place, const char *name, struct error *err);
	int (*value)(void *ctx, const struct conf_place *place, const char *key, const char *value,
		struct error *err);
	void *ctx;
};

/* Fills err with file and line and the formatted reason. Returns -EINVAL. */
int conf_fail(const struct conf_place *place, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads path. What is no line of the format, and a file that others than root could have written
 * (for root), is an error with file and line. */
int conf_file_read(const char *path, const struct conf_events *events, struct error *err);

#endif
