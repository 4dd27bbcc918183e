#include "tree/handle.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define HANDLE_LIMIT_MAX 65536

unsigned handle_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 256;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit raised = { limit.rlim_max, limit.rlim_max };

		if (raised.rlim_cur > HANDLE_LIMIT_MAX)
			raised.rlim_cur = HANDLE_LIMIT_MAX;
		if (raised.rlim_cur > limit.rlim_cur && !setrlimit(RLIMIT_NOFILE, &raised))
			limit = raised;
	}
	return limit.rlim_cur > HANDLE_LIMIT_MAX ? HANDLE_LIMIT_MAX : (unsigned)limit.rlim_cur;
}

void handle_cache_init(struct handle_cache *cache, unsigned budget)
{
	pthread_mutex_init(&cache->lock, NULL);
	cache->oldest = cache->newest = NULL;
	cache->open = 0;
	cache->budget = budget;
}

void handle_cache_destroy(struct handle_cache *cache)
{
	pthread_mutex_destroy(&cache->lock);
}

static void handle_list(struct handle_cache *cache, struct handle *handle)
{
	handle->newer = NULL;
	handle->older = cache->newest;
	if (cache->newest)
		cache->newest->newer = handle;
	else
		cache->oldest = handle;
	cache->newest = handle;
}

static void handle_unlist(struct handle_cache *cache, struct handle *handle)
{
	if (handle->older)
		handle->older->newer = handle->newer;
	else
		cache->oldest = handle->newer;
	if (handle->newer)
		handle->newer->older = handle->older;
	else
		cache->newest = handle->older;
	handle->older = handle->newer = NULL;
}

/* Takes the fd of the oldest unused handle away from it. Called with the lock held. -1: there is
 * none. */
static int handle_evict(struct handle_cache *cache)
{
	struct handle *handle = cache->oldest;
	int fd;

	if (!handle)
		return -1;
	handle_unlist(cache, handle);
	fd = handle->fd;
	handle->fd = -1;
	cache->open--;
	return fd;
}

bool handle_cache_relieve(struct handle_cache *cache)
{
	unsigned target;
	int fd;
	bool any = false;

	pthread_mutex_lock(&cache->lock);
	target = cache->open / 2;
	while (cache->open > target && (fd = handle_evict(cache)) >= 0) {
		close(fd);
		any = true;
	}
	pthread_mutex_unlock(&cache->lock);
	return any;
}

bool handle_cache_tight(struct handle_cache *cache)
{
	bool tight;

	pthread_mutex_lock(&cache->lock);
	tight = cache->open >= cache->budget / 4 * 3;
	pthread_mutex_unlock(&cache->lock);
	return tight;
}

void handle_init(
	struct handle *handle, struct handle_cache *cache, struct handle *parent, const char *name)
{
	handle->cache = cache;
	handle->parent = parent;
	handle->name = name;
	handle->dev = 0;
	handle->ino = 0;
	handle->fd = -1;
	handle->older = handle->newer = NULL;
	atomic_init(&handle->pins, 0);
}

void handle_adopt(struct handle *handle, int fd, dev_t dev, ino_t ino)
{
	handle->dev = dev;
	handle->ino = ino;
	if (fd < 0)
		return;
	pthread_mutex_lock(&handle->cache->lock);
	handle->fd = fd;
	handle->cache->open++;
	/* The root's second pin is never given back, so it stays open. */
	atomic_store_explicit(&handle->pins, handle->parent ? 1 : 2, memory_order_release);
	pthread_mutex_unlock(&handle->cache->lock);
}

/* A handle in use can not lose its fd: no lock is needed. */
static bool handle_pin_used(struct handle *handle)
{
	unsigned pins = atomic_load_explicit(&handle->pins, memory_order_acquire);

	while (pins)
		if (atomic_compare_exchange_weak_explicit(&handle->pins, &pins, pins + 1,
			    memory_order_acquire, memory_order_acquire))
			return true;
	return false;
}

/* Pins handle if it is open. Where fd is not -1 and it is not open, gives it fd; *taken says so. */
static bool handle_pin_open(struct handle *handle, int fd, bool *taken)
{
	struct handle_cache *cache = handle->cache;
	bool open;

	if (handle_pin_used(handle))
		return true;
	pthread_mutex_lock(&cache->lock);
	if (handle->fd < 0 && fd >= 0) {
		handle->fd = fd;
		cache->open++;
		*taken = true;
	} else if (handle->fd >= 0 && !atomic_load_explicit(&handle->pins, memory_order_acquire)) {
		handle_unlist(cache, handle);
	}
	open = handle->fd >= 0;
	if (open)
		atomic_fetch_add_explicit(&handle->pins, 1, memory_order_acq_rel);
	pthread_mutex_unlock(&cache->lock);
	return open;
}

void handle_unpin(struct handle *handle)
{
	struct handle_cache *cache = handle->cache;
	unsigned pins = atomic_load_explicit(&handle->pins, memory_order_acquire);
	int fd = -1;

	while (pins > 1)
		if (atomic_compare_exchange_weak_explicit(&handle->pins, &pins, pins - 1,
			    memory_order_acq_rel, memory_order_acquire))
			return;
	pthread_mutex_lock(&cache->lock);
	if (atomic_fetch_sub_explicit(&handle->pins, 1, memory_order_acq_rel) == 1) {
		handle_list(cache, handle);
		if (cache->open > cache->budget)
			fd = handle_evict(cache);
	}
	pthread_mutex_unlock(&cache->lock);
	if (fd >= 0)
		close(fd);
}

int handle_open(struct handle_cache *cache, int dirfd, const char *name, struct stat *st)
{
	for (unsigned attempt = 0;; attempt++) {
		autoclose int fd = openat(
			dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

		if (fd >= 0)
			return fstat(fd, st) ? -errno : take_fd(fd);
		if ((errno != EMFILE && errno != ENFILE && errno != EINTR) || attempt >= 12)
			return -errno;
		if (errno != EINTR && !handle_cache_relieve(cache)) {
			struct timespec pause = { 0, 100000L << attempt };

			nanosleep(&pause, NULL);
		}
	}
}

static int handle_reopen(struct handle *handle, int dirfd, struct error *err)
{
	struct stat st;
	bool taken = false;
	int fd = handle_open(handle->cache, dirfd, handle->name, &st);

	if (fd < 0)
		return error_sys(err, fd, "%s: opening it again", handle->name);
	if (st.st_dev != handle->dev || st.st_ino != handle->ino) {
		close(fd);
		return error_set(
			err, -ESTALE, "%s: another directory has taken its name", handle->name);
	}
	handle_pin_open(handle, fd, &taken);
	if (!taken)
		close(fd);
	return 0;
}

/* From handle up to the first ancestor that is open, which is pinned and becomes *top; the closed
 * ones below it go to *closed, lowest first. A loop, since a tree may be deeper than a stack. */
static int handle_climb(struct handle *handle, struct handle ***closed, size_t *count,
	struct handle **top, struct error *err)
{
	size_t room = 0;

	*count = 0;
	for (; !handle_pin_open(handle, -1, NULL); handle = handle->parent) {
		if (*count == room) {
			struct handle **more;

			room = room ? 2 * room : 16;
			more = realloc(*closed, room * sizeof(*more));
			if (!more)
				return error_sys(
					err, -ENOMEM, "%s: opening it again", handle->name);
			*closed = more;
		}
		(*closed)[(*count)++] = handle;
	}
	*top = handle;
	return 0;
}

int handle_pin(struct handle *handle, struct error *err)
{
	autofree struct handle **closed = NULL;
	struct handle *above = NULL;
	size_t count;
	int rc;

	if (handle_pin_open(handle, -1, NULL))
		return handle->fd;
	rc = handle_climb(handle, &closed, &count, &above, err);
	while (!rc && count) {
		struct handle *next = closed[--count];

		rc = handle_reopen(next, above->fd, err);
		handle_unpin(above);
		above = next;
	}
	return rc ? rc : handle->fd;
}

void handle_close(struct handle *handle)
{
	struct handle_cache *cache = handle->cache;
	int fd;

	pthread_mutex_lock(&cache->lock);
	fd = handle->fd;
	if (fd >= 0) {
		if (!atomic_load_explicit(&handle->pins, memory_order_acquire))
			handle_unlist(cache, handle);
		handle->fd = -1;
		cache->open--;
	}
	pthread_mutex_unlock(&cache->lock);
	if (fd >= 0)
		close(fd);
}
