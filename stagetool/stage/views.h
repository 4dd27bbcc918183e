/*
 * Which of a job's inputs its tasks see at another place too (at=).
 */
#ifndef STAGE_VIEWS_H
#define STAGE_VIEWS_H

#include <stdbool.h>

#include "spec/handoff.h"
#include "stage/plan.h"

/* What the steps are to be told, from what the job asked for and nothing else: outer places first. Without a
 * look at any file, so that root may call it. Frees nothing of handoff on failure; caller handoff_views_free. */
int views_make(const struct spec_list *list, const struct plan_context *context,
	struct handoff *handoff, struct error *err);

/* Whether the place of spec (which has one) can be used, as the calling process may look at it: it is there, of
 * the kind of what is to be seen, and not protected. */
int views_check(const struct spec *spec, const struct plan_context *context, bool is_dir,
	struct error *err);

#endif
