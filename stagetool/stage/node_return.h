/*
 * The stage-out of one attempt, under its lock.
 */
#ifndef STAGE_NODE_RETURN_H
#define STAGE_NODE_RETURN_H

#include <jansson.h>

#include "stage/node.h"

/* Sends back what record's job asked for and wants by how it ended, as its user, and puts what
 * became of it into the record, which is left done (stage removed), kept, or failed (the stage is
 * gone). lock is the attempt's, which the worker holds too. Negative: the record could not be
 * written, or the tier is broken. */
int node_return(const struct node *node, struct record *record, int lock, struct error *err);

/* Only sends, from stagefd (borrowed), as the record's user, who may be the caller; what became of it
 * goes into the record in memory. node needs no state. Negative: not all is back. */
int node_send(const struct node *node, struct record *record, int stagefd, struct error *err);

/* What to say to the user about it, whole lines. Caller frees; NULL where there is nothing to
 * say. */
char *node_return_notice(const struct record *record);

/* The same of an attempt that is superseded, and of one whose time is over. */
char *node_superseded_notice(const struct record *record);
char *node_expired_notice(const struct record *record);

/* Appends text to the job's output file, as its user. NULL, or no file known: success. -ENOENT:
 * there is none. */
int node_tell(const struct record *record, const char *text, struct error *err);

#endif
