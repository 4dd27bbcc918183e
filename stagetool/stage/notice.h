/*
 * The tool's word to the user after the job's script has ended: a line in the job's output file.
 */
#ifndef STAGE_NOTICE_H
#define STAGE_NOTICE_H

#include "base/error.h"
#include "base/priv.h"

/* Appends text (whole lines) to the file path, as user, in a process of its own that has at most
 * some seconds. The file is never made, and nothing but a regular file is written to. -ENOENT where
 * there is none. */
int notice_append(
	const struct priv_user *user, const char *path, const char *text, struct error *err);

#endif
