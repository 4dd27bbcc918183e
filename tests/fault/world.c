#include "fault/world.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fault/trace.h"

const char *world_path(const struct world *world, const char *name)
{
	static char buffers[4][512];
	static unsigned next;
	char *buffer = buffers[next++ % 4];

	snprintf(buffer, sizeof(buffers[0]), "%s/%s", world->root, name);
	return buffer;
}

void world_finish(const struct world *world, const char *name, unsigned seed)
{
	const char *path = world_path(world, name);
	struct timespec times[2] = { { 1600000000, 1 }, { 1600000000 + seed, 123456789 - seed } };

	if (world->user && lchown(path, WORLD_UID, WORLD_UID) < 0)
		err(99, "%s", path);
	if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0)
		err(99, "%s", path);
}

static void write_at(int fd, size_t size, off_t offset, unsigned seed)
{
	unsigned *data = malloc(size + sizeof(*data));

	if (!data)
		err(99, "memory");
	for (size_t i = 0; i <= size / sizeof(*data); i++)
		data[i] = seed = seed * 1664525 + 1013904223;
	if (pwrite(fd, data, size, offset) != (ssize_t)size)
		err(99, "pwrite");
	free(data);
}

void world_file(
	const struct world *world, const char *name, size_t size, unsigned seed, mode_t mode)
{
	const char *path = world_path(world, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		err(99, "%s", path);
	write_at(fd, size, 0, seed + 1);
	if (fchmod(fd, mode) < 0)
		err(99, "%s", path);
	close(fd);
	world_finish(world, name, seed);
}

void world_directory(const struct world *world, const char *name, mode_t mode)
{
	const char *path = world_path(world, name);

	if ((mkdir(path, 0700) < 0 && errno != EEXIST) || chmod(path, mode) < 0)
		err(99, "%s", path);
	if (world->user && lchown(path, WORLD_UID, WORLD_UID) < 0)
		err(99, "%s", path);
}

static const char *in(const char *tree, const char *name)
{
	static char buffers[4][300];
	static unsigned next;
	char *buffer = buffers[next++ % 4];

	snprintf(buffer, sizeof(buffers[0]), "%s/%s", tree, name);
	return buffer;
}

static void world_sparse(const struct world *world, const char *name, unsigned seed)
{
	const char *path = world_path(world, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

	if (fd < 0 || ftruncate(fd, 2 << 20) < 0)
		err(99, "%s", path);
	write_at(fd, 5000, 1 << 20, seed);
	close(fd);
	world_finish(world, name, seed);
}

static void world_attributes(const struct world *world, const char *name, unsigned seed)
{
	/* version 2: owner rw, uid 1000 r, group r, mask r, others none */
	static const unsigned char acl[] = { 2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0,
		232, 3, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255, 32,
		0, 0, 0, 255, 255, 255, 255 };
	const char *path = world_path(world, name);

	world_file(world, name, 700, seed, 0640);
	if (setxattr(path, "user.origin", "beamline 7", 10, 0) < 0 && errno != EOPNOTSUPP)
		err(99, "%s: user.origin", path);
	if (setxattr(path, "system.posix_acl_access", acl, sizeof(acl), 0) < 0 &&
		errno != EOPNOTSUPP)
		err(99, "%s: ACL", path);
	world_finish(world, name, seed);
}

static void world_link(const struct world *world, const char *from, const char *to)
{
	if (link(world_path(world, from), world_path(world, to)) < 0)
		err(99, "%s", to);
}

static void world_symlink(
	const struct world *world, const char *target, const char *name, unsigned seed)
{
	if (symlink(target, world_path(world, name)) < 0)
		err(99, "%s", name);
	world_finish(world, name, seed);
}

void world_tree(const struct world *world, const char *tree)
{
	world_directory(world, tree, 0755);
	world_directory(world, in(tree, "sub"), 0750);
	world_directory(world, in(tree, "ro"), 0755);
	world_file(world, in(tree, "plain"), 5000, 1, 0644);
	world_file(world, in(tree, "empty"), 0, 2, 0600);
	world_file(world, in(tree, "large"), world->large, 3, 0644);
	world_sparse(world, in(tree, "sparse"), 4);
	world_attributes(world, in(tree, "attributes"), 5);
	world_file(world, in(tree, "linked"), 300, 6, 0644);
	world_link(world, in(tree, "linked"), in(tree, "sub/linked too"));
	world_symlink(world, "plain", in(tree, "symlink"), 7);
	if (mkfifo(world_path(world, in(tree, "fifo")), 0620) < 0)
		err(99, "fifo");
	world_finish(world, in(tree, "fifo"), 8);
	world_file(world, in(tree, "sub/new\nline"), 40, 9, 0755);
	world_file(world, in(tree, "ro/result"), 9000, 10, 0444);
	world_finish(world, in(tree, "sub"), 11);
	if (chmod(world_path(world, in(tree, "ro")), 0555) < 0)
		err(99, "ro");
	world_finish(world, in(tree, "ro"), 12);
	world_finish(world, tree, 13);
}

void world_older_tree(const struct world *world, const char *tree)
{
	world_directory(world, tree, 0700);
	world_directory(world, in(tree, "sub"), 0700);
	world_file(world, in(tree, "plain"), 4000, 101, 0644);
	world_file(world, in(tree, "empty"), 10, 102, 0600);
	world_file(world, in(tree, "large"), world->large, 103, 0644);
	world_file(world, in(tree, "sparse"), 100, 104, 0640);
	world_file(world, in(tree, "linked"), 300, 6, 0644); /* the same, but not linked */
	world_symlink(world, "elsewhere", in(tree, "symlink"), 107);
	world_file(world, in(tree, "sub/new\nline"), 40, 109, 0755);
	world_file(world, in(tree, "sub/theirs"), 40, 110, 0644);
	world_finish(world, in(tree, "sub"), 111);
	world_finish(world, tree, 113);
}

void world_rename(const struct world *world, const char *from, const char *to)
{
	if (rename(world_path(world, from), world_path(world, to)) < 0)
		err(99, "%s", to);
}

void world_places(struct world *world, const char *guarded, const char *target)
{
	snprintf(world->guarded, sizeof(world->guarded), "%s/%s", world->root, guarded);
	snprintf(world->target, sizeof(world->target), "%s/%s", world->root, target);
}

void world_text(const struct world *world, const char *name, const char *text)
{
	const char *path = world_path(world, name);
	FILE *file = fopen(path, "we");

	if (!file || fputs(text, file) == EOF || fclose(file) == EOF)
		err(99, "%s", path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st;
	(void)type;
	return place->level ? remove(path) : 0;
}

void world_clear(struct world *world)
{
	if (nftw(world->root, remove_one, 16, FTW_PHYS | FTW_DEPTH) != 0)
		err(99, "%s", world->root);
	snapshot_free(world->guard);
	snapshot_free(world->old);
	snapshot_free(world->want);
	world->guard = world->old = world->want = NULL;
}

void world_remember(struct world *world)
{
	world->guard = snapshot_take(world->guarded);
	world->old = snapshot_take(world->target);
	if (!world->want)
		world->want = snapshot_take(world->guarded);
}

/* text with "%W" and "%T" replaced. Caller frees. */
static char *expand(const struct world *world, const char *text)
{
	char *result = NULL;
	size_t size;
	FILE *file = open_memstream(&result, &size);

	if (!file)
		err(99, "memory");
	for (; *text; text++) {
		if (!strncmp(text, "%W", 2))
			fputs(world->root, file);
		else if (!strncmp(text, "%T", 2))
			fputs(world->tool, file);
		else
			fputc(*text, file);
		text += !strncmp(text, "%W", 2) || !strncmp(text, "%T", 2);
	}
	if (fclose(file) == EOF)
		err(99, "memory");
	return result;
}

char **world_words(const struct world *world, const char *const *words)
{
	size_t count = 0;
	char **copy;

	while (words[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (!copy)
		err(99, "memory");
	for (size_t i = 0; i < count; i++)
		copy[i] = expand(world, words[i]);
	return copy;
}

void world_words_free(char **words)
{
	for (char **word = words; *word; word++)
		free(*word);
	free(words);
}

void world_run(const struct world *world, const char *const *words)
{
	char **argv = world_words(world, words);
	const struct trace_plan plan = {
		.argv = argv, .envp = world->environment,
		.drop = world->drop, .uid = WORLD_UID, .gid = WORLD_UID,
		.out = -1, .err = -1, .action = TRACE_FAIL, .call = CALLS_MAX - 1, .timeout = 20000,
		.no_sleep = true,
	};
	static struct trace_result result;
	int rc = trace_run(&plan, &result);

	if (rc < 0 || result.status != 0 || result.timed_out)
		errx(99, "%s %s: status %x without any fault", argv[0], argv[1], result.status);
	world_words_free(argv);
}
