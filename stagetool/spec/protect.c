#include "spec/protect.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const char *const system_dirs[] = { "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",
	"/lib64", "/libx32", "/opt", "/proc", "/root", "/run", "/sbin", "/snap", "/sys", "/usr",
	"/var" };

/* The same path, or something in dir. */
static bool protect_is_in(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	return !strncmp(path, dir, length) && (!path[length] || path[length] == '/');
}

static int protect_check_dir(const char *path, const char *dir, struct error *err)
{
	if (protect_is_in(path, dir))
		return error_set(err, -EPERM, "%s is protected: nothing can be shown in %s", path, dir);
	if (!path[1] || protect_is_in(dir, path))
		return error_set(
			err, -EPERM, "%s is protected: it would hide %s", path, dir);
	return 0;
}

int protect_check(const char *path, const struct conf *conf, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(system_dirs) / sizeof(system_dirs[0]) && !rc; i++)
		rc = protect_check_dir(path, system_dirs[i], err);
	if (!conf || rc)
		return rc;
	for (size_t i = 0; i < conf->n_protected && !rc; i++)
		rc = protect_check_dir(path, conf->protected[i], err);
	for (size_t i = 0; i < conf->n_tiers && !rc; i++)
		rc = protect_check_dir(path, conf->tiers[i].path, err);
	return rc ? rc : protect_check_dir(path, conf->state_dir, err);
}
