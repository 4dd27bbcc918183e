/*
 * The stage of a job: the directory JOBID.RESTART on a tier, the user's, in a directory that is
 * root's.
 */
#ifndef STAGE_STAGE_H
#define STAGE_STAGE_H

#include "base/error.h"
#include "stage/record.h"

/* The absolute path of the stage. Caller frees; NULL on ENOMEM. */
char *stage_path(const struct record *record);

/* Where something that no record knows lies under the stage's name, it is renamed (to
 * lost.NAME.TIME), never removed: *moved (caller frees) is its new name, NULL where there was
 * nothing. */
int stage_set_aside(int tierfd, const struct record *record, char **moved, struct error *err);

/* Makes the stage, gives it to the record's user with mode 0700, and puts its identity into the
 * record. Returns an fd, or a negative errno (-EEXIST: the name is taken). Something that is half
 * made is for stage_remove. */
int stage_create(int tierfd, struct record *record, struct error *err);

/* Opens the stage. -ENOENT: it is gone; -ESTALE: another directory has its name. */
int stage_open(int tierfd, const struct record *record, struct error *err);

/* Takes the stage away from its user and removes it, if it is the one that the record knows; then
 * lifts its quota and takes back the record's present (in memory). A stage that is gone already is
 * success, where no quota is left of it. */
int stage_remove(int tierfd, struct record *record, struct error *err);

#endif
