/*
 * A directory for a test, and files in it. For tests that need a tree.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch[64];
static int scratch_fd = -1;
static pid_t scratch_owner;

static inline int scratch_make(void **state)
{
	(void)state;
	strcpy(scratch, access("/dev/shm", W_OK) ? "/tmp/unit.XXXXXX" : "/dev/shm/unit.XXXXXX");
	if (!mkdtemp(scratch) || chmod(scratch, 0755))
		return -1;
	scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scratch_owner = getpid();
	return scratch_fd < 0 ? -1 : 0;
}

static inline int scratch_remove(void **state)
{
	pid_t child;

	(void)state;
	if (getpid() != scratch_owner) /* an assertion has failed in a child of a test */
		_exit(1);
	child = fork();
	close(scratch_fd);
	if (!child) {
		execlp("rm", "rm", "-rf", "--", scratch, (char *)NULL);
		_exit(127);
	}
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

/* Paths are below the scratch directory. */
static inline void make_dir(const char *path, mode_t mode)
{
	assert_int_equal(mkdirat(scratch_fd, path, mode), 0);
	assert_int_equal(fchmodat(scratch_fd, path, mode, 0), 0);
}

/* size bytes that differ from place to place and by seed. */
static inline void make_file(const char *path, size_t size, unsigned seed)
{
	int fd = openat(scratch_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	unsigned char *data = malloc(size + 1);

	assert_true(fd >= 0);
	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(i * 31 + i / 251 + seed);
	assert_int_equal(write(fd, data, size), size);
	free(data);
	assert_int_equal(close(fd), 0);
}

static inline bool have(const char *path)
{
	return !faccessat(scratch_fd, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

static inline struct stat stat_of(const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(scratch_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

/* A shell command in the scratch directory. Its exit status. */
static inline int shell(const char *command)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (fchdir(scratch_fd))
			_exit(126);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Compares two trees by tools that are not ours: kinds, modes, owners, times, sizes, links,
 * contents, and extended attributes with ACLs. */
static inline void assert_same_tree(const char *a, const char *b)
{
	static const char compare[] =
		"list() { (cd \"$1\" && find . -printf '%%P|%%y|%%m|%%U|%%G|%%n|%%T@|%%l\\n' | "
		"LC_ALL=C sort;"
		" find . ! -type d -printf '%%P|%%s\\n' | LC_ALL=C sort;"
		" find . -type f -print0 | LC_ALL=C sort -z | xargs -0r md5sum;"
		" find . ! -type l -print0 | LC_ALL=C sort -z |"
		" xargs -0r getfattr -h -d -m '^user|^system.posix|^security' 2>&1); };"
		" lists=$(mktemp -d); list '%s' >$lists/a; list '%s' >$lists/b; diff $lists/a "
		"$lists/b >&2;"
		" status=$?; rm -r $lists; exit $status";
	char command[1024];

	snprintf(command, sizeof(command), compare, a, b);
	assert_int_equal(shell(command), 0);
}

#endif
