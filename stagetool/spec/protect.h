/*
 * Where nothing may be shown in place of what is there (at=).
 *
 * In its own mount namespace a job could otherwise give set-user-ID programs another /etc or another
 * library: what root's programs trust stays as it is.
 */
#ifndef SPEC_PROTECT_H
#define SPEC_PROTECT_H

#include "base/error.h"
#include "spec/conf.h"

/* Whether an absolute, cleaned path may be mounted over: not /, and neither in nor above one of the system's
 * directories or, with conf (may be NULL), of those that protect= names, of state_dir and of the tiers. Text
 * only: what a path resolves to is checked again where it is mounted. -EPERM, err says which. */
int protect_check(const char *path, const struct conf *conf, struct error *err);

#endif
