#include "verbs/unpack_run.h"

#include "archive/unpack.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "report/progress.h"
#include "tree/remove.h"
#include "verbs/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

struct unpack_work {
	const struct unpack_request *request;
	pthread_mutex_t lock; /* of what follows */
	struct unpack *unpack; /* NULL before and after */
	struct summary *summary;
};

/* TO: itself where it is there (name "."), else its name in the directory that it is to be in. */
struct unpack_target {
	int fd;
	const char *name; /* borrowed from path */
	char *path;
};

static void work_outcome(void *ctx, const struct copy_item *item, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err)
{
	struct unpack_work *work = ctx;
	bool done = outcome == COPY_DONE;
	autofree char *path = NULL;
	const char *shown;
	char *named;

	(void)dst;
	if (outcome == COPY_UNCHANGED || (done && log_level() < LOG_DEBUG))
		return;
	path = copy_item_path(item);
	shown = path && *path ? path : *item->name ? item->name : ".";
	if (done) {
		log_debug("%s: unpacked", shown);
		return;
	}
	if (asprintf(&named, "%s: %s", work->request->archive, shown) < 0)
		named = NULL;
	pthread_mutex_lock(&work->lock);
	problem_tell(work->summary, named ? named : shown, outcome,
		err ? err->text : "no reason is known");
	pthread_mutex_unlock(&work->lock);
	free(named);
}

static enum copy_answer work_decide(void *ctx, const struct copy_item *item, const struct stat *dst,
	struct copy_expect *expect, struct copy_tag *tag)
{
	const struct unpack_work *work = ctx;
	autofree char *path = work->request->filter && *item->name ? copy_item_path(item) : NULL;
	char *slash;

	(void)tag;
	/* What stands for something else than its content is never replaced: think of /dev/null. */
	if (dst && (S_ISCHR(dst->st_mode) || S_ISBLK(dst->st_mode) || S_ISSOCK(dst->st_mode)))
		expect->kind = COPY_EXPECT_NOTHING;
	if (!path)
		return COPY_SEND;
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	switch (filter_match(work->request->filter, slash ? path : "", item->name,
		S_ISDIR(item->src->st_mode))) {
	case FILTER_OUT:
		return COPY_LEAVE;
	case FILTER_ENTER:
		return COPY_SKIP;
	default:
		return COPY_SEND;
	}
}

static void work_sample(void *ctx, struct progress_now *now)
{
	struct unpack_work *work = ctx;
	struct copy_counts counts = { 0 };

	pthread_mutex_lock(&work->lock);
	if (work->unpack)
		copy_counts(unpack_copy(work->unpack), &counts);
	pthread_mutex_unlock(&work->lock);
	now->files = counts.files;
	now->bytes = counts.bytes;
}

static int target_open(const char *to, struct unpack_target *target, struct error *err)
{
	autofree char *above = NULL;
	struct error first = ERROR_INIT;
	char *slash;

	*target = (struct unpack_target){ .fd = path_open(to, O_RDONLY | O_DIRECTORY, &first) };
	target->name = ".";
	if (target->fd >= 0)
		return 0;
	target->path = path_clean(to);
	above = target->path ? strdup(target->path) : NULL;
	if (!above)
		return error_sys(err, -ENOMEM, "%s", to);
	target->name = path_base(target->path);
	slash = strrchr(above, '/');
	if (target->fd != -ENOENT || !*target->name || !strcmp(target->name, ".."))
		return error_set(err, target->fd, "%s", first.text);
	if (slash)
		slash[slash == above] = '\0';
	target->fd = path_open(slash ? above : ".", O_RDONLY | O_DIRECTORY, err);
	return target->fd < 0 ? target->fd : 0;
}

static int archive_open(const char *archive, struct error *err)
{
	return strcmp(archive, "-") ? path_open(archive, O_RDONLY | O_NOCTTY, err) :
				      fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
}

static int work_unpack(struct unpack_work *work, int fd, const struct unpack_target *target,
	struct error *err)
{
	const struct copy_hooks hooks = {
		.ctx = work,
		.decide = work_decide,
		.outcome = work_outcome,
		.sends_new = !work->request->filter,
		.blind = true,
	};
	struct unpack *unpack;
	int rc = unpack_new(fd, target->fd, target->name, &work->request->engine, &hooks, &unpack,
		err);

	if (rc)
		return rc;
	pthread_mutex_lock(&work->lock);
	work->unpack = unpack;
	pthread_mutex_unlock(&work->lock);
	rc = unpack_run(unpack, err);
	pthread_mutex_lock(&work->lock);
	copy_counts(unpack_copy(unpack), &work->summary->counts);
	work->unpack = NULL;
	pthread_mutex_unlock(&work->lock);
	unpack_free(unpack);
	/* Ours was not kept: that is a failure here. */
	work->summary->counts.failed += work->summary->counts.conflicts;
	work->summary->counts.conflicts = 0;
	return rc;
}

static int work_target(struct unpack_work *work, int fd, struct error *err)
{
	struct unpack_target target;
	int rc = target_open(work->request->to, &target, err);

	if (!rc) {
		rc = work_unpack(work, fd, &target, err);
		error_prefix(err, rc, "%s", work->request->archive);
	}
	if ((rc == -ENOSPC || rc == -EDQUOT) && strcmp(target.name, "."))
		remove_tree(target.fd, target.name, NULL);
	if (target.fd >= 0)
		close(target.fd);
	free(target.path);
	return rc;
}

int unpack_request_run(const struct unpack_request *request, struct summary *summary,
	struct error *err)
{
	struct unpack_work work = { .request = request, .summary = summary };
	struct timespec start, end;
	struct progress *progress;
	autoclose int fd = archive_open(request->archive, err);
	int rc;

	if (fd < 0)
		return err->code ? fd : error_errno(err, "standard input");
	pthread_mutex_init(&work.lock, NULL);
	clock_gettime(CLOCK_MONOTONIC, &start);
	progress = progress_start(STDERR_FILENO, request->quiet, "unpack", work_sample, &work);
	rc = work_target(&work, fd, err);
	progress_stop(progress);
	clock_gettime(CLOCK_MONOTONIC, &end);
	pthread_mutex_destroy(&work.lock);
	summary->seconds = (double)(end.tv_sec - start.tv_sec) +
		(double)(end.tv_nsec - start.tv_nsec) / 1e9;
	return rc;
}
