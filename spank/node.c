#include "spank/node.h"

#include <errno.h>
#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "spank/job.h"
#include "spank/plugin.h"
#include "spec/conf.h"
#include "spec/handoff.h"
#include "spank/tool.h"
#include "spank/verdict.h"

/* Seconds for which slurmctld is asked again: about what it takes to start it anew. */
#define PATIENCE 120
/* A progress text is written no more often than this, in seconds. */
#define PROGRESS_EVERY 10
/* Nodes that may ask slurmctld for one job in the same second. */
#define LOOKS_PER_SECOND 16
#define LOOK_EVERY_MAX 30
/* Less than this in seconds, and the time limit is left alone. */
#define EXTEND_FROM 10

/* A prolog at work. */
struct prolog {
	struct plugin plugin;
	const char *node;
	uint32_t id;
	struct job job;   /* as it was at the start */
	int index, count; /* of the node among the job's */
	time_t began, next_look, next_progress;
	bool told_progress;
	bool over; /* the job was cancelled, or this attempt is not the last one any more */
};

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

static int job_number(uint32_t *id, const char **node)
{
	const char *text = getenv("SLURM_JOB_ID");
	char *end = NULL;
	unsigned long number = text ? strtoul(text, &end, 10) : 0;

	*node = getenv("SLURMD_NODENAME");
	if (!number || *end || number > UINT32_MAX || !*node) {
		slurm_error(
			"stagetool: SLURM_JOB_ID or SLURMD_NODENAME is not set as it should be");
		return -EINVAL;
	}
	*id = (uint32_t)number;
	return 0;
}

/* The more nodes a job has the more seldom each asks: slurmctld answers them all. */
static time_t look_interval(const struct prolog *prolog)
{
	time_t interval = prolog->count / LOOKS_PER_SECOND;

	return interval < 1 ? 1 : interval > LOOK_EVERY_MAX ? LOOK_EVERY_MAX : interval;
}

/* scancel sends a prolog no signal: the job is looked at. */
static bool prolog_goes_on(void *ctx)
{
	struct prolog *prolog = ctx;
	struct error err = ERROR_INIT;
	struct job job;
	int rc;

	if (now() < prolog->next_look)
		return true;
	prolog->next_look = now() + look_interval(prolog);
	rc = job_load(prolog->id, 0, &job, &err);
	if (rc)
		prolog->over = rc == -ESRCH;
	else
		prolog->over = !job_is_live(&job) || job.restarts != prolog->job.restarts;
	if (!rc)
		job_free(&job);
	return !prolog->over;
}

/* One node speaks for all, and never over another one's failure. */
static void prolog_progress(void *ctx, const char *text)
{
	struct prolog *prolog = ctx;
	struct error err = ERROR_INIT;
	struct job job;
	char line[512];

	if (prolog->index != 0 || now() < prolog->next_progress || prolog->over)
		return;
	prolog->next_progress = now() + PROGRESS_EVERY;
	if (job_load(prolog->id, 0, &job, &err))
		return;
	if (job_is_live(&job) && !verdict_of(&job)) {
		snprintf(line, sizeof(line), "stage-in: %s", text);
		if (!job_set_comments(&job, NULL, line, &err))
			prolog->told_progress = true;
	}
	job_free(&job);
}

/* The time that staging took is given back. Every node of the job does this: the limit is raised to
 * what it was at the start and this node's share, if it is not there yet. */
static void extend_limit(const struct prolog *prolog)
{
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;
	struct job job;
	time_t spent = now() - prolog->began;
	uint32_t wanted = prolog->job.time_limit + (uint32_t)((spent + 59) / 60);
	bool extend;

	if (spent < EXTEND_FROM || prolog->job.time_limit >= NO_VAL)
		return;
	if (conf_load(prolog->plugin.conf, prolog->node, &conf, &err))
		return;
	extend = conf->extend_limit;
	conf_free(conf);
	if (!extend || job_load(prolog->id, 0, &job, &err))
		return;
	if (job_is_live(&job) && job.time_limit < wanted && job_set_time_limit(&job, wanted, &err))
		slurm_error("stagetool: %s", err.text);
	job_free(&job);
}

/* For the tasks on this node. The tool does it too, but it may have crashed. */
static void leave_failure(const struct prolog *prolog, char *failure)
{
	struct handoff handoff = { .failed = failure };
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32, prolog->id);
	if (!conf_load(prolog->plugin.conf, prolog->node, &conf, &err))
		handoff_write(conf->state_dir, number, &handoff, &err);
	conf_free(conf);
	if (err.code)
		slurm_error("stagetool: %s", err.text);
}

/* The failure is put where each node, the user and the administrator can read it. A user that is
 * waiting is told, and where nothing else would keep the job from starting it is ended. */
static int tell_failure(const struct prolog *prolog, const char *failure, struct error *err)
{
	const char *client = getenv(HANDOFF_SPANK_CLIENT);
	struct job job;
	int rc = job_load(prolog->id, PATIENCE, &job, err);

	if (rc)
		return rc == -ESRCH ? 0 : rc;
	if (!job_is_live(&job) || job.restarts != prolog->job.restarts) {
		job_free(&job);
		return 0;
	}
	/* The first one stays: it is the one that the user may already have read. */
	if (!verdict_of(&job))
		rc = job_set_comments(
			&job, verdict_may_replace(job.comment) ? failure : NULL, failure, err);
	bool srun = !job.batch && client && !strcmp(client, HANDOFF_CLIENT_SRUN);
	bool waits = (job.batch || srun) && job_waits_for_prologs(job.batch);

	if (!rc && !waits) {
		if (!job.batch)
			job_tell(&job, failure);
		rc = job_fail(prolog->id, err);
	}
	job_free(&job);
	return rc;
}

/* Tries until slurmctld took it: a failure that it does not know of may let the script start. */
static int fail_job(struct prolog *prolog, const char *reason)
{
	autofree char *failure = verdict_text(prolog->node, prolog->job.restarts, reason);
	struct error err = ERROR_INIT;
	time_t end = now() + PATIENCE;

	if (!failure)
		return 1;
	slurm_error("stagetool: job %" PRIu32 ": %s", prolog->id, failure);
	leave_failure(prolog, failure);
	while (tell_failure(prolog, failure, &err)) {
		slurm_error("stagetool: %s", err.text);
		if (now() >= end)
			return 1;
		sleep(1);
	}
	return 0;
}

/* The node goes, the job stays: it runs again elsewhere. One that may not be run again fails. */
static int fail_node(struct prolog *prolog, const char *reason)
{
	struct error err = ERROR_INIT;
	char drain[1100];
	int rc;

	snprintf(drain, sizeof(drain), "stagetool: %.1000s", reason);
	slurm_error("%s", drain);
	if (job_drain_node(prolog->node, drain, &err)) {
		slurm_error("stagetool: %s", err.text);
		return 1;
	}
	rc = job_requeue(&prolog->job, &err);
	if (rc)
		return fail_job(prolog, reason);
	return 0;
}

static int prolog_run(struct prolog *prolog)
{
	struct tool_run run = {
		.plugin = &prolog->plugin,
		.verb = "prolog",
		.job = &prolog->job,
		.follow_parent = true,
		.progress = prolog_progress,
		.go_on = prolog_goes_on,
		.ctx = prolog,
	};
	autofree char *text = NULL;
	enum tool_verdict verdict = tool_run(&run, &text);

	if (prolog->over)
		return 0;
	if (!text)
		return 1;
	switch (verdict) {
	case TOOL_OK:
		slurm_info("stagetool: job %" PRIu32 ": %s", prolog->id, text);
		if (prolog->told_progress) {
			prolog->next_progress = 0;
			prolog_progress(prolog, text);
		}
		extend_limit(prolog);
		return 0;
	case TOOL_JOB:
		return fail_job(prolog, text);
	case TOOL_NODE:
		return fail_node(prolog, text);
	}
	return 1;
}

int node_prolog(int count, char *arguments[])
{
	struct prolog prolog = { .began = now() };
	struct error err = ERROR_INIT;
	const char *nodes = getenv("SLURM_NODELIST");
	int rc;

	if (!getenv(HANDOFF_SPANK_SPECS))
		return 0;
	if (job_number(&prolog.id, &prolog.node))
		return 1;
	prolog.next_look = prolog.next_progress = prolog.began + 2;
	rc = job_load(prolog.id, PATIENCE, &prolog.job, &err);
	if (rc == -ESRCH)
		return 0;
	if (rc) {
		slurm_error("stagetool: %s", err.text);
		return 1;
	}
	if (!nodes || job_node_place(nodes, prolog.node, &prolog.index, &prolog.count, &err))
		rc = fail_job(&prolog, nodes ? err.text : "SLURM_NODELIST is not set");
	else if (plugin_parse(count, arguments, &prolog.plugin, &err))
		rc = fail_job(&prolog, err.text);
	else
		rc = prolog_run(&prolog);
	job_free(&prolog.job);
	return rc;
}

/* Where slurmctld does not answer: a nonzero exit code is a failure, but a cancelled job shows 0
 * too. */
static const char *guess_state(void)
{
	const char *code = getenv("SLURM_JOB_EXIT_CODE");

	return code && strcmp(code, "0") != 0 ? "FAILED" : "UNKNOWN";
}

static int epilog_run(const struct plugin *plugin, const char *node, const struct job *job)
{
	struct tool_run run = {
		.plugin = plugin,
		.verb = "epilog",
		.job = job,
		.state = job ? job_state_name(job->state) : guess_state(),
	};
	struct error err = ERROR_INIT;
	autofree char *text = NULL;
	enum tool_verdict verdict = tool_run(&run, &text);
	char drain[1100];

	if (verdict != TOOL_NODE) {
		if (verdict == TOOL_OK)
			slurm_info("stagetool: %s", text ? text : "");
		else
			slurm_error("stagetool: %s", text ? text : "");
		return 0;
	}
	snprintf(drain, sizeof(drain), "stagetool: %.1000s", text ? text : "");
	slurm_error("%s", drain);
	if (!job_drain_node(node, drain, &err))
		return 0;
	slurm_error("stagetool: %s", err.text);
	return 1;
}

int node_epilog(int count, char *arguments[])
{
	struct plugin plugin;
	struct error err = ERROR_INIT;
	const char *node;
	struct job job;
	uint32_t id;
	int rc;

	if (!getenv(HANDOFF_SPANK_SPECS))
		return 0;
	if (job_number(&id, &node))
		return 0;
	if (plugin_parse(count, arguments, &plugin, &err)) {
		slurm_error("stagetool: %s", err.text);
		return 0;
	}
	rc = job_load(id, PATIENCE, &job, &err);
	if (rc) {
		slurm_error("stagetool: %s", err.text);
		return epilog_run(&plugin, node, NULL);
	}
	rc = epilog_run(&plugin, node, &job);
	job_free(&job);
	return rc;
}
