#include "fuzz/fuzz.h"

#include "tree/remove.h"

#include <fcntl.h>
#include <unistd.h>

static char path[4096];

static void scratch_remove(void)
{
	remove_tree(AT_FDCWD, path, NULL);
}

int fuzz_scratch(void)
{
	const char *above = getenv("TMPDIR");
	int length = snprintf(path, sizeof(path), "%s/fuzz.XXXXXX", above ? above : "/tmp");
	int fd;

	fuzz_require((size_t)length < sizeof(path) && mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fuzz_require(fd >= 0 && !atexit(scratch_remove));
	return fd;
}
