#include "fault/snapshot.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <xxhash.h>

static uint64_t hash_file(const char *path)
{
	static char buffer[256 * 1024];
	XXH3_state_t *state = XXH3_createState();
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
	uint64_t hash;
	ssize_t got;

	if (fd < 0 || !state)
		err(99, "%s", path);
	XXH3_64bits_reset(state);
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		XXH3_64bits_update(state, buffer, (size_t)got);
	if (got < 0)
		err(99, "%s", path);
	close(fd);
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return hash;
}

static uint64_t hash_link(const char *path)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target));

	if (length < 0)
		err(99, "%s", path);
	return XXH3_64bits(target, (size_t)length);
}

static uint64_t hash_xattrs(const char *path)
{
	char names[4096], value[4096];
	ssize_t length = llistxattr(path, names, sizeof(names));
	uint64_t sum = 0;

	if (length < 0 && errno != EOPNOTSUPP)
		err(99, "%s", path);
	for (const char *name = names; length > 0 && name < names + length;
		name += strlen(name) + 1) {
		ssize_t got = lgetxattr(path, name, value, sizeof(value));

		if (got < 0)
			err(99, "%s: %s", path, name);
		sum += XXH3_64bits(name, strlen(name)) ^ (XXH3_64bits(value, (size_t)got) * 31);
	}
	return sum;
}

static struct snapshot *growing; /* nftw has no room for a context */
static size_t growing_root;

static int add(const char *path, const struct stat *st, int type, struct FTW *place)
{
	struct entry *entry;

	(void)place;
	if (type == FTW_NS || type == FTW_DNR)
		errx(99, "%s: can not be read", path);
	growing->entries = reallocarray(growing->entries, growing->count + 1, sizeof(*entry));
	if (!growing->entries)
		err(99, "memory");
	entry = &growing->entries[growing->count++];
	*entry = (struct entry){ .st = *st };
	path += growing_root;
	entry->path = strdup(*path == '/' ? path + 1 : path);
	path -= growing_root;
	if (!entry->path)
		err(99, "memory");
	if (S_ISREG(st->st_mode))
		entry->content = hash_file(path);
	else if (S_ISLNK(st->st_mode))
		entry->content = hash_link(path);
	entry->xattrs = hash_xattrs(path);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

struct snapshot *snapshot_take(const char *root)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		err(99, "memory");
	growing = snapshot;
	growing_root = strlen(root);
	if (nftw(root, add, 16, FTW_PHYS) < 0 && errno != ENOENT)
		err(99, "%s", root);
	qsort(snapshot->entries, snapshot->count, sizeof(*snapshot->entries), by_path);
	for (size_t i = 0; i < snapshot->count; i++) {
		struct entry *entry = &snapshot->entries[i];

		for (entry->first_link = 0; entry->first_link < i; entry->first_link++) {
			if (snapshot->entries[entry->first_link].st.st_ino == entry->st.st_ino)
				break;
		}
	}
	return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	for (size_t i = 0; i < snapshot->count; i++)
		free(snapshot->entries[i].path);
	free(snapshot->entries);
	free(snapshot);
}

const struct entry *snapshot_find(const struct snapshot *snapshot, const char *path)
{
	struct entry key = { .path = (char *)path };

	if (!snapshot->count)
		return NULL;
	return bsearch(&key, snapshot->entries, snapshot->count, sizeof(key), by_path);
}

static const char *attributes_differ(const struct stat *a, const struct stat *b, unsigned ignore)
{
	bool directory = S_ISDIR(a->st_mode);
	bool timeless = directory ? ignore & IGNORE_DIR_TIMES :
				    !S_ISREG(a->st_mode) && ignore & IGNORE_OTHER_TIMES;

	if (a->st_mode != b->st_mode && !(directory && (ignore & IGNORE_DIR_MODES)))
		return "mode";
	if ((a->st_uid != b->st_uid || a->st_gid != b->st_gid) && !(ignore & IGNORE_OWNER))
		return "owner";
	if ((a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec) &&
		!timeless)
		return "mtime";
	return NULL;
}

const char *snapshot_difference(const struct snapshot *a, const struct entry *entry_a,
	const struct snapshot *b, const struct entry *entry_b, unsigned ignore)
{
	const char *what;

	if ((entry_a->st.st_mode ^ entry_b->st.st_mode) & S_IFMT)
		return "type";
	if (!S_ISDIR(entry_a->st.st_mode) && entry_a->st.st_size != entry_b->st.st_size)
		return "size";
	if (entry_a->content != entry_b->content)
		return "content";
	if (ignore & IGNORE_ATTRIBUTES)
		return NULL;
	what = attributes_differ(&entry_a->st, &entry_b->st, ignore);
	if (what)
		return what;
	if (entry_a->xattrs != entry_b->xattrs && !(ignore & IGNORE_XATTRS))
		return "xattrs";
	if (strcmp(a->entries[entry_a->first_link].path, b->entries[entry_b->first_link].path) !=
			0 &&
		!(ignore & IGNORE_LINKS))
		return "hard links";
	return NULL;
}

const char *snapshot_compare(const struct snapshot *a, const struct snapshot *b, unsigned ignore,
	char *buffer, size_t size)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct entry *other = snapshot_find(b, a->entries[i].path);
		const char *what = other ?
			snapshot_difference(a, &a->entries[i], b, other, ignore) :
			"missing";

		if (what) {
			snprintf(buffer, size, "%s: %s", a->entries[i].path, what);
			return buffer;
		}
	}
	for (size_t i = 0; i < b->count; i++) {
		if (!snapshot_find(a, b->entries[i].path)) {
			snprintf(buffer, size, "%s: not expected", b->entries[i].path);
			return buffer;
		}
	}
	return NULL;
}
