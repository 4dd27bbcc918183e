/*
 * A pattern of FROM, over a small tree. What comes out is there, in order, and matches.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "tree/glob.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

static int tree = -1;

static void set_up(void)
{
	static const char *const names[] = { "a", "b.c", ".hidden", "[x]", "a*b", "\xff\xfe",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	char path[256];

	tree = fuzz_scratch();
	fuzz_require(!mkdirat(tree, "d", 0755) && !mkdirat(tree, "d/e", 0755));
	fuzz_require(!symlinkat("d", tree, "link") && !symlinkat("nowhere", tree, "d/dangling"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fuzz_require(!mkdirat(tree, names[i], 0755));
		snprintf(path, sizeof(path), "d/e/%s", names[i]);
		fuzz_require(!mkdirat(tree, path, 0755));
	}
}

static void check(const char *pattern, char **paths, size_t count)
{
	autofree char *clean = path_clean(pattern);
	struct stat st;

	fuzz_require(clean);
	for (size_t i = 0; i < count; i++) {
		autofree char *path = path_clean(paths[i]);

		fuzz_require(path && !fstatat(tree, path, &st, AT_SYMLINK_NOFOLLOW));
		fuzz_require(!i || strcmp(paths[i - 1], paths[i]) < 0);
		/* a '/' in brackets ends a component here, and does not for fnmatch */
		if (!strchr(clean, '['))
			fuzz_require(
				!fnmatch(clean, path, FNM_PATHNAME | FNM_PERIOD | FNM_NOESCAPE));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *pattern = fuzz_text(data, size);
	struct error err = ERROR_INIT;
	char **paths = NULL;
	size_t count = 0;

	if (tree < 0)
		set_up();
	if (*pattern == '/' || path_has_dotdot(pattern)) /* leads out of the tree */
		return 0;
	if (glob_expand(tree, pattern, &paths, &count, &err)) {
		fuzz_require(err.code < 0 && *err.text);
		return 0;
	}
	check(pattern, paths, count);
	glob_free(paths, count);
	return 0;
}
