#include "stage/transfer_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"
#include "stage/transfer_live.h"

void transfer_begin(struct transfer *transfer, const struct transfer_context *context)
{
	*transfer = (struct transfer){ .context = context };
	pthread_mutex_init(&transfer->lock, NULL);
}

void transfer_end(struct transfer *transfer)
{
	manifest_close(transfer->manifest);
	pthread_mutex_destroy(&transfer->lock);
}

double transfer_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void transfer_broken(struct transfer *transfer, const struct error *err)
{
	pthread_mutex_lock(&transfer->lock);
	if (!transfer->failed.code)
		transfer->failed = *err;
	pthread_mutex_unlock(&transfer->lock);
}

bool transfer_is_broken(struct transfer *transfer)
{
	bool broken;

	pthread_mutex_lock(&transfer->lock);
	broken = transfer->failed.code != 0;
	pthread_mutex_unlock(&transfer->lock);
	return broken;
}

int transfer_record(struct transfer *transfer, uint32_t tree, uint64_t dir, const char *name,
	struct manifest_entry *entry)
{
	struct error err = ERROR_INIT;
	int rc = transfer->manifest ? manifest_get(transfer->manifest, tree, dir, name, entry, &err)
				    : -ENOENT;

	if (rc == 0)
		return 1;
	if (rc != -ENOENT)
		transfer_broken(transfer, &err);
	return 0;
}

static void tell_named(
	struct transfer_item *item, const char *named, const char *kind, const char *text)
{
	const struct transfer_context *context = item->transfer->context;

	pthread_mutex_lock(&item->transfer->lock);
	summary_add_problem(item->summary, named, kind, text);
	if (context->problem)
		context->problem(context->ctx, named, kind, text);
	pthread_mutex_unlock(&item->transfer->lock);
}

void transfer_tell(struct transfer_item *item, const struct copy_item *entry, const char *kind,
	const char *text)
{
	autofree char *below = entry ? copy_item_path(entry) : NULL;
	autofree char *path = path_join(item->shown, below ? below : entry ? entry->name : "");

	tell_named(item, path ? path : item->shown, kind, text);
}

static const char *const kinds[] = {
	[COPY_DONE] = NULL,
	[COPY_FAILED] = "failed",
	[COPY_VANISHED] = "vanished",
	[COPY_CHANGED] = "changed",
	[COPY_CONFLICT] = "conflict",
	[COPY_ATTRIBUTE] = "attribute",
	[COPY_DROPPED] = "dropped",
	[COPY_SPECIAL] = "special",
};

void transfer_tell_outcome(struct transfer_item *item, const struct copy_item *entry,
	enum copy_outcome outcome, const struct error *err)
{
	if (outcome == COPY_ATTRIBUTE)
		transfer_note_attribute(item, entry, err);
	if (kinds[outcome])
		transfer_tell(item, entry, kinds[outcome], err ? err->text : kinds[outcome]);
}

void transfer_tell_path(struct transfer_item *item, const char *path, enum copy_outcome outcome,
	const char *text)
{
	autofree char *whole = path_join(item->shown, path);

	tell_named(item, whole ? whole : item->shown, kinds[outcome], text);
}

void transfer_fail(struct transfer_item *item, const struct error *err)
{
	item->summary->counts.failed++;
	transfer_tell(item, NULL, "failed", err->text);
}

enum filter_answer transfer_filter(const struct transfer_item *item, const struct copy_item *entry)
{
	autofree char *path = item->filter && entry->parent ? copy_item_path(entry) : NULL;
	char *slash;

	if (!path)
		return FILTER_IN;
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return filter_match(
		item->filter, slash ? path : "", entry->name, S_ISDIR(entry->src->st_mode));
}

static void add_counts(struct copy_counts *total, const struct copy_counts *counts)
{
	uint64_t *sums = (uint64_t *)total;
	const uint64_t *more = (const uint64_t *)counts;

	_Static_assert(sizeof(*total) % sizeof(*sums) == 0, "counts are all of one type");
	for (size_t i = 0; i < sizeof(*total) / sizeof(*sums); i++)
		sums[i] += more[i];
}

void transfer_add_counts(struct transfer_item *item, const struct copy_counts *counts)
{
	add_counts(&item->summary->counts, counts);
}

int transfer_copy(struct transfer_item *item, const struct transfer_copy *run, struct error *err)
{
	struct transfer_live *live = item->transfer->context->live;
	struct copy_counts counts;
	struct copy *copy;
	int rc = copy_new(run->srcdir, run->srcname, run->dstdir, run->dstname, &run->options,
		&run->hooks, &copy, err);

	if (rc < 0)
		return rc;
	transfer_live_began(live, copy);
	rc = copy_run(copy, err);
	copy_counts(copy, &counts);
	transfer_live_ended(live, &counts);
	add_counts(&item->summary->counts, &counts);
	copy_free(copy);
	return rc;
}

void transfer_options(const struct transfer_item *item, struct copy_options *options)
{
	const struct transfer_context *context = item->transfer->context;

	*options = (struct copy_options){
		.threads = context->threads,
		.engine = context->engine,
		.verify = item->plan->spec->verify,
		.keep_owner = true,
		.expect = { .kind = COPY_EXPECT_NOTHING },
		.cancel = context->cancel,
	};
	/* One file is split over workers only from some size on. */
	if (!item->plan->is_dir && !context->threads && item->plan->bytes &&
		item->plan->bytes < 16u << 20)
		options->threads = 1;
}

static int open_dir(int root, const char *dir, struct error *err)
{
	return path_open_beneath(root, dir, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS, err);
}

/* Makes what is missing of dir, each name durable, and opens it. */
static int make_dirs(int root, const char *dir, struct error *err)
{
	struct error first = ERROR_INIT;
	autofree char *above = NULL;
	const char *name = inside_split(dir, &above);
	autoclose int parent = -1;
	int fd;

	if (!name)
		return error_sys(err, -ENOMEM, "%s", dir);
	fd = open_dir(root, dir, &first);
	if (fd != -ENOENT || strcmp(above, dir) == 0)
		return fd < 0 ? error_set(err, fd, "%s", first.text) : fd;
	parent = make_dirs(root, above, err);
	if (parent < 0)
		return parent;
	if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
		return error_errno(err, "/%s: making the directory", dir);
	if (fsync(parent) < 0 && errno != EINVAL)
		return error_errno(err, "/%s: fsync of its directory", dir);
	return open_dir(root, dir, err);
}

int transfer_open_parent(const char *path, bool make, const char **name, struct error *err)
{
	autoclose int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofree char *dir = NULL;
	const char *below;

	if (root < 0)
		return error_errno(err, "/");
	*name = inside_split(path, &dir);
	if (!*name)
		return error_sys(err, -ENOMEM, "%s", path);
	if (!**name)
		*name = ".";
	below = dir + strspn(dir, "/");
	return make ? make_dirs(root, below, err) : open_dir(root, below, err);
}
