#include "verbs/copy_work.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "report/progress.h"
#include "verbs/copy_equal.h"
#include "verbs/problem.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* All FROMs, as they are being copied. */
struct copy_work {
	struct copy_request *request;
	const struct copy_place *place; /* the one that is under way */
	struct copy_equal *equal;
	pthread_mutex_t lock; /* of what follows */
	struct copy *copy; /* NULL between two FROMs */
	struct summary *summary;
};

/* Names one problem, of path below the FROM that is under way. Any thread. */
static void work_problem(struct copy_work *work, const char *path, enum copy_outcome outcome,
	const char *text)
{
	autofree char *whole = path_join(work->place->from, path);
	const char *name = whole ? whole : path;

	pthread_mutex_lock(&work->lock);
	problem_tell(work->summary, name, outcome, text);
	pthread_mutex_unlock(&work->lock);
}

static void work_done(struct copy_work *work, const char *path)
{
	autofree char *whole = path_join(work->place->from, path);

	log_debug("%s: copied", whole ? whole : path);
}

static void work_outcome(void *ctx, const struct copy_item *item, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err)
{
	bool done = outcome == COPY_DONE && log_level() >= LOG_DEBUG;
	autofree char *path = NULL;

	(void)dst;
	if (!done && (outcome == COPY_DONE || outcome == COPY_UNCHANGED))
		return;
	path = copy_item_path(item);
	if (done) {
		work_done(ctx, path ? path : item->name);
		return;
	}
	work_problem(ctx, path ? path : item->name, outcome, err ? err->text : "no reason is known");
}

/* The filter's answer for an entry that is not the root. */
static enum filter_answer work_filter(const struct copy_work *work, const struct copy_item *item)
{
	autofree char *path = NULL;
	char *slash;

	if (!work->request->filter || !*item->name)
		return FILTER_IN;
	path = copy_item_path(item);
	if (!path)
		return FILTER_IN;
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return filter_match(work->request->filter, slash ? path : "", item->name,
		S_ISDIR(item->src->st_mode));
}

static enum copy_answer work_decide(void *ctx, const struct copy_item *item, const struct stat *dst,
	struct copy_expect *expect, struct copy_tag *tag)
{
	struct copy_work *work = ctx;

	(void)tag;
	/* What stands for something else than its content is never replaced: think of /dev/null. */
	if (dst && (S_ISCHR(dst->st_mode) || S_ISBLK(dst->st_mode) || S_ISSOCK(dst->st_mode)))
		expect->kind = COPY_EXPECT_NOTHING;
	switch (work_filter(work, item)) {
	case FILTER_OUT:
		return COPY_LEAVE;
	case FILTER_ENTER:
		return COPY_SKIP;
	default:
		return dst && copy_equal(work->equal, item, dst) ? COPY_SKIP : COPY_SEND;
	}
}

static void work_sample(void *ctx, struct progress_now *now)
{
	struct copy_work *work = ctx;
	struct copy_counts counts = { 0 };

	pthread_mutex_lock(&work->lock);
	if (work->copy)
		copy_counts(work->copy, &counts);
	now->files = work->summary->counts.files + counts.files;
	now->bytes = work->summary->counts.bytes + counts.bytes;
	if (work->request->places.count == 1 && S_ISREG(work->place->st.st_mode)) {
		now->total_files = 1;
		now->total_bytes = (uint64_t)work->place->st.st_size;
	}
	pthread_mutex_unlock(&work->lock);
}

/* Takes over what the copy counted; a conflict is a failure here: ours was not kept. */
static void work_add_counts(struct copy_work *work)
{
	struct summary part = { 0 };

	pthread_mutex_lock(&work->lock);
	copy_counts(work->copy, &part.counts);
	part.counts.failed += part.counts.conflicts;
	part.counts.conflicts = 0;
	summary_merge(work->summary, &part);
	copy_free(work->copy);
	work->copy = NULL;
	pthread_mutex_unlock(&work->lock);
}

static int work_copy(struct copy_work *work, struct error *err)
{
	const struct copy_request *request = work->request;
	const struct copy_place *place = work->place;
	const struct copy_hooks hooks = {
		.ctx = work,
		.decide = work_decide,
		.outcome = work_outcome,
		.sends_new = !request->filter,
		.blind = true,
	};
	struct copy_options options = request->engine;
	struct copy *copy;
	int rc;

	if (options.max_bytes && options.max_bytes <= work->summary->counts.bytes)
		return error_set(err, -ENOSPC, "--max-bytes is reached");
	if (options.max_bytes)
		options.max_bytes -= work->summary->counts.bytes;
	rc = copy_new(place->srcdir, place->srcname, place->dstdir, place->dstname, &options, &hooks,
		&copy, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&work->lock);
	work->copy = copy;
	pthread_mutex_unlock(&work->lock);
	rc = copy_run(copy, err);
	work_add_counts(work);
	return rc;
}

static int work_place(struct copy_work *work, struct error *err)
{
	const struct copy_request *request = work->request;
	const struct copy_equal_options options = {
		.checksum = request->checksum,
		.owner = geteuid() == 0,
		.special = request->engine.keep_special_bits,
		.cancel = request->engine.cancel,
	};
	int rc = copy_equal_new(work->place, &options, &work->equal, err);

	if (rc < 0)
		return rc;
	rc = work_copy(work, err);
	copy_equal_free(work->equal);
	work->equal = NULL;
	return error_prefix(err, rc, "%s", work->place->from);
}

static int work_places(struct copy_work *work, struct error *err)
{
	const struct copy_places *places = &work->request->places;

	for (size_t i = 0; i < places->count; i++) {
		struct error failure = ERROR_INIT;
		int rc;

		pthread_mutex_lock(&work->lock);
		work->place = &places->items[i];
		pthread_mutex_unlock(&work->lock);
		rc = work_place(work, &failure);
		if (rc == 0)
			continue;
		if (places->count == 1 || rc == -ECANCELED || rc == -ENOSPC || rc == -EDQUOT) {
			*err = failure;
			return rc;
		}
		work_problem(work, "", COPY_FAILED, failure.text);
		work->summary->counts.failed++;
	}
	return 0;
}

int copy_work_run(struct copy_request *request, struct summary *summary, struct error *err)
{
	struct copy_work work = { .request = request, .summary = summary };
	struct timespec start, end;
	struct progress *progress;
	int rc = copy_places_open(&request->places, err);

	if (rc < 0)
		return rc;
	work.place = &request->places.items[0];
	pthread_mutex_init(&work.lock, NULL);
	clock_gettime(CLOCK_MONOTONIC, &start);
	progress = progress_start(STDERR_FILENO, request->options.quiet, "copy", work_sample, &work);
	rc = work_places(&work, err);
	progress_stop(progress);
	clock_gettime(CLOCK_MONOTONIC, &end);
	pthread_mutex_destroy(&work.lock);
	summary->seconds = (double)(end.tv_sec - start.tv_sec) +
		(double)(end.tv_nsec - start.tv_nsec) / 1e9;
	return rc;
}
