#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "copy/feed_internal.h"

/* Modes are given exactly; what this thread makes is not to be masked, and the process keeps its umask. */
static void feed_take_umask(struct copy_feed *feed)
{
	feed->umask = 022;
	if (unshare(CLONE_FS))
		return;
	feed->umask = umask(0);
	feed->own_umask = true;
	feed->copy->workers[COPY_FEEDER].ready = true;
}

static enum copy_answer feed_decide(void *ctx, const struct copy_item *item,
	const struct stat *dst, struct copy_expect *expect, struct copy_tag *tag)
{
	struct copy_feed *feed = ctx;

	return feed->hooks.decide(feed->hooks.ctx, item, dst, expect, tag);
}

static uint64_t feed_hash_path(const char *path)
{
	uint64_t hash = FEED_HASH_ROOT;

	while (*path) {
		size_t length = strcspn(path, "/");

		hash = feed_hash(hash, path, length);
		path += length + (path[length] == '/');
	}
	return hash;
}

/* Passes it on, and remembers what is not there: nothing can be linked to that. */
static void feed_outcome(void *ctx, const struct copy_item *item, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err)
{
	struct copy_feed *feed = ctx;

	switch (outcome) {
	case COPY_DONE:
	case COPY_UNCHANGED:
	case COPY_ATTRIBUTE:
	case COPY_DROPPED:
		break;
	default: {
		autofree char *path = copy_item_path(item);

		if (path)
			feed_note_failed(feed, feed_hash_path(path));
	}
	}
	if (feed->hooks.outcome)
		feed->hooks.outcome(feed->hooks.ctx, item, outcome, dst, err);
}

void feed_note_failed(struct copy_feed *feed, uint64_t hash)
{
	pthread_mutex_lock(&feed->lock);
	feed_set_add(&feed->failed, hash);
	pthread_mutex_unlock(&feed->lock);
}

int copy_feed_new(int dstdir, const char *dstname, const struct copy_options *options,
	const struct copy_hooks *hooks, struct copy_feed **feed, struct error *err)
{
	struct copy_feed *new = calloc(1, sizeof(*new));
	struct copy_hooks own = { .ctx = new, .outcome = feed_outcome };
	int rc;

	if (!new)
		return error_sys(err, -ENOMEM, "unpacking");
	if (hooks) {
		new->hooks = *hooks;
		own.decide = hooks->decide ? feed_decide : NULL;
		own.sends_new = hooks->sends_new;
		own.blind = hooks->blind || !hooks->outcome;
	}
	pthread_mutex_init(&new->lock, NULL);
	pthread_cond_init(&new->change, NULL);
	rc = copy_new_fed(dstdir, dstname, options, &own, &new->copy, err);
	if (!rc) {
		feed_take_umask(new);
		if (!feed_dir_get(new, NULL, "", 0, NULL))
			rc = error_sys(err, -ENOMEM, "unpacking");
	}
	if (rc) {
		copy_feed_free(new);
		return rc;
	}
	*feed = new;
	return 0;
}

void copy_feed_free(struct copy_feed *feed)
{
	if (!feed)
		return;
	if (feed->copy)
		pool_wait(feed->copy->pool);
	feed_groups_free(feed);
	feed_dirs_free(feed);
	feed_buffers_free(feed);
	copy_free(feed->copy);
	free(feed->seen.hashes);
	free(feed->failed.hashes);
	pthread_cond_destroy(&feed->change);
	pthread_mutex_destroy(&feed->lock);
	if (feed->own_umask)
		umask(feed->umask);
	free(feed);
}

const struct copy *copy_feed_copy(const struct copy_feed *feed)
{
	return feed->copy;
}

bool copy_feed_came(const struct copy_feed *feed, const char *path)
{
	autofree char *clean = path_clean(path);

	return clean && feed_set_has(&feed->seen, feed_hash_path(clean));
}

bool copy_feed_stopped(struct copy_feed *feed)
{
	return copy_stopped(feed->copy);
}

/* Sequentially consistent on both sides: either the feeder sees that it need not wait, or the worker that it
 * does. */
static void feed_wait(struct copy_feed *feed, atomic_uint *count)
{
	if (!atomic_load(count))
		return;
	feed_flush(feed);
	pthread_mutex_lock(&feed->lock);
	atomic_store(&feed->waiting, true);
	while (atomic_load(count))
		pthread_cond_wait(&feed->change, &feed->lock);
	atomic_store(&feed->waiting, false);
	pthread_mutex_unlock(&feed->lock);
}

void feed_wait_slot(struct copy_feed *feed, uint64_t hash)
{
	feed_wait(feed, &feed->busy[hash % FEED_SLOTS]);
}

void feed_drain(struct copy_feed *feed)
{
	feed_wait(feed, &feed->in_flight);
}

void feed_enter(struct copy_feed *feed, uint64_t hash)
{
	atomic_fetch_add(&feed->in_flight, 1);
	atomic_fetch_add(&feed->busy[hash % FEED_SLOTS], 1);
}

void feed_leave(struct copy_feed *feed, uint64_t hash)
{
	atomic_fetch_sub(&feed->busy[hash % FEED_SLOTS], 1);
	atomic_fetch_sub(&feed->in_flight, 1);
	if (!atomic_load(&feed->waiting))
		return;
	pthread_mutex_lock(&feed->lock);
	pthread_cond_broadcast(&feed->change);
	pthread_mutex_unlock(&feed->lock);
}

/* Names that are never written: temporaries, and what the caller keeps at the root. */
static bool feed_leaves_out(const struct copy_feed *feed, bool at_root, const char *name,
	size_t length)
{
	const char *const *leave = feed->copy->options.leave;
	size_t prefix = sizeof(COPY_TEMP_PREFIX) - 1;

	if (length >= prefix && !strncmp(name, COPY_TEMP_PREFIX, prefix))
		return true;
	for (; at_root && leave && *leave; leave++)
		if (strlen(*leave) == length && !strncmp(name, *leave, length))
			return true;
	return false;
}

static int feed_check_name(const struct copy_feed *feed, const struct feed_dir *parent,
	const char *name, size_t length, struct error *err)
{
	if (length > NAME_MAX)
		return error_sys(err, -ENAMETOOLONG, "its name");
	if (length == 2 && !strncmp(name, "..", 2))
		return error_set(err, -EXDEV, "its path leads out by \"..\": not unpacked");
	if (feed_leaves_out(feed, !parent->parent, name, length))
		return error_set(err, -EPERM, "its name is kept for stagetool: not unpacked");
	return 0;
}

/* One component: of a directory on the way to an entry. */
static int feed_step(struct copy_feed *feed, struct feed_dir **at, const char *name, size_t length,
	struct error *err)
{
	struct feed_dir *parent = *at;
	int rc = feed_check_name(feed, parent, name, length, err);
	uint64_t hash;

	if (rc)
		return rc;
	*at = feed_dir_find(feed, parent, name, length);
	if (*at)
		return 0;
	hash = feed_hash(parent->hash, name, length);
	if (feed_set_has(&feed->seen, hash))
		feed_wait_slot(feed, hash);
	*at = feed_dir_get(feed, parent, name, length, NULL);
	return *at ? 0 : error_sys(err, -ENOMEM, "its directory");
}

void feed_place_free(struct feed_place *place)
{
	free(place->name);
}

int feed_place(struct copy_feed *feed, const char *path, bool is_dir, struct feed_place *place,
	struct error *err)
{
	autofree char *clean = path_clean(path);
	const char *name = clean;
	int rc = 0;

	*place = (struct feed_place){ .dir = feed->dirs[0] };
	if (!clean)
		return error_sys(err, -ENOMEM, "its path");
	if (*clean == '/')
		return error_set(err, -EXDEV, "its path is absolute: not unpacked");
	if (!strcmp(clean, ".")) {
		place->name = strdup("");
		place->hash = FEED_HASH_ROOT;
		return place->name ? 0 : error_sys(err, -ENOMEM, "its path");
	}
	for (const char *slash; !rc && (slash = strchr(name, '/')); name = slash + 1)
		rc = feed_step(feed, &place->dir, name, (size_t)(slash - name), err);
	if (!rc)
		rc = feed_check_name(feed, place->dir, name, strlen(name), err);
	if (rc)
		return rc;
	place->name = strdup(name);
	if (!place->name)
		return error_sys(err, -ENOMEM, "its path");
	if (!is_dir && feed_dir_find(feed, place->dir, name, strlen(name)))
		return error_set(err, -EISDIR, "a directory of the archive has its name: not unpacked");
	place->hash = feed_hash(place->dir->hash, name, strlen(name));
	place->again = feed_set_has(&feed->seen, place->hash);
	if (place->again && !is_dir)
		feed_drain(feed);
	else if (place->again)
		feed_wait_slot(feed, place->hash);
	return 0;
}

bool feed_look(struct copy_dir *dir, const char *name, bool always, struct stat *st)
{
	bool have;
	int fd;

	if (atomic_load_explicit(&dir->state, memory_order_acquire) != COPY_DIR_READY ||
		(dir->made && !always))
		return false;
	fd = handle_pin(&dir->handle, NULL);
	if (fd < 0)
		return false;
	have = !fstatat(fd, name, st, AT_SYMLINK_NOFOLLOW);
	handle_unpin(&dir->handle);
	return have;
}

/* Whether a regular file of dir is sent, whatever it is and whatever is at its name. */
static bool feed_is_certain(const struct copy *copy, const struct copy_entry *entry)
{
	const struct copy_dir *dir = entry->dir;

	if (!copy->hooks.decide && !copy->options.look)
		return true;
	return copy->hooks.sends_new && S_ISREG(entry->st.st_mode) && dir->parent &&
	       atomic_load_explicit(&dir->state, memory_order_acquire) == COPY_DIR_READY &&
	       dir->made;
}

bool feed_wanted(struct copy_feed *feed, struct copy_entry *entry, uint64_t hash, bool again,
	const struct stat *old, unsigned worker)
{
	struct copy *copy = feed->copy;
	struct copy_tag tag = { 0, 0 };
	struct copy_item item;
	struct copy_place place;
	struct stat dst;
	bool have;

	entry->expect = copy->options.expect;
	if (!again && feed_is_certain(copy, entry))
		return true;
	have = (copy->options.look || again) && feed_look(entry->dir, entry->dst_name, again, &dst);
	if (!copy->hooks.decide)
		return true;
	copy_item_of(&item, &place, entry->dir, entry->dst_name, &entry->st, NULL);
	switch (feed->hooks.decide(
		feed->hooks.ctx, &item, have ? &dst : NULL, &entry->expect, &tag)) {
	case COPY_SEND:
		return true;
	case COPY_SKIP:
		/* As it is, but not a link to what it is to be a link to. */
		if (old && have && (dst.st_ino != old->st_ino || dst.st_dev != old->st_dev)) {
			entry->expect.kind = COPY_EXPECT_SAME;
			publish_identity(&dst, &entry->expect.identity);
			return true;
		}
		copy_entry_tell(entry, COPY_UNCHANGED, have ? &dst : NULL, NULL, worker);
		return false;
	case COPY_LEAVE:
		break;
	}
	feed_note_failed(feed, hash);
	return false;
}

int copy_feed_finish(struct copy_feed *feed, struct error *err)
{
	struct copy *copy = feed->copy;

	feed_flush(feed);
	pool_wait(copy->pool);
	feed_groups_finish(feed);
	feed_dirs_finish(feed);
	if (copy->stop_code)
		return error_set(err, copy->stop_code, "%s", copy->stop_error.text);
	if (copy_stopped(copy))
		return error_sys(err, -ECANCELED, "stopped");
	return copy_sync(copy, err);
}
