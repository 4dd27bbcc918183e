/*
 * sweep: runs the tool with every system call failing, and dying at every one, and checks what
 * must hold then. `sweep --help` says how.
 */
#include <err.h>
#include <fnmatch.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault/crew.h"

static const char help[] =
	"sweep [--scenario GLOB] [--limit N] [--kills N] [--jobs N] TOOL\n"
	"sweep --scenario NAME --point OPTIONS TOOL\n"
	"sweep --list\n"
	"\n"
	"TAP on standard output. N combinations and N kill points of each scenario at most; 0: "
	"all\n"
	"there are (FAULT_EXHAUSTIVE=1 in the environment means the same). --point runs one\n"
	"combination, given by failcall's options (\"--call openat --at 3 --errno EIO\"), and "
	"shows\n"
	"all that there is to see.\n";

struct settings {
	struct crew crew;
	const char *scenario, *point;
	size_t limit, kills;
};

struct totals {
	size_t tests, failures, kills, missed, bad;
};

/* A filesystem of its own, seen by nobody else and gone with this process: fast, and safe from
 * all. */
static void own_filesystem(char *root)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("stagetool-fault", root, "tmpfs", 0, "mode=755") < 0)
		err(99, "a tmpfs of its own (needs root)");
}

static bool tool_has(const struct crew *crew, const char *verb)
{
	char command[600];

	snprintf(command, sizeof(command), "'%s' %s --help >/dev/null 2>&1", crew->tool, verb);
	return system(command) == 0;
}

/* One line of TAP for the points of one call, from first to before end. */
static void print_group(const struct settings *settings, const struct scenario *scenario,
	const struct point_list *list, const struct outcome *outcomes, size_t first, size_t end,
	struct totals *totals)
{
	const struct point *point = &list->points[first];
	const char *name = point->call == CALL_ANY ? "killed" : calls_find(point->call)->name;
	size_t bad = 0, missed = 0;
	char options[200];

	for (size_t i = first; i < end; i++) {
		bad += outcomes[i].text[0] != '\0';
		missed += !outcomes[i].reached;
	}
	printf("%sok %zu - %s: %s: %zu points\n", bad ? "not " : "", ++totals->tests,
		scenario->name, name, end - first - missed);
	for (size_t i = first, shown = 0; i < end && shown < 8; i++) {
		if (!outcomes[i].text[0])
			continue;
		shown++;
		printf("# %s\n#   tests/fault/sweep --scenario %s --point '%s' %s\n",
			outcomes[i].text, scenario->name,
			point_options(&list->points[i], options, sizeof(options)),
			settings->crew.tool);
	}
	if (bad > 8)
		printf("# and %zu more\n", bad - 8);
	fflush(stdout);
	totals->bad += bad;
	totals->missed += missed;
	*(point->call == CALL_ANY ? &totals->kills : &totals->failures) += end - first - missed;
}

static void run_list(const struct settings *settings, const struct scenario *scenario,
	struct point_list *list, struct totals *totals)
{
	struct outcome *outcomes = crew_run(&settings->crew, scenario, list);

	for (size_t first = 0, end; first < list->count; first = end) {
		for (end = first + 1; end < list->count; end++) {
			if (list->points[end].call != list->points[first].call)
				break;
		}
		print_group(settings, scenario, list, outcomes, first, end, totals);
	}
	crew_free(outcomes, list);
	point_list_free(list);
}

static void run_scenario(const struct settings *settings, const struct scenario *scenario,
	struct totals *totals)
{
	static unsigned long counts[CALLS_MAX];
	struct point_list list;
	unsigned long total;

	crew_count(&settings->crew, scenario, counts, &total);
	point_list_make(&list, counts, settings->limit);
	run_list(settings, scenario, &list, totals);
	point_list_make_kills(&list, total, scenario->alone, settings->kills);
	run_list(settings, scenario, &list, totals);
}

static int run_all(const struct settings *settings)
{
	struct totals totals = { 0 };
	const struct scenario *scenario;

	for (size_t i = 0; (scenario = scenario_get(i)); i++) {
		if (fnmatch(settings->scenario, scenario->name, 0) != 0)
			continue;
		if (tool_has(&settings->crew, scenario->verb))
			run_scenario(settings, scenario, &totals);
		else
			printf("ok %zu - %s # SKIP the tool has no such verb\n", ++totals.tests,
				scenario->name);
	}
	printf("1..%zu\n# %zu combinations (call, errno, point), %zu kill points", totals.tests,
		totals.failures, totals.kills);
	if (totals.bad)
		printf(", %zu violations\n", totals.bad);
	else
		printf(", all three invariants held\n");
	printf("# %zu more points were not reached: threads share their calls differently each "
	       "time\n",
		totals.missed);
	return totals.bad || !totals.tests;
}

static int run_point(const struct settings *settings)
{
	const struct scenario *scenario;
	struct point point;

	if (point_parse(settings->point, &point) < 0)
		errx(2, "--point: not understood: %s", settings->point);
	for (size_t i = 0; (scenario = scenario_get(i)); i++) {
		if (!strcmp(settings->scenario, scenario->name))
			return crew_show(&settings->crew, scenario, &point);
	}
	errx(2, "--scenario: there is no %s", settings->scenario);
}

static int list_scenarios(void)
{
	const struct scenario *scenario;

	for (size_t i = 0; (scenario = scenario_get(i)); i++)
		printf("%s\n", scenario->name);
	return 0;
}

enum option_code { SCENARIO = 1, LIMIT, KILLS, JOBS, POINT, LIST, HELP };

static int parse_words(struct settings *settings, int argc, char **argv)
{
	static const struct option options[] = {
		{ "scenario", required_argument, NULL, SCENARIO },
		{ "limit", required_argument, NULL, LIMIT },
		{ "kills", required_argument, NULL, KILLS },
		{ "jobs", required_argument, NULL, JOBS },
		{ "point", required_argument, NULL, POINT },
		{ "list", no_argument, NULL, LIST },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	int code;

	while ((code = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (code) {
		case SCENARIO:
			settings->scenario = optarg;
			break;
		case LIMIT:
			settings->limit = strtoul(optarg, NULL, 10);
			break;
		case KILLS:
			settings->kills = strtoul(optarg, NULL, 10);
			break;
		case JOBS:
			settings->crew.workers = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case POINT:
			settings->point = optarg;
			break;
		case LIST:
			exit(list_scenarios());
		case HELP:
			fputs(help, stdout);
			exit(0);
		default:
			return -1;
		}
	}
	settings->crew.tool = argv[optind];
	return argc == optind + 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	char root[] = "/tmp/stagetool-fault.XXXXXX";
	struct settings settings = {
		.crew = { .root = root, .workers = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) },
		.scenario = "*", .limit = 700, .kills = 130,
	};
	int status;

	if (getenv("FAULT_EXHAUSTIVE"))
		settings.limit = settings.kills = 0;
	if (parse_words(&settings, argc, argv) < 0)
		errx(2, "%s", help);
	umask(022);
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(root))
		err(99, "%s", root);
	own_filesystem(root);
	status = settings.point ? run_point(&settings) : run_all(&settings);
	umount2(root, MNT_DETACH);
	rmdir(root);
	return status;
}
