/*
 * Inside of the walk: how far the listing runs ahead of the callbacks.
 *
 * Without a limit every worker lists a directory of its own, which is what a destination wants whose
 * creates in one directory serialise. With walk_options.gather what is listed is finished first: what a
 * network filesystem says of the entries along with their names is forgotten after a moment, and each
 * one would have to be asked about again.
 */
#ifndef TREE_WALK_AHEAD_H
#define TREE_WALK_AHEAD_H

#include "tree/walk_dir.h"

/* Whether dir, whose task is about to open it or to read on, has to wait. Then it was taken, and its task
 * is pushed later. Else as many entries as directories have had so far count as listed. */
bool walk_ahead_wait(struct walk_dir *dir);

/* A buffer of dir was read and has so many entries, or none is to be had: takes the place of what was
 * counted before. */
void walk_ahead_read(struct walk_dir *dir, unsigned entries);

/* So many entries are through. Goes on with a directory that waits if few are left. Each task of a walk
 * calls it as its last (with 0), so that none waits for ever. */
void walk_ahead_done(struct walk *walk, unsigned entries);

#endif
