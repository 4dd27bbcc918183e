/*
 * %j %A %a %x %u %N %n %% in FROM and TO, expanded by the tool and never by a shell.
 */
#ifndef SPEC_SYMBOLS_H
#define SPEC_SYMBOLS_H

#include <stdbool.h>

#include "base/error.h"

/* The values on one node. NULL: not known here, and an error where it is used. */
struct symbols {
	const char *job_id;        /* %j */
	const char *array_job_id;  /* %A; of a job without an array: its id */
	const char *array_task_id; /* %a; of a job without an array: 0 */
	const char *job_name;      /* %x */
	const char *user;          /* %u */
	const char *node;          /* %N */
	const char *node_index;    /* %n, from 0 */
};

/* Checks that only known symbols are used. column (may be NULL) gets the 1-based place of a wrong
 * one. -EINVAL. */
int symbols_check(const char *text, unsigned *column, struct error *err);

/* Whether text names the node (%N or %n). */
bool symbols_has_node(const char *text);

/* Expands into *out (caller frees). A value is one path component's part: '/' and control bytes in
 * it become '_', and a component that comes out as "." or ".." or empty is refused. */
int symbols_expand(const char *text, const struct symbols *values, char **out, struct error *err);

/* The same for a pattern (spec.from_glob): a '*', '?' or '[' in a value stands for itself. */
int symbols_expand_pattern(
	const char *text, const struct symbols *values, char **out, struct error *err);

#endif
