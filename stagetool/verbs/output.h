/*
 * What a verb prints on standard output: whole, or an error.
 */
#ifndef VERBS_OUTPUT_H
#define VERBS_OUTPUT_H

#include <jansson.h>

#include "base/error.h"

/* Writes text and flushes it. */
int output_text(const char *text, struct error *err);

/* Writes object as one line and flushes it. Takes the reference, also on failure. object NULL (what jansson
 * gives when memory is out) is -ENOMEM. */
int output_json(json_t *object, struct error *err);

/* The end of a verb that was asked for --json: adds "verb", "status" (the exit status) and, if err holds
 * one, "error" to object (NULL: a new one), and prints it. Takes the reference. Returns status, or
 * VERB_FAILED with a message on standard error where printing failed and status was VERB_DONE. */
int output_result(const char *verb, json_t *object, int status, const struct error *err);

#endif
