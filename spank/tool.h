/*
 * stagetool prolog and stagetool epilog as the plugin runs them: environment, report, verdict.
 */
#ifndef SPANK_TOOL_H
#define SPANK_TOOL_H

#include <stdbool.h>

#include "spank/job.h"
#include "spank/plugin.h"

enum tool_verdict { TOOL_OK, TOOL_JOB, TOOL_NODE };

struct tool_run {
	const struct plugin *plugin;
	const char *verb;      /* "prolog" or "epilog" */
	const struct job *job; /* NULL: slurmctld did not answer */
	const char *state;     /* of the job, for the epilog; else NULL */
	bool follow_parent;    /* SIGTERM for the tool when this process dies */
	/* Told of progress; asked every now and then whether to go on. Both may be NULL. */
	void (*progress)(void *ctx, const char *text);
	bool (*go_on)(void *ctx);
	void *ctx;
};

/* Runs the tool until it ends. A tool that can not be run or that ends without a verdict is
 * TOOL_JOB with text that says so. *text is one line; caller frees; NULL on ENOMEM. */
enum tool_verdict tool_run(const struct tool_run *run, char **text);

#endif
