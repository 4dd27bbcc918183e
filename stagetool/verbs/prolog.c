#include "spec/handoff.h"
#include "stage/node_start.h"
#include "verbs/hook.h"
#include "verbs/options.h"
#include "verbs/verbs.h"

const char verb_prolog_help[] =
	"Usage: stagetool prolog [--conf=FILE]\n"
	"\n"
	"What the plugin, or a site's own Prolog script, runs as root on every node of a\n"
	"job before it starts: makes the job's stage and brings in what it asked for, as\n"
	"the job's user. Takes the job from the environment, as Slurm gives it to a\n"
	"Prolog script. A job that asked for nothing costs nothing. A second run is\n"
	"harmless.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_CONF OPTIONS_HELP_COMMON "\n"
	"Exit status:\n"
	"  0  the job can start\n"
	"  1  the job must fail: its data can not be had, or does not fit\n"
	"  2  the environment does not name a job\n"
	"  6  the node is broken: its tier, its configuration or its state_dir\n";

int verb_prolog(int argc, char **argv)
{
	static const struct hook hook = {
		.verb = "prolog",
		.help = verb_prolog_help,
		.run = node_start,
		.job_status = HANDOFF_EXIT_JOB,
	};

	return hook_run(argc, argv, &hook);
}
