#include "spank/submit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "spank/job.h"
#include "spec/conf.h"
#include "spec/handoff.h"
#include "spec/protect.h"
#include "spec/spec.h"
#include "spank/verdict.h"

#define OPTION_VARIABLE "SLURM_SPANK__SLURM_SPANK_OPTION_stage_"
/* How far the clocks of this host and slurmctld's may be apart, in seconds. */
#define CLOCK_SLACK 10
/* How long srun asks for its job while slurmctld does not answer. */
#define PATIENCE 60

/* Callbacks are given nothing of ours. */
static struct spec_list asked;
static time_t began;

/* What the environment of an enclosing job says of its own options: Slurm takes them as if they were
 * on the command line. */
static char *inherited[PLUGIN_OPTIONS];

static void inherit(enum plugin_option option, const char *variable)
{
	const char *value = getenv(variable);

	free(inherited[option]);
	inherited[option] = value ? strdup(value) : NULL;
}

/* A step of a job is no news: srun hands the job's options on, so that slurmstepd knows that there must
 * be a stage. But a new job asks for itself. STAGE_DIR goes too: the new job may run on another node,
 * where that directory is not. */
void submit_begin(void)
{
	static const char *const names[PLUGIN_OPTIONS] = {
		[PLUGIN_STAGE_IN] = "stage_in",
		[PLUGIN_STAGE_OUT] = "stage_out",
		[PLUGIN_STAGE_TIER] = "stage_tier",
		[PLUGIN_STAGE_SIZE] = "stage_size",
	};
	bool step = spank_context() == S_CTX_LOCAL && getenv("SLURM_JOB_ID");
	char variable[128];

	began = time(NULL);
	for (int option = 0; option < PLUGIN_OPTIONS; option++) {
		snprintf(variable, sizeof(variable), OPTION_VARIABLE "%s", names[option]);
		if (step)
			inherit((enum plugin_option)option, variable);
		else
			unsetenv(variable);
	}
	if (step || !getenv("SLURM_" HANDOFF_SPANK_SPECS))
		return;
	unsetenv("SLURM_" HANDOFF_SPANK_SPECS);
	unsetenv("STAGE_DIR");
	unsetenv("STAGE_TIER");
}

static int refuse_step(const char *job)
{
	slurm_error(
		"stage options belong to a job: give them to sbatch or salloc, or to a srun that "
		"starts a job of its own. Inside job %s, call 'stagetool in' and 'stagetool out'.",
		job);
	return -1;
}

int submit_option(enum plugin_option option, const char *value)
{
	autofree char *base = getcwd(NULL, 0);
	struct error err = ERROR_INIT;
	const char *job = getenv("SLURM_JOB_ID");
	int rc = 0;

	if (spank_context() == S_CTX_LOCAL && job) {
		if (inherited[option] && !strcmp(inherited[option], value))
			return 0;
		return refuse_step(job);
	}
	switch (option) {
	case PLUGIN_STAGE_IN:
		rc = spec_list_add(&asked, SPEC_IN, value, base, &err);
		break;
	case PLUGIN_STAGE_OUT:
		rc = spec_list_add(&asked, SPEC_OUT, value, base, &err);
		break;
	case PLUGIN_STAGE_TIER:
		rc = spec_list_set_tier(&asked, value, &err);
		break;
	case PLUGIN_STAGE_SIZE:
		rc = spec_list_set_size(&asked, value, &err);
		break;
	case PLUGIN_OPTIONS:
		break;
	}
	if (rc)
		slurm_error("%s", err.text);
	return rc ? -1 : 0;
}

static bool asked_nothing(void)
{
	return !asked.count && !asked.tier && !asked.size;
}

static int hand_on(spank_t sp, const char *name, const char *value)
{
	spank_err_t rc = spank_job_control_setenv(sp, name, value, 1);

	if (rc == ESPANK_SUCCESS)
		return 0;
	slurm_error("stage options could not be put into the job: %s", spank_strerror(rc));
	return -1;
}

/* What only the administrator's file says, where it is on this host: the nodes have the last word. */
static int check_places(int count, char *arguments[], struct error *err)
{
	struct error ignored = ERROR_INIT;
	struct conf *conf = NULL;
	struct plugin plugin;
	char host[256] = "";
	int rc = 0;

	if (gethostname(host, sizeof(host) - 1) || plugin_parse(count, arguments, &plugin, &ignored) ||
		conf_load(plugin.conf, host, &conf, &ignored))
		return 0;
	for (size_t i = 0; i < asked.count && !rc; i++) {
		const char *place = asked.items[i].at;
		struct error why = ERROR_INIT;

		if (place && protect_check(place, conf, &why))
			rc = error_set(err, -EPERM, "--stage-in %s: \"at\": %s", asked.items[i].text,
				why.text);
	}
	conf_free(conf);
	return rc;
}

int submit_end(spank_t sp, int count, char *arguments[])
{
	static unsigned components;
	autofree char *text = NULL;
	struct error err = ERROR_INIT;

	components++;
	if (asked_nothing())
		return 0;
	if (components > 1) {
		slurm_error("stage options can not be used in a heterogeneous job: Slurm gives a "
			    "component also the options of those before it. Call 'stagetool in' and "
			    "'stagetool out' in the script, or submit separate jobs.");
		return -1;
	}
	if (spec_list_check(&asked, &err) || check_places(count, arguments, &err) ||
		spec_list_encode(&asked, &text, &err)) {
		slurm_error("%s", err.text);
		return -1;
	}
	if (spank_context() == S_CTX_LOCAL && hand_on(sp, HANDOFF_CLIENT, HANDOFF_CLIENT_SRUN))
		return -1;
	return hand_on(sp, HANDOFF_SPECS, text);
}

int submit_start(spank_t sp)
{
	struct error err = ERROR_INIT;
	struct job job;
	const char *failure;
	uint32_t id = 0;
	int rc = 0;

	if (asked_nothing())
		return 0;
	if (spank_get_item(sp, S_JOB_ID, &id) != ESPANK_SUCCESS ||
		job_load(id, PATIENCE, &job, &err)) {
		slurm_error(
			"whether the stage-in of job %u went well is not known: %s", id, err.text);
		return -1;
	}
	failure = verdict_of(&job);
	if (job.batch || job.submitted < began - CLOCK_SLACK) {
		/* srun --jobid */
		char number[16];

		snprintf(number, sizeof(number), "%u", id);
		rc = refuse_step(number);
	} else if (failure) {
		slurm_error("%s", failure);
		/* Else the job would be CANCELLED with exit code 0 when srun leaves. */
		if (job_fail(id, &err))
			slurm_error("%s", err.text);
		rc = -1;
	}
	job_free(&job);
	return rc;
}
