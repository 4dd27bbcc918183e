#include "spank/tool.h"

#include <errno.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "spank/child.h"
#include "spec/handoff.h"

/* After SIGTERM the tool takes back what it did; that is a tree to be removed. */
#define GRACE 30
/* Of what the tool says on standard error, slurmd's log gets that much. */
#define SAID_LINES 100
#define LINE_SIZE 4096

extern char **environ;

struct environment {
	char **values;
	size_t count;
	bool failed;
};

static void environment_free(struct environment *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		free(environment->values[i]);
	free(environment->values);
}

static void environment_take(struct environment *environment, char *value)
{
	char **values = realloc(environment->values, (environment->count + 2) * sizeof(*values));

	if (values)
		environment->values = values;
	if (!value || !values) {
		free(value);
		environment->failed = true;
		return;
	}
	values[environment->count++] = value;
	values[environment->count] = NULL;
}

static void environment_add(struct environment *environment, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void environment_add(struct environment *environment, const char *format, ...)
{
	va_list arguments;
	char *value;

	va_start(arguments, format);
	if (vasprintf(&value, format, arguments) < 0)
		value = NULL;
	va_end(arguments);
	environment_take(environment, value);
}

static void add_job(struct environment *environment, const struct job *job)
{
	environment_add(environment, HANDOFF_JOB_NAME "=%s", job->name);
	environment_add(environment, HANDOFF_ARRAY_JOB_ID "=%u", job->array_job_id);
	environment_add(environment, HANDOFF_ARRAY_TASK_ID "=%u", job->array_task_id);
	if (job->output && job->output[0])
		environment_add(environment, HANDOFF_JOB_STDOUT "=%s", job->output);
}

static void add_place(struct environment *environment)
{
	const char *nodes = getenv("SLURM_NODELIST"), *node = getenv("SLURMD_NODENAME");
	struct error err = ERROR_INIT;
	int index, count;

	if (!nodes || !node)
		return;
	if (job_node_place(nodes, node, &index, &count, &err)) {
		slurm_error("stagetool: %s", err.text);
		return;
	}
	environment_add(environment, HANDOFF_NODE_INDEX "=%d", index);
	environment_add(environment, HANDOFF_NODE_COUNT "=%d", count);
}

/* What Slurm gives a Prolog script, the job's specs, and what only the plugin knows. Nothing else
 * of this process: it may have the options of other plugins. */
static int make_environment(const struct tool_run *run, struct environment *environment)
{
	environment_add(
		environment, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	environment_add(environment, HANDOFF_REPORT_FD "=%d", CHILD_REPORT_FD);
	for (char **value = environ; *value; value++)
		if (!strncmp(*value, "SLURM", 5) ||
			!strncmp(*value, HANDOFF_SPANK_SPECS "=", strlen(HANDOFF_SPANK_SPECS "=")))
			environment_take(environment, strdup(*value));
	if (run->plugin->conf_given)
		environment_add(environment, HANDOFF_CONF "=%s", run->plugin->conf);
	if (run->state)
		environment_add(environment, HANDOFF_JOB_STATE "=%s", run->state);
	if (run->job)
		add_job(environment, run->job);
	add_place(environment);
	return environment->failed ? -ENOMEM : 0;
}

struct hearing {
	const struct tool_run *run;
	bool heard; /* a verdict */
	enum tool_verdict verdict;
	char text[LINE_SIZE];
	char said[LINE_SIZE]; /* the last line on standard error */
	unsigned lines;
};

static const char *after(const char *line, const char *start)
{
	size_t length = strlen(start);

	return strncmp(line, start, length) == 0 ? line + length : NULL;
}

static void hear_report(void *ctx, const char *line)
{
	static const char *const verdicts[] = { "verdict ok ", "verdict job ", "verdict node " };
	struct hearing *hearing = ctx;
	const char *text = after(line, "progress ");

	if (text && hearing->run->progress)
		hearing->run->progress(hearing->run->ctx, text);
	for (int i = TOOL_OK; i <= TOOL_NODE; i++) {
		text = after(line, verdicts[i]);
		if (!text)
			continue;
		hearing->heard = true;
		hearing->verdict = (enum tool_verdict)i;
		snprintf(hearing->text, sizeof(hearing->text), "%s", text);
	}
}

static void hear_said(void *ctx, const char *line)
{
	struct hearing *hearing = ctx;

	log_escape(line, hearing->said, sizeof(hearing->said));
	if (hearing->lines++ < SAID_LINES)
		slurm_info("stagetool %s: %s", hearing->run->verb, hearing->said);
}

static bool ask_go_on(void *ctx)
{
	struct hearing *hearing = ctx;

	return !hearing->run->go_on || hearing->run->go_on(hearing->run->ctx);
}

/* The tool's verdict counts only if it also ended as it should: one that died after it had spoken
 * did not finish. */
static enum tool_verdict judge(struct hearing *hearing, int status)
{
	const char *verb = hearing->run->verb;
	const char *colon = hearing->said[0] ? ": " : "";

	if (WIFSIGNALED(status))
		snprintf(hearing->text, sizeof(hearing->text),
			"stagetool %s was ended by signal %d (%s)", verb, WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else if (!hearing->heard)
		snprintf(hearing->text, sizeof(hearing->text),
			"stagetool %s ended with status %d and no verdict%s%.1024s", verb,
			WEXITSTATUS(status), colon, hearing->said);
	else if (hearing->verdict != TOOL_OK || WEXITSTATUS(status) == 0)
		return hearing->verdict;
	else
		snprintf(hearing->text, sizeof(hearing->text),
			"stagetool %s ended with status %d although it said: %.1024s", verb,
			WEXITSTATUS(status), hearing->said);
	return TOOL_JOB;
}

enum tool_verdict tool_run(const struct tool_run *run, char **text)
{
	struct environment environment = { 0 };
	struct hearing hearing = { .run = run };
	struct child_hooks hooks = {
		.ctx = &hearing,
		.report = hear_report,
		.said = hear_said,
		.go_on = ask_go_on,
		.grace = GRACE,
		.follow_parent = run->follow_parent,
	};
	char *arguments[] = { (char *)run->plugin->tool, (char *)run->verb, NULL };
	struct error err = ERROR_INIT;
	enum tool_verdict verdict = TOOL_JOB;
	int status = 0;
	int rc = plugin_check_tool(run->plugin, &err);

	if (!rc && make_environment(run, &environment))
		rc = error_set(&err, -ENOMEM, "stagetool %s: out of memory", run->verb);
	if (!rc)
		rc = child_run(arguments, environment.values, &hooks, &status, &err);
	if (!rc)
		verdict = judge(&hearing, status);
	*text = strdup(rc ? err.text : hearing.text);
	environment_free(&environment);
	return verdict;
}
