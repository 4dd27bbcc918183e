#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/pool.h"
#include "stage/check_private.h"

#define READER_THREADS 16
/* Files that may wait, for each thread. */
#define READER_QUEUE 4
#define PIECE (1024u * 1024)

struct check_reader {
	struct check *check;
	struct pool *pool;
	sem_t room;
};

struct reading {
	struct pool_task task;
	struct check_reader *reader;
	char *local, *shared;
	struct manifest_entry entry;
};

static void reading_free(struct reading *reading)
{
	free(reading->local);
	free(reading->shared);
	free(reading);
}

static bool canceled(const struct check_reader *reader)
{
	const atomic_bool *cancel = reader->check->options->cancel;

	return cancel && atomic_load(cancel);
}

/* Hashes what the disk has: what was written is flushed, and the cache dropped, first. */
static int hash_file(const struct check_reader *reader, int fd, XXH128_hash_t *hash,
	uint64_t *bytes, struct error *err)
{
	XXH3_state_t *state = XXH3_createState();
	autofree char *piece = malloc(PIECE);
	ssize_t got = state && piece ? 1 : -1;

	errno = ENOMEM;
	if (got > 0) {
		XXH3_128bits_reset(state);
		fdatasync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	for (*bytes = 0; got > 0 && !canceled(reader);) {
		do
			got = read(fd, piece, PIECE);
		while (got < 0 && errno == EINTR);
		if (got > 0) {
			XXH3_128bits_update(state, piece, (size_t)got);
			*bytes += (uint64_t)got;
		}
	}
	if (got == 0)
		*hash = XXH3_128bits_digest(state);
	else if (got < 0)
		error_errno(err, "read");
	XXH3_freeState(state);
	return got < 0 ? err->code : (got > 0 ? -ECANCELED : 0);
}

/* Whether the source is still the one that was staged in. */
static int check_source(int fd, const struct manifest_entry *entry, struct error *err)
{
	struct manifest_identity now;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno(err, "stat");
	manifest_identity_from(&st, &now);
	return manifest_identity_equal(&now, &entry->shared)
		       ? 0
		       : error_set(err, -ESTALE,
				 "it has changed since the stage-in: there is nothing to compare "
				 "with");
}

static int compare_bytes(const struct reading *reading, bool *same, struct error *err)
{
	const struct check *check = reading->reader->check;
	XXH128_hash_t here, there;
	uint64_t here_bytes, there_bytes;
	autoclose int local = path_open_beneath(check->stagefd, reading->local,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, RESOLVE_NO_SYMLINKS, err);
	autoclose int shared =
		local < 0 ? local
			  : path_open(reading->shared, O_RDONLY | O_NONBLOCK | O_NOCTTY, err);
	int rc = shared < 0 ? shared : check_source(shared, &reading->entry, err);

	if (shared == -ENOTDIR)
		return error_set(err, shared,
			"it came out of an archive: there is nothing to compare it with");
	if (rc < 0)
		return shared < 0 ? rc : error_prefix(err, rc, "%s", reading->shared);
	rc = hash_file(reading->reader, local, &here, &here_bytes, err);
	if (rc < 0)
		return rc;
	rc = hash_file(reading->reader, shared, &there, &there_bytes, err);
	if (rc < 0)
		return error_prefix(err, rc, "%s", reading->shared);
	*same = here_bytes == there_bytes && XXH128_isEqual(here, there);
	pthread_mutex_lock(&reading->reader->check->lock);
	check->counts->files_read++;
	check->counts->bytes_read += here_bytes;
	pthread_mutex_unlock(&reading->reader->check->lock);
	return 0;
}

static void run(struct pool_task *task, unsigned worker)
{
	struct reading *reading = (struct reading *)task;
	struct check_reader *reader = reading->reader;
	struct error err = ERROR_INIT;
	bool same = false;
	int rc = canceled(reader) ? -ECANCELED : compare_bytes(reading, &same, &err);

	(void)worker;
	if (rc == 0 && same)
		check_same(reader->check);
	else if (rc == 0)
		check_tell(reader->check, reading->local, CHECK_CHANGED,
			"its content is not that of its source");
	else if (rc != -ECANCELED)
		check_tell(reader->check, reading->local, CHECK_UNKNOWN, err.text);
	reading_free(reading);
	sem_post(&reader->room);
}

int check_reader_start(struct check *check, struct check_reader **reader, struct error *err)
{
	unsigned threads = check->options->threads ? check->options->threads : READER_THREADS;
	struct check_reader *started = calloc(1, sizeof(*started));
	int rc;

	if (!started)
		return error_sys(err, -ENOMEM, "verify");
	rc = pool_start(threads, &started->pool, err);
	if (rc < 0) {
		free(started);
		return rc;
	}
	started->check = check;
	sem_init(&started->room, 0, threads * READER_QUEUE);
	*reader = started;
	return 0;
}

int check_reader_add(struct check_reader *reader, char *local, char *shared,
	const struct manifest_entry *entry, struct error *err)
{
	struct reading *reading = calloc(1, sizeof(*reading));

	if (!reading || !local || !shared) {
		free(reading);
		free(local);
		free(shared);
		return error_sys(err, -ENOMEM, "verify");
	}
	*reading = (struct reading){ { run, NULL }, reader, local, shared, *entry };
	while (sem_wait(&reader->room) < 0 && errno == EINTR)
		;
	pool_push_bottom(reader->pool, &reading->task);
	return 0;
}

void check_reader_end(struct check_reader *reader)
{
	if (!reader)
		return;
	pool_free(reader->pool);
	sem_destroy(&reader->room);
	free(reader);
}
