#include "fault/scenario.h"

#include <errno.h>
#include <sys/syscall.h>

static void build_copy(struct world *world)
{
	world_tree(world, "from");
	world_directory(world, "to", 0755);
	world_places(world, "from", "to/tree");
}

static void build_copy_over(struct world *world)
{
	build_copy(world);
	world_older_tree(world, "to/tree");
}

static void build_copy_file(struct world *world)
{
	world_directory(world, "from", 0755);
	world_file(world, "from/file", world->large, 1, 0640);
	world_directory(world, "to", 0755);
	world_file(world, "to/file", 4000, 2, 0644);
	world_finish(world, "from", 3);
	world_places(world, "from", "to");
	world->ignore = IGNORE_DIR_TIMES;
}

static const char *const words_copy[] = { "%T", "copy", "--threads=2", "%W/from", "%W/to/tree",
	NULL };
static const char *const words_copy_durable[] = { "%T", "copy", "--threads=2", "--durable",
	"--verify", "%W/from", "%W/to/tree", NULL };
static const char *const words_copy_readwrite[] = { "%T", "copy", "--threads=2",
	"--engine=readwrite", "%W/from", "%W/to/tree", NULL };
static const char *const words_copy_file[] = { "%T", "copy", "--threads=2", "%W/from/file",
	"%W/to/file", NULL };

/* As an NFS server has it, or a kernel of some years ago. */
static const struct trace_lack lacks_newer[] = { { SYS_openat2, ENOSYS }, { SYS_statx, ENOSYS },
	{ SYS_renameat2, EINVAL }, { SYS_copy_file_range, EXDEV }, { SYS_fallocate, EOPNOTSUPP },
	{ -1, 0 } };

/* With this the C library has to mmap what it hands out, and that can fail. */
static const struct trace_lack lacks_memory[] = { { SYS_brk, 0 }, { -1, 0 } };

const struct scenario scenarios_copy[] = {
	{ .name = "copy", .verb = "copy", .build = build_copy, .words = words_copy },
	{ .name = "copy-user",
		.verb = "copy",
		.user = true,
		.build = build_copy,
		.words = words_copy },
	{ .name = "copy-over", .verb = "copy", .build = build_copy_over, .words = words_copy },
	{ .name = "copy-over-user",
		.verb = "copy",
		.user = true,
		.build = build_copy_over,
		.words = words_copy_readwrite },
	{ .name = "copy-durable",
		.verb = "copy",
		.build = build_copy_over,
		.words = words_copy_durable },
	{ .name = "copy-file", .verb = "copy", .build = build_copy_file, .words = words_copy_file },
	{ .name = "copy-old-system", .verb = "copy", .build = build_copy_over,
		.words = words_copy, .lacks = lacks_newer },
	{ .name = "copy-no-memory", .verb = "copy", .build = build_copy, .words = words_copy,
		.lacks = lacks_memory },
	{ .name = NULL },
};
