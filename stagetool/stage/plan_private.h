/*
 * What the files of the plan share.
 */
#ifndef STAGE_PLAN_PRIVATE_H
#define STAGE_PLAN_PRIVATE_H

#include <sys/stat.h>

#include "stage/plan.h"

/* "stage-in SPEC" or "stage-out SPEC" in front of err's text. Returns code. */
int plan_error(const struct spec *spec, int code, struct error *err);

/* Adds a zeroed item, borrowed until the next one is added; NULL on ENOMEM. */
struct plan_item *plan_add(struct plan *plan, const struct spec *spec);

/* Two items with one target: -EEXIST, both named. of_shared: the target is the shared side. */
int plan_check_targets(const struct plan *plan, bool of_shared, struct error *err);

/* What path is after all symlinks, as far as it exists: the rest is kept as text. st is what is
 * there; where there is nothing (or not all of it) st->st_mode is 0. Caller frees *resolved. */
int plan_resolve(const char *path, char **resolved, struct stat *st, struct error *err);

/* -EPERM where resolved does not lie below one of the sources (which are resolved, too). */
int plan_check_source(const struct conf *conf, const char *resolved, struct error *err);

/* TO of spec, symbols expanded. Caller frees. */
int plan_expand_to(
	const struct spec *spec, const struct plan_context *context, char **to, struct error *err);
/* FROM of spec, symbols expanded. Caller frees. */
int plan_expand_from(const struct spec *spec, const struct plan_context *context, char **from,
	struct error *err);
/* to, or to/<name of from> where TO is a directory to go into. Caller frees. */
int plan_target(const struct spec *spec, const char *to, const char *from, char **target,
	struct error *err);

#endif
