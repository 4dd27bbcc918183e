#include "stage/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"

/* A directory that waits: to be entered, or, entered, to be left. */
struct waiting {
	char *path;
	uint64_t parent;
	struct manifest_entry entry;
	bool entered;
};

struct walk {
	struct manifest *manifest;
	const struct records_ops *ops;
	void *ctx;
	const char *root_name;
	struct waiting *stack;
	size_t count, room;
};

/* Takes path. */
static int push(struct walk *walk, char *path, uint64_t parent, const struct manifest_entry *entry,
	struct error *err)
{
	if (path && walk->count == walk->room) {
		size_t room = walk->room ? 2 * walk->room : 16;
		struct waiting *stack = realloc(walk->stack, room * sizeof(*stack));

		if (stack) {
			walk->stack = stack;
			walk->room = room;
		}
	}
	if (!path || walk->count == walk->room) {
		free(path);
		return error_sys(err, -ENOMEM, "manifest");
	}
	walk->stack[walk->count++] = (struct waiting){ path, parent, *entry, false };
	return 0;
}

static void pop(struct walk *walk)
{
	free(walk->stack[--walk->count].path);
}

static int call(const struct walk *walk,
	int (*callback)(void *ctx, const struct record *record, struct error *err),
	const char *path, uint64_t parent, const struct manifest_entry *entry, struct error *err)
{
	struct record record = { path, parent, *path ? path_base(path) : walk->root_name, entry };

	return callback ? callback(walk->ctx, &record, err) : 0;
}

/* A directory that is being listed. */
struct listing {
	struct walk *walk;
	const char *path;
	uint64_t id;
};

static int found(void *ctx, const char *name, const struct manifest_entry *entry, struct error *err)
{
	struct listing *listing = ctx;
	struct walk *walk = listing->walk;
	char *path;
	int rc;

	/* A directory is older than what is in it; else a walk might never end. */
	if (entry->type == S_IFDIR && entry->dir <= listing->id)
		return error_set(err, -EBADMSG, "manifest: damaged (a directory inside itself)");
	path = path_join(listing->path, name);
	if (!path)
		return error_sys(err, -ENOMEM, "manifest");
	if (entry->type == S_IFDIR)
		return push(walk, path, listing->id, entry, err);
	rc = call(walk, walk->ops->file, path, listing->id, entry, err);
	free(path);
	return rc;
}

static int step(struct walk *walk, struct error *err)
{
	/* What is found in it lands on the stack, which may move. */
	struct waiting dir = walk->stack[walk->count - 1];
	struct listing listing = { walk, dir.path, dir.entry.dir };
	int rc;

	if (dir.entered) {
		rc = call(walk, walk->ops->leave, dir.path, dir.parent, &dir.entry, err);
		pop(walk);
		return rc;
	}
	walk->stack[walk->count - 1].entered = true;
	rc = call(walk, walk->ops->enter, dir.path, dir.parent, &dir.entry, err);
	if (rc == 1)
		pop(walk);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return manifest_each(walk->manifest, 0, dir.entry.dir, found, &listing, err);
}

static int begin(struct walk *walk, const char *path, struct error *err)
{
	struct manifest_entry entry, parent = { .type = S_IFDIR };
	autofree char *dir = NULL;
	int rc = inside_split(path, &dir) ? 0 : error_sys(err, -ENOMEM, "manifest");

	if (rc == 0)
		rc = manifest_find(walk->manifest, 0, path, &entry, err);
	if (rc == 0)
		rc = manifest_find(walk->manifest, 0, dir, &parent, err);
	if (rc < 0)
		return rc;
	walk->root_name = strcmp(path, ".") == 0 ? "" : path_base(path);
	if (entry.type != S_IFDIR)
		return call(walk, walk->ops->file, "", parent.dir, &entry, err);
	return push(walk, strdup(""), parent.dir, &entry, err);
}

int records_walk(struct manifest *manifest, const char *path, const struct records_ops *ops,
	void *ctx, struct error *err)
{
	struct walk walk = { manifest, ops, ctx, "", NULL, 0, 0 };
	int rc = begin(&walk, path, err);

	while (walk.count && rc == 0)
		rc = step(&walk, err);
	while (walk.count)
		pop(&walk);
	free(walk.stack);
	return rc;
}
