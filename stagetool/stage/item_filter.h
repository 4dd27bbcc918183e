/*
 * The filter of a spec's include= and exclude=.
 */
#ifndef STAGE_ITEM_FILTER_H
#define STAGE_ITEM_FILTER_H

#include "spec/spec.h"
#include "tree/filter.h"

/* *filter NULL: everything takes part. Caller frees with filter_free. */
int item_filter_new(const struct spec *spec, struct filter **filter, struct error *err);

#endif
