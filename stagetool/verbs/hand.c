#include "verbs/hand.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"

/* NULL or empty: not given. */
static const char *stage_dir(const struct hand *hand)
{
	return hand->options.dir ? hand->options.dir : getenv("STAGE_DIR");
}

int hand_specs(struct hand *hand, enum spec_side side, struct error *err)
{
	autofree char *base = getcwd(NULL, 0);
	const char *dir = stage_dir(hand);

	if (!dir || !*dir)
		return error_set(err, -EINVAL, "expected --dir=DIR, or $STAGE_DIR to be set");
	for (int i = 0; i < hand->options.n_words; i++) {
		int rc = spec_list_add(&hand->list, side, hand->options.words[i], base, err);

		if (rc < 0)
			return rc;
	}
	return spec_list_check(&hand->list, err);
}

static int make_dir(const char *dir, struct error *err)
{
	struct stat st;
	int fd;

	if (stat(dir, &st) == 0 || errno != ENOENT)
		return path_open(dir, O_RDONLY | O_DIRECTORY, err);
	fd = path_make_dirs(AT_FDCWD, dir, 0700, err);
	/* A umask may have taken from the owner, too. */
	if (fd >= 0 && fchmod(fd, 0700) < 0) {
		close(fd);
		return error_errno(err, "%s: chmod", dir);
	}
	return fd;
}

int hand_open(struct hand *hand, bool make, struct error *err)
{
	const char *dir = stage_dir(hand);

	hand->dir = strdup(dir);
	if (!hand->dir)
		return error_sys(err, -ENOMEM, "%s", dir);
	hand->stagefd = make ? make_dir(dir, err) : path_open(dir, O_RDONLY | O_DIRECTORY, err);
	hand->context.stagefd = hand->stagefd;
	return hand->stagefd < 0 ? hand->stagefd : 0;
}

int hand_open_above(struct hand *hand, struct error *err)
{
	autofree char *dir = strdup(stage_dir(hand));
	struct error first = ERROR_INIT;

	hand->dir = strdup(stage_dir(hand));
	if (!dir || !hand->dir)
		return error_sys(err, -ENOMEM, "%s", hand->verb);
	for (;;) {
		char *slash = strrchr(dir, '/');

		hand->stagefd = path_open(*dir ? dir : "/", O_RDONLY | O_DIRECTORY, &first);
		if (hand->stagefd != -ENOENT || strcmp(dir, ".") == 0 || !*dir)
			break;
		if (slash)
			*slash = '\0';
		else
			strcpy(dir, ".");
	}
	hand->context.stagefd = hand->stagefd;
	return hand->stagefd < 0 ? error_set(err, hand->stagefd, "%s", first.text) : 0;
}

static const char *or_null(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static char *user_name(void)
{
	const struct passwd *user = getpwuid(geteuid());
	char *number = NULL;

	if (user)
		return strdup(user->pw_name);
	return asprintf(&number, "%lu", (unsigned long)geteuid()) < 0 ? NULL : number;
}

static char *node_name(void)
{
	const char *node = or_null("SLURMD_NODENAME");
	char name[256] = "";

	if (!node && gethostname(name, sizeof(name) - 1) == 0) {
		name[strcspn(name, ".")] = '\0';
		node = name;
	}
	return strdup(node && *node ? node : "localhost");
}

static unsigned number_of(const char *name, unsigned missing)
{
	const char *text = or_null(name);
	uint64_t value;

	return text && parse_number(text, 0, UINT32_MAX, &value, NULL) == 0 ? (unsigned)value
									    : missing;
}

int hand_symbols(struct hand *hand, struct error *err)
{
	struct symbols *symbols = &hand->symbols;
	const char *job = or_null("SLURM_JOB_ID");

	symbols->user = hand->strings[0] = user_name();
	symbols->node = hand->strings[1] = node_name();
	if (!symbols->user || !symbols->node ||
		asprintf(&hand->strings[2], "conflict-%s%s%s", job ? job : "", job ? "-" : "",
			symbols->node) < 0)
		return error_sys(err, -ENOMEM, "%s", hand->verb);
	hand->context.symbols = symbols;
	hand->context.node_count = 1;
	if (!job)
		return 0;
	symbols->job_id = job;
	symbols->array_job_id = or_null("SLURM_ARRAY_JOB_ID");
	symbols->array_task_id = or_null("SLURM_ARRAY_TASK_ID");
	if (!symbols->array_job_id) {
		symbols->array_job_id = job;
		symbols->array_task_id = "0";
	}
	symbols->job_name = or_null("SLURM_JOB_NAME");
	symbols->node_index = or_null("SLURM_NODEID");
	hand->context.node_index = number_of("SLURM_NODEID", 0);
	hand->context.node_count = number_of("SLURM_JOB_NUM_NODES", 1);
	return 0;
}

void hand_free(struct hand *hand)
{
	for (size_t i = 0; hand->results && i < hand->plan->count; i++)
		summary_free(&hand->results[i]);
	free(hand->results);
	summary_free(&hand->total);
	transfer_live_free(hand->live);
	plan_free(hand->plan);
	spec_list_free(&hand->list);
	if (hand->stagefd >= 0)
		close(hand->stagefd);
	free(hand->dir);
	for (size_t i = 0; i < sizeof(hand->strings) / sizeof(*hand->strings); i++)
		free(hand->strings[i]);
}
