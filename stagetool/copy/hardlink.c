#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "copy/group.h"

static struct group_name *group_name_new(const struct copy_entry *entry)
{
	struct group_name *name = calloc(1, sizeof(*name));

	if (!name)
		return NULL;
	name->entry = *entry;
	if (copy_entry_own(&name->entry)) {
		free(name);
		return NULL;
	}
	return name;
}

static void group_name_free(struct group_name *name, unsigned worker)
{
	copy_entry_disown(&name->entry, worker);
	free(name);
}

/* A name's turn again, once the first one is through. */
static void group_wait_run(struct pool_task *task, unsigned worker)
{
	struct group_name *name = (struct group_name *)task;
	struct copy *copy = name->entry.copy;

	copy_worker_get(copy, worker);
	if (copy_group_claim(&name->entry, true, worker) == COPY_CLAIM_LEAD) {
		if (S_ISREG(name->entry.st.st_mode))
			copy_file_lead(&name->entry, worker);
		else
			copy_other_lead(&name->entry, worker);
	}
	group_name_free(name, worker);
}

/* What becomes of a claim, decided under the lock. */
enum group_turn { TURN_LEAD, TURN_WAIT, TURN_LINK };

/* *dir and *name: a place to which no link can be made any more (NULL: none); then where to link
 * to. */
static enum group_turn group_turn(struct copy_group *group, const struct copy_entry *entry,
	struct copy_dir **dir, char **name)
{
	struct group_name *waiting;

	if (group->state == GROUP_READY &&
		!(*name && *dir == group->dir && !strcmp(*name, group->name))) {
		*name = strdup(group->name);
		if (!*name)
			return TURN_LEAD;
		*dir = group->dir;
		copy_dir_ref(*dir);
		return TURN_LINK;
	}
	if (group->state == GROUP_COPYING) {
		waiting = group_name_new(entry);
		if (!waiting)
			return TURN_LEAD; /* a copy of its own is better than none */
		waiting->task.run = group_wait_run;
		waiting->next = group->waiting;
		group->waiting = waiting;
		return TURN_WAIT;
	}
	group->state = GROUP_COPYING;
	return TURN_LEAD;
}

/* The name is through. sent: it is at the destination and its outcome is to be told. */
static void group_through(struct copy_entry *entry, bool sent)
{
	struct copy *copy = entry->copy;
	struct links_file *file = links_lock(copy->links, &entry->st, 0);
	struct copy_group *group = file ? file->data : NULL;

	if (!group) {
		if (file)
			links_unlock(copy->links, file);
		return;
	}
	group->busy--;
	if (sent && copy->hooks.outcome)
		group_keep(group, entry);
	group_unlock(copy, file);
}

/* Makes entry's name a link to dir/name. -EMLINK and the like: it can not be. */
static int group_link(struct copy_entry *entry, struct copy_dir *dir, const char *name,
	struct publish_result *result, unsigned worker, struct error *err)
{
	struct copy *copy = entry->copy;
	int from = handle_pin(&dir->handle, err);
	int fd = from < 0 ? from : copy_dir_pin(entry->dir, worker, err);
	int rc = fd;

	if (fd >= 0) {
		struct publish_request request = { fd, entry->dir->place.dev, NULL, entry->dst_name,
			&entry->expect, copy->options.conflict, copy->options.conflict_suffix, 0 };

		rc = publish_link(copy->publish, from, name, &request, result, err);
		if (rc == -ENOSPC || rc == -EDQUOT)
			copy_no_space(copy, fd, true, err);
		copy_dir_unpin(entry->dir);
	}
	if (from >= 0)
		handle_unpin(&dir->handle);
	return rc;
}

static bool group_must_copy(int code)
{
	return code == -EMLINK || code == -EXDEV || code == -EPERM || code == -EOPNOTSUPP ||
	       code == -ENOENT || code == -ESTALE || code == -EACCES;
}

static void group_linked(struct copy_entry *entry, const struct publish_result *result,
	const struct error *err, unsigned worker)
{
	atomic_store_explicit(&entry->dir->touched, true, memory_order_relaxed);
	if (result->fate == PUBLISH_DONE)
		copy_entry_count(entry, COPY_DONE, worker);
	else
		copy_entry_tell(entry, COPY_CONFLICT, NULL, err, worker);
	group_through(entry, result->fate == PUBLISH_DONE);
}

static void group_warn(struct copy_entry *entry, const struct error *why, unsigned worker)
{
	struct error err = ERROR_INIT;

	error_set(&err, why->code, "not a hard link but a copy of its own: %s", why->text);
	copy_entry_tell(entry, COPY_ATTRIBUTE, NULL, &err, worker);
}

/* One attempt to make entry a link to dir/name (both are let go of). Whether it is through; else
 * *turn is what comes next, with a new dir and name for TURN_LINK. */
static bool group_try_link(struct copy_entry *entry, struct copy_dir **dir, char **name,
	enum group_turn *turn, unsigned worker)
{
	struct copy_dir *old_dir = *dir;
	char *old_name = *name;
	struct publish_result result;
	struct error err = ERROR_INIT;
	int rc = group_link(entry, old_dir, old_name, &result, worker, &err);
	bool through = rc >= 0 || !group_must_copy(rc);

	if (rc >= 0) {
		group_linked(entry, &result, &err, worker);
	} else if (through) {
		copy_entry_fail(entry, false, &err, worker);
		group_through(entry, false);
	} else {
		struct links_file *file = links_lock(entry->copy->links, &entry->st, 0);

		*turn = file && file->data ? group_turn(file->data, entry, dir, name) : TURN_LEAD;
		if (file)
			links_unlock(entry->copy->links, file);
		if (*turn == TURN_LEAD)
			group_warn(entry, &err, worker);
	}
	free(old_name);
	copy_dir_unref(old_dir);
	return through;
}

enum copy_claim copy_group_claim(struct copy_entry *entry, bool again, unsigned worker)
{
	struct links *links = entry->copy->links;
	struct links_file *file = links_lock(links, &entry->st, again ? 0 : 1);
	struct copy_group *group = file ? group_of(file) : NULL;
	enum group_turn turn = TURN_LEAD;
	struct copy_dir *dir = NULL;
	char *name = NULL;

	if (group) {
		if (!again)
			group->busy++;
		turn = group_turn(group, entry, &dir, &name);
	}
	if (file)
		links_unlock(links, file);
	while (turn == TURN_LINK)
		if (group_try_link(entry, &dir, &name, &turn, worker))
			return COPY_CLAIM_THROUGH;
	if (turn == TURN_LEAD && entry->equal) {
		copy_entry_tell(entry, COPY_UNCHANGED, NULL, NULL, worker);
		copy_group_end(entry, entry->dst_name, false);
		return COPY_CLAIM_THROUGH;
	}
	return turn == TURN_LEAD ? COPY_CLAIM_LEAD : COPY_CLAIM_THROUGH;
}

/* The names that waited have their turn: as links, or with one of them copied. */
static void group_wake(struct copy *copy, struct group_name *waiting)
{
	while (waiting) {
		struct group_name *next = waiting->next;

		pool_push(copy->pool, &waiting->task);
		waiting = next;
	}
}

void copy_group_end(struct copy_entry *entry, const char *dst_name, bool sent)
{
	struct copy *copy = entry->copy;
	struct links_file *file = links_lock(copy->links, &entry->st, 0);
	struct copy_group *group = file ? file->data : NULL, *before = NULL;
	struct group_name *waiting;

	if (!group) {
		/* There was no memory for it. */
		if (file)
			links_unlock(copy->links, file);
		return;
	}
	waiting = group->waiting;
	group->waiting = NULL;
	if (dst_name) {
		group_move(group, entry->dir, dst_name, &before);
		group->sent = sent;
	}
	group->state = group->name ? GROUP_READY : GROUP_NONE;
	group->busy--;
	group_unlock(copy, file);
	group_free(before);
	group_wake(copy, waiting);
}

bool copy_group_pass(struct copy_entry *entry, const struct stat *dst)
{
	struct links_file *file = links_lock(entry->copy->links, &entry->st, 0);
	struct copy_group *group;

	if (!file)
		return true;
	group = file->data;
	if (dst && group && group->state != GROUP_NONE && entry->expect.kind == COPY_EXPECT_ANY &&
		(group->ino != dst->st_ino || group->dev != dst->st_dev)) {
		links_unlock(entry->copy->links, file);
		entry->equal = true;
		return false;
	}
	file->seen++;
	if (dst && file->seen < file->names)
		group = group_of(file);
	if (dst && group && group->state == GROUP_NONE)
		group_place(group, entry, dst);
	group_unlock(entry->copy, file);
	return true;
}

void copy_group_flush(struct copy *copy)
{
	struct links_file *file;

	while ((file = links_take(copy->links))) {
		group_free(file->data);
		free(file);
	}
}
