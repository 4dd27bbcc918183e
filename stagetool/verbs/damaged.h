/*
 * A run by hand whose manifest is damaged ends with an error, not by a signal.
 */
#ifndef VERBS_DAMAGED_H
#define VERBS_DAMAGED_H

/* For verbs that read a manifest in their own process; before their threads. What is on the way is left
 * as a kill would leave it: temporaries, for the next run. */
void damaged_guard(void);

#endif
