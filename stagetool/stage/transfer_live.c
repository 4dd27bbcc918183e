#include "stage/transfer_live.h"

#include <pthread.h>
#include <stdlib.h>

struct transfer_live {
	pthread_mutex_t lock;
	const struct copy *copy; /* at work; NULL: none */
	uint64_t files, bytes, all; /* of those that are over */
	atomic_uint_fast64_t looked;
};

struct transfer_live *transfer_live_new(void)
{
	struct transfer_live *live = calloc(1, sizeof(*live));

	if (live)
		pthread_mutex_init(&live->lock, NULL);
	return live;
}

static uint64_t handled(const struct copy_counts *counts)
{
	return counts->files + counts->symlinks + counts->others + counts->unchanged;
}

void transfer_live_now(struct transfer_live *live, uint64_t *files, uint64_t *bytes)
{
	struct copy_counts counts = { 0 };

	pthread_mutex_lock(&live->lock);
	if (live->copy)
		copy_counts(live->copy, &counts);
	*files = live->files + handled(&counts);
	*bytes = live->bytes + counts.bytes;
	pthread_mutex_unlock(&live->lock);
}

/* Every entry, whatever became of it, and every byte. */
static uint64_t steps(const struct copy_counts *counts)
{
	return handled(counts) + counts->directories + counts->failed + counts->vanished +
	       counts->changed + counts->conflicts + counts->special + counts->bytes;
}

uint64_t transfer_live_steps(struct transfer_live *live)
{
	struct copy_counts counts = { 0 };
	uint64_t all;

	pthread_mutex_lock(&live->lock);
	if (live->copy)
		copy_counts(live->copy, &counts);
	all = live->all + steps(&counts);
	pthread_mutex_unlock(&live->lock);
	return all + atomic_load(&live->looked);
}

atomic_uint_fast64_t *transfer_live_looked(struct transfer_live *live)
{
	return &live->looked;
}

void transfer_live_free(struct transfer_live *live)
{
	if (!live)
		return;
	pthread_mutex_destroy(&live->lock);
	free(live);
}

void transfer_live_began(struct transfer_live *live, const struct copy *copy)
{
	if (!live)
		return;
	pthread_mutex_lock(&live->lock);
	live->copy = copy;
	pthread_mutex_unlock(&live->lock);
}

void transfer_live_ended(struct transfer_live *live, const struct copy_counts *counts)
{
	if (!live)
		return;
	pthread_mutex_lock(&live->lock);
	live->copy = NULL;
	live->files += handled(counts);
	live->bytes += counts->bytes;
	live->all += steps(counts);
	pthread_mutex_unlock(&live->lock);
}
