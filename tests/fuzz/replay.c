/*
 * Stands in for libFuzzer where the compiler has none: runs the inputs that it is given (files, and
 * the files of directories), else the corpus of the target. Prints TAP, and before each input its
 * name: the last one is what a process that died was at.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <sys/stat.h>

static unsigned count;

static void run_file(int dirfd, const char *name)
{
	autoclose int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	autofree uint8_t *data = NULL;
	struct stat st;

	fuzz_require(fd >= 0 && !fstat(fd, &st));
	data = malloc((size_t)st.st_size + 1);
	fuzz_require(data && read(fd, data, (size_t)st.st_size) == st.st_size);
	/* of its own size, so that reading behind it is seen */
	data = realloc(data, (size_t)st.st_size ? (size_t)st.st_size : 1);
	fuzz_require(data);
	printf("# %s\n", name);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	count++;
}

static void run(const char *path)
{
	autodir DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		run_file(AT_FDCWD, path);
	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			run_file(dirfd(dir), entry->d_name);
}

int main(int argc, char **argv)
{
	puts("1..1");
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	if (argc == 1)
		run(CORPUS "/" TARGET);
	printf("%s 1 - corpus of %s: %u inputs\n", count ? "ok" : "not ok", TARGET, count);
	return count ? 0 : 1;
}
