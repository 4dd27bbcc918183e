/*
 * The SPANK plugin's hooks, each one line to its side: submit.c (sbatch, salloc, srun), node.c
 * (prolog and epilog), step.c (slurmstepd).
 */
#include <slurm/spank.h>

#include "spank/node.h"
#include "spank/plugin.h"
#include "spank/step.h"
#include "spank/submit.h"

SPANK_PLUGIN(stage, 1)

static int option_seen(int option, const char *value, int remote)
{
	if (!remote)
		return submit_option((enum plugin_option)option, value);
	step_asked();
	return 0;
}

static struct spank_option options[] = {
	[PLUGIN_STAGE_IN] = { (char *)"stage-in", (char *)"FROM[:TO][,OPTION]...",
		(char *)"bring FROM into $STAGE_DIR before the job starts (repeatable)", 1,
		PLUGIN_STAGE_IN, option_seen },
	[PLUGIN_STAGE_OUT] = { (char *)"stage-out", (char *)"FROM:TO[,OPTION]...",
		(char *)"bring FROM in $STAGE_DIR to TO after the job has ended (repeatable)", 1,
		PLUGIN_STAGE_OUT, option_seen },
	[PLUGIN_STAGE_TIER] = { (char *)"stage-tier", (char *)"NAME",
		(char *)"which local storage $STAGE_DIR is on", 1, PLUGIN_STAGE_TIER, option_seen },
	[PLUGIN_STAGE_SIZE] = { (char *)"stage-size", (char *)"SIZE",
		(char *)"space the job needs in $STAGE_DIR on each node", 1, PLUGIN_STAGE_SIZE,
		option_seen },
};

/* In slurmstepd and slurmd a failing hook drains the node or keeps slurmd from starting: what is
 * wrong in plugstack.conf is told to who submits, and by the prolog. */
int slurm_spank_init(spank_t sp, int count, char *arguments[])
{
	spank_context_t context = spank_context();
	bool submits = context == S_CTX_ALLOCATOR || context == S_CTX_LOCAL;
	struct plugin plugin;
	struct error err = ERROR_INIT;

	if (!submits && context != S_CTX_REMOTE)
		return 0;
	if (plugin_parse(count, arguments, &plugin, &err)) {
		slurm_error("%s", err.text);
		return submits ? -1 : 0;
	}
	if (submits)
		submit_begin();
	for (int i = 0; i < PLUGIN_OPTIONS; i++)
		spank_option_register(sp, &options[i]);
	return 0;
}

int slurm_spank_init_post_opt(spank_t sp, int count, char *arguments[])
{
	switch (spank_context()) {
	case S_CTX_ALLOCATOR:
	case S_CTX_LOCAL:
		return submit_end(sp, count, arguments);
	case S_CTX_REMOTE:
		step_begin(sp, count, arguments);
		return 0;
	default:
		return 0;
	}
}

int slurm_spank_local_user_init(spank_t sp, int count, char *arguments[])
{
	(void)count;
	(void)arguments;
	return submit_start(sp);
}

int slurm_spank_task_init_privileged(spank_t sp, int count, char *arguments[])
{
	(void)count;
	(void)arguments;
	return step_task(sp);
}

int slurm_spank_task_init(spank_t sp, int count, char *arguments[])
{
	(void)sp;
	(void)count;
	(void)arguments;
	step_greet();
	return 0;
}

int slurm_spank_job_prolog(spank_t sp, int count, char *arguments[])
{
	(void)sp;
	return node_prolog(count, arguments);
}

int slurm_spank_job_epilog(spank_t sp, int count, char *arguments[])
{
	(void)sp;
	return node_epilog(count, arguments);
}
