#include "stage/manifest_private.h"

#include <errno.h>
#include <string.h>

uint64_t manifest_new_dir(struct manifest *manifest)
{
	return atomic_fetch_add(&manifest->next_dir, 1);
}

/* The next component of *path that is not ".", in name; 0 at the end. */
static int next_component(const char **path, char name[MANIFEST_NAME_MAX + 1], struct error *err)
{
	size_t size;

	do {
		*path += strspn(*path, "/");
		size = strcspn(*path, "/");
		if (size > MANIFEST_NAME_MAX)
			return error_set(err, -ENAMETOOLONG, "manifest: a name of %zu bytes", size);
		memcpy(name, *path, size);
		name[size] = '\0';
		*path += size;
	} while (strcmp(name, ".") == 0);
	return size > 0;
}

int manifest_find(struct manifest *manifest, uint32_t tree, const char *path,
	struct manifest_entry *entry, struct error *err)
{
	struct manifest_entry found = { .type = S_IFDIR };
	char name[MANIFEST_NAME_MAX + 1];
	int rc;

	while ((rc = next_component(&path, name, err)) > 0) {
		if (found.type != S_IFDIR)
			return -ENOENT;
		rc = manifest_get(manifest, tree, found.dir, name, &found, err);
		if (rc < 0)
			return rc;
	}
	if (rc == 0)
		*entry = found;
	return rc;
}

/* The directory name of dir, made anew where it is not there or was no directory. */
static int make_dir(struct manifest *manifest, uint32_t tree, uint64_t *dir, const char *name,
	struct error *err)
{
	struct manifest_entry entry;
	int rc = manifest_get(manifest, tree, *dir, name, &entry, err);

	if (rc == -ENOENT || (rc == 0 && entry.type != S_IFDIR)) {
		entry = (struct manifest_entry){
			.type = S_IFDIR, .mode = MANIFEST_MODE_UNKNOWN, .run = manifest->run
		};
		entry.dir = manifest_new_dir(manifest);
		rc = manifest_put(manifest, tree, *dir, name, &entry, err);
	}
	if (rc == 0)
		*dir = entry.dir;
	return rc;
}

int manifest_make_dirs(struct manifest *manifest, uint32_t tree, const char *path, uint64_t *dir,
	struct error *err)
{
	char name[MANIFEST_NAME_MAX + 1];
	int rc;

	*dir = 0;
	while ((rc = next_component(&path, name, err)) > 0) {
		rc = make_dir(manifest, tree, dir, name, err);
		if (rc < 0)
			return rc;
	}
	return rc;
}
