/*
 * Staging by hand: what the verbs in, out, plan and verify share.
 */
#ifndef VERBS_HAND_H
#define VERBS_HAND_H

#include <jansson.h>

#include "report/summary.h"
#include "stage/plan.h"
#include "stage/transfer.h"
#include "verbs/options.h"

struct hand {
	const char *verb;
	struct options options;
	struct spec_list list;
	struct symbols symbols;
	char *strings[8]; /* what symbols points to, and suffix */
	char *dir;        /* of the stage */
	int stagefd;
	struct plan_context context;
	struct plan *plan;
	struct summary *results; /* one for each item */
	struct summary total;
	struct transfer_live *live;
};

/* Reads the words as specs of side (relative shared paths are below the working directory), and
 * checks that a stage is named: --dir, or $STAGE_DIR. On failure err says what is wrong; all of it
 * is wrong usage. */
int hand_specs(struct hand *hand, enum spec_side side, struct error *err);

/* Opens the stage; make: made, for its owner alone, with missing parents. */
int hand_open(struct hand *hand, bool make, struct error *err);

/* Opens the stage, or, where it is not there yet, the directory in which it would be made. */
int hand_open_above(struct hand *hand, struct error *err);

/* Values of the symbols: those of the job this process is in, else only user and node. */
int hand_symbols(struct hand *hand, struct error *err);

void hand_free(struct hand *hand);

/* Carries out hand->plan with progress and problems shown, and adds the results up. in:
 * transfer_in, else transfer_out. */
int hand_transfer(struct hand *hand, bool in, const atomic_bool *cancel, struct error *err);

/* Says how it went, as lines or JSON. rc and err: how hand_transfer, or what was before it, ended.
 * Returns the exit status. */
int hand_report(struct hand *hand, int rc, const struct error *err);

#endif
