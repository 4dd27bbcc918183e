#include "fault/scenario.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fault/judge.h"

#define SPECS "stagetool 1\nin %W/from:data\nout results:%W/to/results,optional\n"

/* As slurmd gives it to a Prolog script, and the plugin to the tool. */
static const char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_JOB_ID=77",
	"SLURM_JOB_UID=65534", "SLURM_JOB_GID=65534", "SLURMD_NODENAME=n1", "SLURM_RESTART_COUNT=0",
	"SPANK_STAGE_SPECS=" SPECS, "STAGE_JOB_STATE=COMPLETED", "STAGE_CONF=%W/stagetool.conf",
	"STAGE_JOB_STDOUT=%W/to/slurm-77.out", NULL };
static const char *const words_prolog[] = { "%T", "prolog", NULL };
static const char *const words_epilog[] = { "%T", "epilog", NULL };

/* What Slurm does after a prolog that failed: the epilog, and the job once more. */
static const char *const words_requeue[] = { "/bin/sh", "-c",
	"%T epilog && SLURM_RESTART_COUNT=1 exec %T prolog", NULL };

/* A stage-out that was kept is tried again. */
static const char *const words_retry[] = { "/bin/sh", "-c",
	"sed -i 's/\"kept\"/\"returning\"/' %W/state/jobs/77.0.json; exec %T epilog", NULL };

static void build_node(struct world *world)
{
	char text[1200];

	snprintf(text, sizeof(text),
		"[stagetool]\nstate_dir = %s/state\nthreads = 2\n[tier t]\npath = %s/tier\n"
		"min_free = 1M\n",
		world->root, world->root);
	world_text(world, "stagetool.conf", text);
	mkdir(world_path(world, "tier"), 0711);
	world_tree(world, "from");
	world_directory(world, "to", 0755);
	world_file(world, "to/slurm-77.out", WORLD_OUTPUT, 1, 0644);
}

static void build_prolog(struct world *world)
{
	build_node(world);
	world_places(world, "from", "tier/77.0/data");
	world->ignore = IGNORE_OTHER_TIMES;
	snprintf(world->repaired, sizeof(world->repaired), "%s/tier/77.1/data", world->root);
}

/* The job has made results, and a change that nobody asked to have back. */
static void build_epilog(struct world *world)
{
	build_node(world);
	world_run(world, words_prolog);
	world_file(world, "tier/77.0/data/plain", 6000, 201, 0644);
	world_tree(world, "tier/77.0/results");
	world_places(world, "tier/77.0/results", "to/results");
}

/* Neither the attempt that failed nor one whose results are back keeps its stage. */
static void expect_no_stage(const struct world *world, const struct point *point)
{
	const struct call *call = calls_find(point->call);

	if (call && strstr(call->name, "unlink") && point->every)
		return;
	if (access(world_path(world, "tier/77.0"), F_OK) == 0)
		judge_say("after the repair: the stage of the attempt that is over is still there");
}

const struct scenario scenarios_job[] = {
	{ .name = "prolog", .verb = "prolog", .job = true, .build = build_prolog,
		.words = words_prolog, .again = words_requeue, .environment = environment,
		.private_target = true, .output = "to/slurm-77.out", .alone = true,
		.extra_repaired = expect_no_stage },
	{ .name = "epilog", .verb = "epilog", .job = true, .build = build_epilog,
		.words = words_epilog, .again = words_retry, .environment = environment,
		.consumes = true, .keeps = true, .alone = true, .output = "to/slurm-77.out",
		.ignore_repaired = IGNORE_LINKS | IGNORE_DIR_TIMES | IGNORE_DIR_MODES,
		.extra_repaired = expect_no_stage },
	{ .name = NULL },
};
