#include "fault/scenario.h"

static const char *const words_in[] = { "%T", "in", "--threads=2", "--dir=%W/stage", "%W/from:data",
	NULL };
static const char *const words_out[] = { "%T", "out", "--threads=2", "--dir=%W/stage",
	"data:%W/from", NULL };
static const char *const words_out_new[] = { "%T", "out", "--threads=2", "--dir=%W/stage",
	"data:%W/to/results", NULL };

static void build_in(struct world *world)
{
	world_tree(world, "from");
	world_directory(world, "stage", 0700);
	world_places(world, "from", "stage/data");
}

/* The source was replaced since it was staged. */
static void build_in_again(struct world *world)
{
	world_directory(world, "stage", 0700);
	world_older_tree(world, "from");
	world_run(world, words_in);
	world_rename(world, "from", "before");
	world_tree(world, "from");
	world_places(world, "from", "stage/data");
}

/* A job changed some of what was staged in, and made something new. */
static void build_out(struct world *world)
{
	world_directory(world, "stage", 0700);
	world_older_tree(world, "from");
	world_run(world, words_in);
	world_file(world, "stage/data/plain", 6000, 201, 0644);
	world_file(world, "stage/data/empty", 0, 202, 0600);
	world_file(world, "stage/data/sub/result", 80000, 203, 0640);
	world_tree(world, "stage/data/sub/results");
	world_finish(world, "stage/data/sub", 204);
	world_places(world, "stage/data", "from");
	world->ignore = IGNORE_DIR_TIMES;
}

/* Results of a stage that nothing was staged into. */
static void build_out_new(struct world *world)
{
	world_directory(world, "stage", 0700);
	world_tree(world, "stage/data");
	world_directory(world, "to", 0755);
	world_places(world, "stage/data", "to/results");
}

/* A file's other names, and a directory's mode and times, are those of one run. */
#define LIMITS (IGNORE_LINKS | IGNORE_DIR_TIMES | IGNORE_DIR_MODES)

const struct scenario scenarios_stage[] = {
	{ .name = "in", .verb = "in", .build = build_in, .words = words_in,
		.ignore_repaired = LIMITS },
	{ .name = "in-user", .verb = "in", .user = true, .build = build_in, .words = words_in,
		.ignore_repaired = LIMITS },
	{ .name = "in-again",
		.verb = "in",
		.user = true,
		.build = build_in_again,
		.words = words_in, .ignore_repaired = LIMITS },
	{ .name = "out", .verb = "out", .build = build_out, .words = words_out,
		.item = "error: data: ", .ignore_repaired = LIMITS },
	{ .name = "out-user", .verb = "out", .user = true, .build = build_out, .words = words_out,
		.item = "error: data: ", .ignore_repaired = LIMITS },
	{ .name = "out-new",
		.verb = "out",
		.user = true,
		.build = build_out_new,
		.words = words_out_new, .item = "error: data: ", .ignore_repaired = LIMITS },
	{ .name = NULL },
};
