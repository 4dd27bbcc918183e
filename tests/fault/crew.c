#include "fault/crew.h"

#include <err.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/judge.h"

#define SAID 16384
#define TIMEOUT 20000

struct worker {
	const struct scenario *scenario;
	struct world world;
	char **words, **again;
	int said_fd;
	char said[SAID];
};

static void worker_open(struct worker *worker, const struct crew *crew,
	const struct scenario *scenario, unsigned number)
{
	struct world *world = &worker->world;
	char said[300];

	memset(worker, 0, sizeof(*worker));
	worker->scenario = scenario;
	world->tool = crew->tool;
	world->user = scenario->user || scenario->job;
	world->drop = scenario->user;
	world->large = scenario->large ? scenario->large : 70000;
	snprintf(world->root, sizeof(world->root), "%s/%u", crew->root, number);
	if (mkdir(world->root, 0755) < 0 && access(world->root, W_OK) < 0)
		err(99, "%s", world->root);
	worker->words = world_words(world, scenario->words);
	worker->again = scenario->again ? world_words(world, scenario->again) : worker->words;
	if (scenario->environment)
		world->environment = world_words(world, scenario->environment);
	/* appending: writes of several threads or processes do not overwrite each other */
	snprintf(said, sizeof(said), "%s/said.%u", crew->root, number);
	worker->said_fd = open(said, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (worker->said_fd < 0)
		err(99, "%s", said);
}

static void worker_close(struct worker *worker)
{
	world_clear(&worker->world);
	if (worker->again != worker->words)
		world_words_free(worker->again);
	world_words_free(worker->words);
	if (worker->world.environment)
		world_words_free(worker->world.environment);
	close(worker->said_fd);
}

static void worker_build(struct worker *worker)
{
	world_clear(&worker->world);
	worker->world.ignore = 0;
	worker->world.repaired[0] = '\0';
	worker->scenario->build(&worker->world);
	world_remember(&worker->world);
}

/* What the tool says where a job's owner looks, whose first words are not the tool's. */
static void worker_add_output(struct worker *worker)
{
	size_t used = strlen(worker->said);
	int fd = open(world_path(&worker->world, worker->scenario->output), O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : pread(fd, worker->said + used, SAID - used - 1, WORLD_OUTPUT);

	worker->said[used + (got < 0 ? 0 : (size_t)got)] = '\0';
	if (fd >= 0)
		close(fd);
}

/* Runs a command as the plan says, and reads what it wrote to standard error. */
static void worker_trace(struct worker *worker, char **words, struct trace_plan *plan,
	struct trace_result *result)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), rc;
	ssize_t got;

	if (null < 0 || ftruncate(worker->said_fd, 0) < 0)
		err(99, "standard error");
	plan->argv = words;
	plan->envp = worker->world.environment;
	plan->lacks = worker->scenario->lacks;
	plan->drop = worker->world.drop;
	plan->uid = plan->gid = WORLD_UID;
	plan->out = null;
	plan->err = worker->said_fd;
	plan->from_entry = plan->no_sleep = true;
	plan->timeout = TIMEOUT;
	rc = trace_run(plan, result);
	if (rc < 0)
		errx(99, "trace: errno %d", -rc);
	close(null);
	got = pread(worker->said_fd, worker->said, SAID / 2, 0);
	worker->said[got < 0 ? 0 : got] = '\0';
	if (worker->scenario->output)
		worker_add_output(worker);
}

static struct trace_plan plan_of(const struct point *point)
{
	return (struct trace_plan){ .action = point->action, .call = point->call, .at = point->at,
		.every = point->every, .alone = point->alone, .error = point->error,
		.length = point->length, .signal = point->signal };
}

static void worker_repair(struct worker *worker, const struct point *point, bool warned)
{
	struct trace_plan plan = { .action = TRACE_FAIL, .call = CALLS_MAX - 1 };
	static struct trace_result result;

	worker_trace(worker, worker->again, &plan, &result);
	judge_repair(worker->scenario, &worker->world, point, warned, &result, worker->said);
}

static void worker_do(struct worker *worker, const struct point *point, struct outcome *outcome,
	bool show)
{
	struct trace_plan plan = plan_of(point);
	static struct trace_result result;
	bool warned;

	judge_begin(outcome->text, sizeof(outcome->text));
	worker_build(worker);
	worker_trace(worker, worker->words, &plan, &result);
	outcome->reached = result.hits > 0;
	if (show)
		printf("%s of %lu, %s\nwait status %x\n%s",
			outcome->reached ? "reached" : "not reached", result.seen, result.hit_path,
			result.status, worker->said);
	judge_run(worker->scenario, &worker->world, point, &result, worker->said);
	warned = (WIFEXITED(result.status) && WEXITSTATUS(result.status)) ||
		strstr(worker->said, "not set");
	worker_repair(worker, point, warned);
	if (show)
		printf("the repair: %s", worker->said);
}

void crew_count(const struct crew *crew, const struct scenario *scenario, unsigned long *counts,
	unsigned long *total)
{
	struct trace_plan plan = { .action = TRACE_COUNT, .call = CALL_ANY };
	static struct trace_result result;
	static struct worker worker;

	worker_open(&worker, crew, scenario, 0);
	worker_build(&worker);
	worker_trace(&worker, worker.words, &plan, &result);
	if (result.status != 0)
		errx(99, "%s: wait status %x without any fault: %s", scenario->name, result.status,
			worker.said);
	worker_close(&worker);
	*total = 0;
	for (int number = 0; number < CALLS_MAX; number++) {
		const struct call *call = calls_find(number);

		counts[number] = result.counts[number];
		if (!call || !call->idle)
			*total += result.counts[number];
	}
}

int crew_show(const struct crew *crew, const struct scenario *scenario, const struct point *point)
{
	static struct worker worker;
	struct outcome outcome;

	worker_open(&worker, crew, scenario, 0);
	worker_do(&worker, point, &outcome, true);
	worker_close(&worker);
	printf("%s\n", outcome.text[0] ? outcome.text : "all three invariants held");
	return outcome.text[0] != '\0';
}

static void __attribute__((noreturn))
work(const struct crew *crew, const struct scenario *scenario, const struct point_list *list,
	unsigned number, atomic_size_t *next, struct outcome *outcomes)
{
	static struct worker worker;
	size_t i;

	/* whoever loses its parent is ours to bury: a zombie counts as a living process */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	worker_open(&worker, crew, scenario, number);
	while ((i = atomic_fetch_add(next, 1)) < list->count) {
		snprintf(outcomes[i].text, CREW_TEXT, "the test itself failed here");
		worker_do(&worker, &list->points[i], &outcomes[i], false);
	}
	worker_close(&worker);
	_exit(0);
}

struct outcome *crew_run(const struct crew *crew, const struct scenario *scenario,
	const struct point_list *list)
{
	size_t size = sizeof(atomic_size_t) + (list->count + 1) * sizeof(struct outcome);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct outcome *outcomes = (struct outcome *)((char *)shared + sizeof(atomic_size_t));

	if (shared == MAP_FAILED)
		err(99, "mmap");
	fflush(NULL);
	for (unsigned i = 0; i < crew->workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(99, "fork");
		if (pid == 0)
			work(crew, scenario, list, i, shared, outcomes);
	}
	for (unsigned i = 0; i < crew->workers; i++)
		wait(NULL);
	for (size_t i = atomic_load((atomic_size_t *)shared); i < list->count; i++)
		snprintf(outcomes[i].text, CREW_TEXT, "not run: the test itself failed before");
	return outcomes;
}

void crew_free(struct outcome *outcomes, const struct point_list *list)
{
	munmap((char *)outcomes - sizeof(atomic_size_t),
		sizeof(atomic_size_t) + (list->count + 1) * sizeof(struct outcome));
}
