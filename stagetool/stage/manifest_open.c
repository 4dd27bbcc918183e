#include "stage/manifest_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FIRST_MAP_SIZE (16UL * 1024 * 1024)
#define FORMAT "stagetool manifest 1"

static int open_dir(int at, const char *name, bool create, struct error *err)
{
	int fd;

	if (create && mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return error_errno(err, "manifest: making %s", name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !create)
		return error_set(err, -ENOENT, "there is no manifest here (nothing was staged in)");
	return fd < 0 ? error_errno(err, "manifest: %s", name) : fd;
}

/* Opens a plain file of ours; never waits on what somebody put in its place. */
static int open_plain(int dirfd, const char *name, int flags, struct error *err)
{
	autoclose int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, "manifest: %s", name);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EBADMSG, "manifest: %s is not a plain file", name);
	return take_fd(fd);
}

static int busy(int lockfd, struct error *err)
{
	char who[24] = "";
	ssize_t got = pread(lockfd, who, sizeof(who) - 1, 0);

	if (got > 0)
		return error_set(err, -EBUSY,
			"the stage is in use by another stagetool (process %.*s)",
			(int)strcspn(who, "\n"), who);
	return error_set(err, -EBUSY, "the stage is in use by another stagetool");
}

static int take_lock(struct manifest *manifest, struct error *err)
{
	char who[24];
	int length;

	manifest->lockfd = open_plain(
		manifest->dirfd, "lock", manifest->writer ? O_RDWR | O_CREAT : O_RDONLY, err);
	if (manifest->lockfd == -ENOENT)
		return error_set(err, -ENOENT, "there is no manifest here (nothing was staged in)");
	if (manifest->lockfd < 0)
		return manifest->lockfd;
	if (flock(manifest->lockfd, (manifest->writer ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? busy(manifest->lockfd, err)
					    : error_errno(err, "manifest: locking");
	if (!manifest->writer)
		return 0;
	/* Who holds it is for a message only: a full disk must not keep results from being sent. */
	length = snprintf(who, sizeof(who), "%ld\n", (long)getpid());
	if (ftruncate(manifest->lockfd, 0) == 0)
		(void)!pwrite(manifest->lockfd, who, (size_t)length, 0);
	return 0;
}

/* The id of this boot, with the newline that the kernel puts behind it; "" where it says none. */
static void read_boot(char boot[64])
{
	autoclose int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, boot, 63);

	boot[got > 0 ? got : 0] = '\0';
}

/* A marker from before the last boot: batches were not synced one by one, and what reached the disk
 * is anybody's guess. From this boot: only the process died, and the kernel kept all it wrote. */
static int check_marker(struct manifest *manifest, struct error *err)
{
	autoclose int fd = open_plain(manifest->dirfd, "bulk", O_RDONLY, err);
	char now[64], then[64];
	ssize_t got;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	got = read(fd, then, sizeof(then) - 1);
	if (got < 0)
		return error_errno(err, "manifest: bulk");
	if (!got || then[got - 1] != '\n')
		return 0; /* it was never synced, and nothing was written on the strength of it */
	then[got] = '\0';
	read_boot(now);
	if (!now[0] || strcmp(now, then) != 0)
		return error_set(err, -EBADMSG,
			"manifest: the machine went down while it was being written; "
			"remove " MANIFEST_STAGE_DIR "/manifest to begin anew");
	manifest->marked = manifest->follows_death = true;
	return 0;
}

static int write_marker(struct manifest *manifest, struct error *err)
{
	autoclose int fd =
		open_plain(manifest->dirfd, "bulk", O_WRONLY | O_CREAT | O_TRUNC, err);
	char boot[64];
	const char *line = boot;
	ssize_t put;

	if (fd < 0)
		return fd;
	read_boot(boot);
	if (!boot[0])
		line = "\n";
	do
		put = write(fd, line, strlen(line));
	while (put < 0 && errno == EINTR);
	if (put >= 0 && put != (ssize_t)strlen(line))
		return error_set(err, -EIO, "manifest: writing the marker: cut short");
	if (put < 0 || fsync(fd) < 0 || fsync(manifest->dirfd) < 0 || close(take_fd(fd)) < 0)
		return error_errno(err, "manifest: writing the marker");
	return 0;
}

int manifest_bulk(struct manifest *manifest, struct error *err)
{
	int rc;

	if (manifest->bulk)
		return 0;
	rc = manifest->marked ? 0 : write_marker(manifest, err);
	if (rc < 0) {
		unlinkat(manifest->dirfd, "bulk", 0);
		return rc;
	}
	mdb_env_set_flags(manifest->env, MDB_NOSYNC, 1);
	manifest->bulk = true;
	return 0;
}

int manifest_not_synced(struct manifest *manifest, struct error *err)
{
	struct manifest_key key;
	char boot[64];

	read_boot(boot);
	manifest_key_make(MANIFEST_META, META_STATE, "boot", 4, &key, NULL);
	return manifest_put_value(manifest, &key, boot, strlen(boot), err);
}

int manifest_rebooted(struct manifest *manifest, bool *rebooted, struct error *err)
{
	autofree char *then = NULL;
	void *value = NULL;
	struct manifest_key key;
	size_t size;
	char now[64];
	int rc;

	manifest_key_make(MANIFEST_META, META_STATE, "boot", 4, &key, NULL);
	rc = manifest_value(manifest, &key, &value, &size, err);
	then = value;
	*rebooted = false;
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	read_boot(now);
	*rebooted = !now[0] || size != strlen(now) || memcmp(then, now, size) != 0;
	return 0;
}

int manifest_sync(struct manifest *manifest, struct error *err)
{
	int rc = manifest_flush(manifest, err);

	if (rc < 0 || !manifest->writer)
		return rc;
	rc = mdb_env_sync(manifest->env, 1);
	if (rc)
		return manifest_error(err, rc, "syncing");
	if (unlinkat(manifest->dirfd, "bulk", 0) < 0 && errno != ENOENT)
		return error_errno(err, "manifest: removing the marker");
	if (fsync(manifest->dirfd) < 0)
		return error_errno(err, "manifest: syncing");
	mdb_env_set_flags(manifest->env, MDB_NOSYNC, 0);
	manifest->bulk = manifest->marked = false;
	return 0;
}

/* What LMDB would take from the file without a question. -ENOENT: there is no database yet. */
static int check_file(int dirfd, struct error *err)
{
	autoclose int fd = open_plain(dirfd, "data.mdb", O_RDONLY, err);
	unsigned char head[44];
	struct stat st;
	uint64_t page;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return error_errno(err, "manifest: data.mdb");
	if (st.st_size == 0)
		return -ENOENT;
	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return error_set(err, -EBADMSG, "manifest: damaged (it has %lld bytes)",
			(long long)st.st_size);
	page = manifest_unpack(head + 40, 4);
	if (page < 512 || page > 65536 || page & (page - 1) || (uint64_t)st.st_size < 2 * page)
		return error_set(err, -EBADMSG, "manifest: damaged, or not a manifest");
	return 0;
}

static int check_length(const struct manifest *manifest, struct error *err)
{
	MDB_envinfo info;
	MDB_stat stat;
	struct stat st;

	if (mdb_env_info(manifest->env, &info) || mdb_env_stat(manifest->env, &stat) ||
		fstatat(manifest->dirfd, "data.mdb", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return error_set(err, -EIO, "manifest: can not be examined");
	if ((info.me_last_pgno + 1) * stat.ms_psize > (uint64_t)st.st_size)
		return error_set(err, -EBADMSG, "manifest: damaged (it has lost its end)");
	return 0;
}

static int open_env(struct manifest *manifest, struct error *err)
{
	unsigned flags = MDB_NOLOCK | MDB_NOMETASYNC | MDB_NOTLS | MDB_NORDAHEAD;
	MDB_txn *txn;
	char path[40];
	int rc = mdb_env_create(&manifest->env);

	if (!rc)
		rc = mdb_env_set_mapsize(manifest->env, FIRST_MAP_SIZE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", manifest->dirfd);
	if (!rc)
		rc = mdb_env_open(
			manifest->env, path, flags | (manifest->writer ? 0 : MDB_RDONLY), 0600);
	if (rc)
		return manifest_error(err, rc, "opening");
	rc = check_length(manifest, err);
	if (rc < 0)
		return rc;
	rc = mdb_txn_begin(manifest->env, NULL, MDB_RDONLY, &txn);
	if (!rc) {
		rc = mdb_dbi_open(txn, NULL, 0, &manifest->dbi);
		if (rc)
			mdb_txn_abort(txn);
		else
			rc = mdb_txn_commit(txn);
	}
	return rc ? manifest_error(err, rc, "opening") : 0;
}

static int load_state(struct manifest *manifest, struct error *err)
{
	autofree unsigned char *state = NULL;
	void *value = NULL;
	struct manifest_key key;
	size_t size;
	int rc;

	manifest_key_make(MANIFEST_META, META_STATE, "state", 5, &key, NULL);
	rc = manifest_value(manifest, &key, &value, &size, err);
	state = value;
	if (rc < 0)
		return rc == -ENOENT ? error_set(err, -EBADMSG, "manifest: damaged (no state)")
				     : rc;
	if (size != 12)
		return error_set(err, -EBADMSG, "manifest: a state of %zu bytes", size);
	atomic_store(&manifest->next_dir, manifest_unpack(state, 8));
	manifest->run = (uint32_t)manifest_unpack(state + 8, 4) + (manifest->writer ? 1 : 0);
	return 0;
}

static int write_format(struct manifest *manifest, struct error *err)
{
	struct manifest_key key;

	manifest->run = 1;
	atomic_store(&manifest->next_dir, 1);
	manifest_key_make(MANIFEST_META, META_STATE, "format", 6, &key, NULL);
	return manifest_put_value(manifest, &key, FORMAT, sizeof(FORMAT) - 1, err);
}

static int check_format(struct manifest *manifest, struct error *err)
{
	autofree char *format = NULL;
	void *value = NULL;
	struct manifest_key key;
	MDB_stat stat;
	size_t size;
	int rc;

	if (mdb_env_stat(manifest->env, &stat) == 0 && stat.ms_entries == 0)
		return manifest->writer ? write_format(manifest, err)
					: error_set(err, -ENOENT, "the manifest is empty");
	manifest_key_make(MANIFEST_META, META_STATE, "format", 6, &key, NULL);
	rc = manifest_value(manifest, &key, &value, &size, err);
	format = value;
	if (rc == -ENOENT)
		return error_set(err, -EBADMSG, "manifest: data.mdb is some other program's");
	if (rc == 0 && (size != sizeof(FORMAT) - 1 || memcmp(format, FORMAT, size) != 0))
		return error_set(err, -EBADMSG, "manifest: of another version of stagetool (%.*s)",
			(int)(size < 40 ? size : 40), format);
	return rc < 0 ? rc : load_state(manifest, err);
}

static int count_pairs(void *ctx, const char *name, size_t name_size, const void *value,
	size_t size, struct error *err)
{
	struct manifest *manifest = ctx;

	(void)name, (void)name_size, (void)value, (void)size, (void)err;
	atomic_fetch_add(&manifest->pairs, 1);
	return 0;
}

static int open_parts(struct manifest *manifest, int stagefd, struct error *err)
{
	autoclose int own = open_dir(stagefd, MANIFEST_STAGE_DIR, manifest->writer, err);
	bool new;
	int rc;

	if (own < 0)
		return own;
	manifest->dirfd = open_dir(own, "manifest", manifest->writer, err);
	if (manifest->dirfd < 0)
		return manifest->dirfd;
	if (manifest->writer && (fsync(own) < 0 || fsync(stagefd) < 0))
		return error_errno(err, "manifest: syncing");
	rc = take_lock(manifest, err);
	if (rc == 0)
		rc = check_marker(manifest, err);
	if (rc == 0)
		rc = check_file(manifest->dirfd, err);
	new = rc == -ENOENT;
	if (rc == -ENOENT && manifest->writer)
		rc = 0;
	else if (rc == -ENOENT)
		return error_set(err, rc, "there is no manifest here (nothing was staged in)");
	manifest_guard_enter();
	if (rc == 0)
		rc = open_env(manifest, err);
	manifest_guard_leave();
	if (rc < 0 && new)
		unlinkat(manifest->dirfd, "data.mdb", 0); /* half made, it would be damaged */
	if (rc == 0)
		rc = check_format(manifest, err);
	if (rc == 0)
		rc = manifest_each_value(
			manifest, MANIFEST_META, META_PAIR_ROOTS, count_pairs, manifest, err);
	return rc;
}

static struct manifest *allocate(bool writer)
{
	struct manifest *manifest = calloc(1, sizeof(*manifest));

	if (!manifest)
		return NULL;
	manifest->dirfd = manifest->lockfd = -1;
	manifest->writer = writer;
	pthread_mutex_init(&manifest->buffer_lock, NULL);
	pthread_mutex_init(&manifest->flush_lock, NULL);
	pthread_mutex_init(&manifest->pair_lock, NULL);
	pthread_rwlock_init(&manifest->map_lock, NULL);
	manifest->active = calloc(1, sizeof(*manifest->active));
	manifest->flushing = calloc(1, sizeof(*manifest->flushing));
	if (manifest->active && manifest->flushing)
		return manifest;
	manifest_close(manifest);
	return NULL;
}

int manifest_open(int stagefd, bool create, struct manifest **manifest, struct error *err)
{
	struct manifest *opened = allocate(create);
	int rc;

	if (!opened)
		return error_sys(err, -ENOMEM, "manifest");
	rc = open_parts(opened, stagefd, err);
	manifest_guard_enter();
	if (rc == 0)
		manifest_map_find(opened);
	manifest_guard_leave();
	if (rc == 0)
		*manifest = opened;
	else
		manifest_close(opened);
	return rc;
}

static void free_buffer(struct manifest_buffer *buffer)
{
	if (buffer)
		free(buffer->arena);
	free(buffer);
}

void manifest_close(struct manifest *manifest)
{
	if (!manifest)
		return;
	if (manifest->env)
		mdb_env_close(manifest->env);
	if (manifest->lockfd >= 0) {
		if (manifest->writer)
			(void)!ftruncate(manifest->lockfd, 0);
		close(manifest->lockfd);
	}
	if (manifest->dirfd >= 0)
		close(manifest->dirfd);
	free_buffer(manifest->active);
	free_buffer(manifest->flushing);
	pthread_mutex_destroy(&manifest->buffer_lock);
	pthread_mutex_destroy(&manifest->flush_lock);
	pthread_mutex_destroy(&manifest->pair_lock);
	pthread_rwlock_destroy(&manifest->map_lock);
	free(manifest);
}

bool manifest_follows_death(const struct manifest *manifest)
{
	return manifest->follows_death;
}

uint32_t manifest_run(const struct manifest *manifest)
{
	return manifest->run;
}
