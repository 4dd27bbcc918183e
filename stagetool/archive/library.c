#define LIBRARY_WITHOUT_NAMES
#include "archive/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "config.h"

struct library library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct error failed;

static const struct {
	const char *name;
	void **place;
} functions[] = {
#define LIBRARY_ROW(name) { #name, (void **)&library.name##_ },
	LIBRARY_FUNCTIONS(LIBRARY_ROW)
#undef LIBRARY_ROW
};

/* It stays: there is no good moment to let go of it. */
static void load(void)
{
	void *handle = dlopen(LIBARCHIVE_SONAME, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		error_set(&failed, -ENOENT, "libarchive can not be loaded: %s", dlerror());
		return;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !failed.code; i++) {
		*functions[i].place = dlsym(handle, functions[i].name);
		if (!*functions[i].place)
			error_set(&failed, -ENOENT, "libarchive is too old: it has no %s",
				functions[i].name);
	}
}

int library_load(struct error *err)
{
	pthread_once(&once, load);
	return failed.code ? error_set(err, failed.code, "%s", failed.text) : 0;
}
