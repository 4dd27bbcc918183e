#include "spank/step.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "spank/job.h"
#include "spec/conf.h"
#include "spec/handoff.h"
#include "spank/verdict.h"
#include "spank/view.h"

/* How long a batch step asks for its job while slurmctld does not answer. */
#define PATIENCE 120

/* Found once in slurmstepd, before the tasks are forked from it. */
static struct {
	bool asked;
	bool batch;
	struct handoff handoff;
	const char *conf; /* conf= of plugstack.conf, for stagetool in the job; NULL: none */
	struct conf *settings; /* for views */
	bool failed;   /* no task may start */
	char *failure; /* why; NULL: no memory for it */
} step;

void step_asked(void)
{
	step.asked = true;
}

static void fail_step(const char *reason)
{
	if (step.failed)
		return;
	step.failure = strdup(reason);
	step.failed = true;
}

/* SLURMD_NODENAME is slurmstepd's own, not the job's. */
static int read_handoff(int count, char *arguments[], uint32_t id, struct error *err)
{
	struct plugin plugin;
	char number[16];
	int rc = plugin_parse(count, arguments, &plugin, err);

	if (!rc)
		rc = conf_load(plugin.conf, getenv("SLURMD_NODENAME"), &step.settings, err);
	if (rc)
		return rc;
	if (plugin.conf_given)
		step.conf = plugin.conf;
	snprintf(number, sizeof(number), "%u", id);
	rc = handoff_read(step.settings->state_dir, number, &step.handoff, err);
	if (rc == -ENOENT)
		return error_set(err, rc,
			"no stage-in was run on this node: was slurmd restarted after stage.so was "
			"added to plugstack.conf?");
	return rc;
}

/* What another node's prolog found. slurmctld starts the batch script once all of them are over;
 * the other steps of a job come after that. */
static void ask_for_verdict(uint32_t id)
{
	struct error err = ERROR_INIT;
	struct job job;
	const char *failure;

	if (job_load(id, PATIENCE, &job, &err)) {
		error_prefix(
			&err, -EIO, "whether the stage-in of all nodes went well is not known");
		fail_step(err.text);
		return;
	}
	failure = verdict_of(&job);
	if (failure)
		fail_step(failure);
	job_free(&job);
}

void step_begin(spank_t sp, int count, char *arguments[])
{
	struct error err = ERROR_INIT;
	uint32_t id = 0, number = 0;

	if (spank_get_item(sp, S_JOB_ID, &id) != ESPANK_SUCCESS ||
		spank_get_item(sp, S_JOB_STEPID, &number) != ESPANK_SUCCESS ||
		number == SLURM_EXTERN_CONT)
		return;
	step.batch = number == SLURM_BATCH_SCRIPT;
	if (read_handoff(count, arguments, id, &err)) {
		/* A job that asked for nothing is none of ours, whatever is wrong here. If the
		 * prolog could not leave its reason here, it is in the job's comment. */
		if (!step.asked)
			return;
		if (step.batch)
			ask_for_verdict(id);
		fail_step(err.text);
		return;
	}
	if (step.batch)
		ask_for_verdict(id);
	if (step.handoff.failed)
		fail_step(step.handoff.failed);
}

static int give(spank_t sp, const char *name, const char *value)
{
	spank_err_t rc = value ? spank_setenv(sp, name, value, 1) : spank_unsetenv(sp, name);

	if (rc == ESPANK_SUCCESS || (!value && rc == ESPANK_ENV_NOEXIST))
		return 0;
	slurm_error("%s: %s", name, spank_strerror(rc));
	return -1;
}

static int show_views(spank_t sp)
{
	struct view_user user = { 0 };
	struct error err = ERROR_INIT;
	gid_t *groups = NULL;
	int n_groups = 0;

	if (!step.handoff.n_views)
		return 0;
	if (spank_get_item(sp, S_JOB_UID, &user.uid) != ESPANK_SUCCESS ||
		spank_get_item(sp, S_JOB_GID, &user.gid) != ESPANK_SUCCESS ||
		spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &n_groups) != ESPANK_SUCCESS) {
		slurm_error("at: who the job belongs to is not known");
		return -1;
	}
	user.groups = groups;
	user.n_groups = n_groups > 0 ? (size_t)n_groups : 0;
	if (!view_show(&step.handoff, step.settings, &user, &err))
		return 0;
	slurm_error("%s", err.text);
	return -1;
}

int step_task(spank_t sp)
{
	if (step.failed) {
		slurm_error("%s", step.failure ? step.failure : "stage-in: out of memory");
		return -1;
	}
	if (!step.handoff.dir)
		return 0;
	if (show_views(sp))
		return -1;
	if (step.conf && give(sp, HANDOFF_CONF, step.conf))
		return -1;
	if (give(sp, "STAGE_DIR", step.handoff.dir))
		return -1;
	return give(sp, "STAGE_TIER", step.handoff.tier);
}

void step_greet(void)
{
	if (step.batch && step.handoff.notice)
		dprintf(STDOUT_FILENO, "%s\n", step.handoff.notice);
}
