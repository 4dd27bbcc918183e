#include "fault/touch.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Reads a string of the tracee page by page: what follows it may not be mapped. */
static void read_string(pid_t tid, uint64_t address, char *text, size_t size)
{
	size_t used = 0;

	while (used + 1 < size) {
		size_t room = 4096 - (address + used) % 4096;
		struct iovec here = { text + used,
			room < size - used - 1 ? room : size - used - 1 };
		struct iovec there = { (void *)(uintptr_t)(address + used), here.iov_len };
		ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);

		if (got <= 0)
			break;
		if (memchr(text + used, '\0', (size_t)got))
			return;
		used += (size_t)got;
	}
	text[used] = '\0';
}

static void read_link(pid_t tid, int fd, char *text, size_t size)
{
	char link[64];
	ssize_t got;

	if (fd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", (int)tid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)tid, fd);
	got = readlink(link, text, size - 1);
	text[got < 0 ? 0 : got] = '\0';
}

static void read_place(pid_t tid, char kind, const uint64_t *argument, char *text, size_t size)
{
	char name[PATH_MAX];
	size_t used;

	if (kind == 'f') {
		read_link(tid, (int)argument[0], text, size);
		return;
	}
	read_string(tid, argument[kind == 'a'], name, sizeof(name));
	if (name[0] == '/') {
		snprintf(text, size, "%s", name);
		return;
	}
	read_link(tid, kind == 'a' ? (int)argument[0] : AT_FDCWD, text, size);
	used = strlen(text);
	if (name[0])
		snprintf(text + used, size - used, "/%s", name);
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return !strncmp(path, directory, length) && (path[length] == '/' || !path[length]);
}

bool touch_below(pid_t tid, const struct call *call, const uint64_t *arguments,
	const char *directory, char *path, size_t size)
{
	char text[2 * PATH_MAX];

	if (path)
		path[0] = '\0';
	if (!call)
		return !directory;
	for (const char *letter = call->arguments; *letter; letter += 2) {
		if (*letter == 'l')
			continue;
		read_place(tid, *letter, arguments + (letter[1] - '0'), text, sizeof(text));
		if (path && text[0] && !path[0])
			snprintf(path, size, "%s", text);
		if (directory && is_below(text, directory)) {
			if (path)
				snprintf(path, size, "%s", text);
			return true;
		}
	}
	return !directory;
}
