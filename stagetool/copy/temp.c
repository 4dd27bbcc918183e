#include "copy/publish_internal.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define PREFIX_LENGTH (sizeof(COPY_TEMP_PREFIX) - 1)

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return hash;
}

#define HASH_START 0xcbf29ce484222325ull

uint64_t temp_state(uint64_t size, struct timespec mtime)
{
	const uint64_t words[] = { size, (uint64_t)mtime.tv_sec, (uint64_t)mtime.tv_nsec };

	return hash_bytes(HASH_START, words, sizeof(words));
}

/* The beginning of a small file, NUL-terminated. Its length, or -1. */
static ssize_t read_small(const char *path, char *buffer, size_t size)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buffer, size - 1);

	buffer[n > 0 ? n : 0] = '\0';
	return n;
}

/* A process number means something only on one machine and in one namespace of processes. */
static uint64_t host_hash(void)
{
	struct utsname names;
	char buffer[256];
	uint64_t hash = HASH_START;
	ssize_t n;

	if (uname(&names) == 0)
		hash = hash_bytes(hash, names.nodename, strlen(names.nodename) + 1);
	n = read_small("/etc/machine-id", buffer, sizeof(buffer));
	if (n > 0)
		hash = hash_bytes(hash, buffer, (size_t)n);
	n = readlink("/proc/self/ns/pid", buffer, sizeof(buffer));
	return n > 0 ? hash_bytes(hash, buffer, (size_t)n) : hash;
}

static uint64_t boot_hash(void)
{
	char buffer[64];
	ssize_t n = read_small("/proc/sys/kernel/random/boot_id", buffer, sizeof(buffer));

	return n > 0 ? hash_bytes(HASH_START, buffer, (size_t)n) : 0;
}

/* When a process began, in ticks since boot (field 22 of its stat); 0: not to be known. *over (may be
 * NULL): it has ended, and only waits for its parent to hear of it, for ever where nobody does. The
 * name in the second field may hold anything, also ')'. */
static uint64_t process_start(pid_t pid, bool *over)
{
	char path[48], buffer[1024], *at;
	unsigned long long start;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_small(path, buffer, sizeof(buffer)) <= 0)
		return 0;
	at = strrchr(buffer, ')');
	if (over)
		*over = at && at[1] && (at[2] == 'Z' || at[2] == 'X');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%llu", &start) == 1 ? start : 0;
}

int publish_new(struct publish **publish, struct error *err)
{
	struct publish *new = calloc(1, sizeof(*new));
	struct timespec now, up;

	if (!new)
		return error_sys(err, -ENOMEM, "publish");
	new->taken = links_new();
	if (!new->taken) {
		free(new);
		return error_sys(err, -ENOMEM, "publish");
	}
	new->host = host_hash();
	new->boot = boot_hash();
	new->pid = getpid();
	new->start = process_start(new->pid, NULL);
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	new->boot_time = now.tv_sec - up.tv_sec;
	new->prefix_length = (size_t)snprintf(new->prefix, sizeof(new->prefix),
		COPY_TEMP_PREFIX "%" PRIx64 ".%" PRIx64 ".%d.%" PRIx64 ".", new->host, new->boot,
		(int)new->pid, new->start);
	*publish = new;
	return 0;
}

void publish_free(struct publish *publish)
{
	if (publish)
		links_free(publish->taken);
	free(publish);
}

/* <prefix><host>.<boot>.<pid>.<start>.<counter>[.<ours>.<theirs>.<state>], numbers but pid
 * hexadecimal. */
void publish_temp_name(struct publish *publish, char temp[PUBLISH_TEMP_SIZE])
{
	unsigned long long number =
		atomic_fetch_add_explicit(&publish->counter, 1, memory_order_relaxed);
	char digits[16], *end = temp + publish->prefix_length;
	int count = 0;

	memcpy(temp, publish->prefix, publish->prefix_length);
	do {
		digits[count++] = "0123456789abcdef"[number & 15];
		number >>= 4;
	} while (number);
	while (count)
		*end++ = digits[--count];
	*end = '\0';
}

struct temp_parts {
	uint64_t host, boot, start, counter;
	int pid;
	bool has_exchange;
	struct temp_exchange exchange;
};

static bool temp_parse(const char *name, struct temp_parts *parts)
{
	int base = 0, whole = 0, n;

	if (!publish_is_temp(name))
		return false;
	n = sscanf(name + PREFIX_LENGTH, "%" SCNx64 ".%" SCNx64 ".%d.%" SCNx64 ".%" SCNx64
		"%n.%" SCNx64 ".%" SCNx64 ".%" SCNx64 "%n", &parts->host, &parts->boot,
		&parts->pid, &parts->start, &parts->counter, &base, &parts->exchange.ours,
		&parts->exchange.theirs, &parts->exchange.theirs_state, &whole);
	parts->has_exchange = n == 8;
	return (n == 8 && !name[PREFIX_LENGTH + (size_t)whole]) ||
		(n == 5 && !name[PREFIX_LENGTH + (size_t)base]);
}

void temp_name_exchange(const char *temp, const struct temp_exchange *exchange,
	char name[PUBLISH_TEMP_SIZE])
{
	size_t dots = 0, length = PREFIX_LENGTH;

	while (temp[length] && !(temp[length] == '.' && ++dots == 5))
		length++;
	snprintf(name, PUBLISH_TEMP_SIZE, "%.*s.%" PRIx64 ".%" PRIx64 ".%" PRIx64, (int)length,
		temp, exchange->ours, exchange->theirs, exchange->theirs_state);
}

bool publish_is_temp(const char *name)
{
	return strncmp(name, COPY_TEMP_PREFIX, PREFIX_LENGTH) == 0;
}

/* A server that says no may have made it all the same, and lost its first reply. */
static int temp_failed(int dirfd, const char *temp, struct error *err)
{
	int code = -errno;

	if (code != -EEXIST)
		unlinkat(dirfd, temp, 0);
	return error_sys(err, code, "make a temporary name");
}

int publish_create(struct publish *publish, int dirfd, mode_t mode, char temp[PUBLISH_TEMP_SIZE],
	struct error *err)
{
	int fd;

	do {
		publish_temp_name(publish, temp);
		fd = openat(dirfd, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	} while (fd < 0 && errno == EINTR && (unlinkat(dirfd, temp, 0) == 0 || errno == ENOENT));
	return fd < 0 ? temp_failed(dirfd, temp, err) : fd;
}

int publish_create_symlink(struct publish *publish, int dirfd, const char *target,
	char temp[PUBLISH_TEMP_SIZE], struct error *err)
{
	publish_temp_name(publish, temp);
	return symlinkat(target, dirfd, temp) < 0 ? temp_failed(dirfd, temp, err) : 0;
}

int publish_create_fifo(struct publish *publish, int dirfd, mode_t mode,
	char temp[PUBLISH_TEMP_SIZE], struct error *err)
{
	publish_temp_name(publish, temp);
	return mkfifoat(dirfd, temp, mode) < 0 ? temp_failed(dirfd, temp, err) : 0;
}

/* Whether the run that made a temporary is certainly over. */
static bool temp_is_dead(const struct publish *publish, const struct temp_parts *parts,
	const struct stat *st)
{
	bool over = false;
	uint64_t start;

	if (parts->host != publish->host || !parts->boot || !publish->boot || parts->pid <= 0)
		return false;
	/* Two machines may bear one name: what was touched since we are up may be the other's. */
	if (parts->boot != publish->boot)
		return st->st_ctim.tv_sec < publish->boot_time;
	/* kill and not /proc alone, which may hide other users' processes. */
	if (kill(parts->pid, 0) < 0 && errno == ESRCH)
		return true;
	start = process_start(parts->pid, &over);
	return over || (start && parts->start && start != parts->start);
}

/* Whether a dead temporary holds nothing that anybody could miss. One that was about to change
 * places may hold an entry that nobody expected there: that stays. */
static bool temp_is_ours(const struct temp_parts *parts, const struct stat *st)
{
	const struct temp_exchange *exchange = &parts->exchange;

	if (!parts->has_exchange || st->st_ino == exchange->ours)
		return true;
	return st->st_ino == exchange->theirs &&
		temp_state((uint64_t)st->st_size, st->st_mtim) == exchange->theirs_state;
}

static int remove_if_dead(const struct publish *publish, int dirfd, const char *name,
	uint64_t *removed, struct error *err)
{
	struct temp_parts parts;
	struct stat st;

	if (!temp_parse(name, &parts) || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!temp_is_dead(publish, &parts, &st) || !temp_is_ours(&parts, &st))
		return 0;
	if (unlinkat(dirfd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0)
		(*removed)++;
	else if (errno != ENOENT)
		return error_errno(err, "remove %s, which a dead run left", name);
	return 0;
}

int publish_remove_dead(struct publish *publish, int dirfd, uint64_t *removed, struct error *err)
{
	autoclose int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t count = 0;
	int first = 0;

	if (!dir)
		return error_errno(err, "look for temporary names");
	fd = -1;
	for (;;) {
		struct error why = ERROR_INIT;
		struct dirent *entry;
		int rc;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		rc = remove_if_dead(publish, dirfd, entry->d_name, &count, &why);
		if (rc < 0 && !first)
			first = error_set(err, rc, "%s", why.text);
	}
	if (errno && !first)
		first = error_errno(err, "look for temporary names");
	if (removed)
		*removed = count;
	return first;
}

int publish_sync(int fd, struct error *err)
{
	int rc;

	do
		rc = fsync(fd);
	while (rc < 0 && errno == EINTR);
	return rc < 0 && errno != EINVAL ? error_errno(err, "sync") : 0;
}
