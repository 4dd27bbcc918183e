/*
 * What becomes of a process whose manifest is damaged in a way that LMDB does not notice: it follows
 * what the pages say, and dies of a signal.
 */
#ifndef STAGE_MANIFEST_GUARD_H
#define STAGE_MANIFEST_GUARD_H

/* From now on a signal that LMDB's work on a manifest raises (SIGSEGV, SIGBUS, SIGABRT) calls damaged, which
 * may do what a signal handler may, and must not return. Others do what they did. For a program's
 * own process, once, before its threads: the handlers are the process's. */
void manifest_guard(void (*damaged)(void));

/* Around each call of LMDB that looks at pages; they nest. For the modules of the manifest. */
void manifest_guard_enter(void);
void manifest_guard_leave(void);

#endif
