#include "stage/node_end.h"
#include "verbs/hook.h"
#include "verbs/options.h"
#include "verbs/verbs.h"

const char verb_epilog_help[] =
	"Usage: stagetool epilog [--conf=FILE]\n"
	"\n"
	"What the plugin, or a site's own Epilog script, runs as root on every node of a\n"
	"job after it has ended: brings back the results that it asked for, as the job's\n"
	"user, says so in the job's output file, and removes the stage. Where not all\n"
	"results are safe the stage is kept. Takes the job from the environment, as Slurm\n"
	"gives it to an Epilog script.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_CONF OPTIONS_HELP_COMMON "\n"
	"Exit status:\n"
	"  0  nothing is left to do, or results are kept on the node (see the messages)\n"
	"  2  the environment does not name a job\n"
	"  6  the node is broken: its tier, its configuration or its state_dir\n";

static bool epilog_wants(const struct node *node)
{
	return node_end_is_needed(node->state, node->job->job_id);
}

static void epilog_run(const struct node *node, struct node_verdict *verdict)
{
	node_end(node, verdict);
	node_prune(node);
}

int verb_epilog(int argc, char **argv)
{
	static const struct hook hook = {
		.verb = "epilog",
		.help = verb_epilog_help,
		.wants = epilog_wants,
		.run = epilog_run,
		.job_status =
			VERB_DONE, /* anything else, and Slurm takes the node out of service */
	};

	return hook_run(argc, argv, &hook);
}
