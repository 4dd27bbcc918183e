#include "stage/transfer_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/retry.h"

/* A file of several names is told once for each of them, and may be told twice: it is known by its
 * inode, to the end of the item. */
struct transfer_note {
	struct transfer_note *next;
	dev_t dev;
	ino_t ino; /* 0: known by its path */
	char path[];
};

static bool is_linked(const struct copy_item *entry)
{
	return !S_ISDIR(entry->src->st_mode) && entry->src->st_nlink > 1;
}

/* Whether an attribute that could not be set can be another time: not one that is refused. */
static bool may_come(int code)
{
	return retry_is_transient(code) || code == -ENOSPC || code == -EDQUOT ||
	       code == -ENOMEM || code == -EROFS;
}

void transfer_note_attribute(
	struct transfer_item *item, const struct copy_item *entry, const struct error *err)
{
	autofree char *path = err && may_come(err->code) ? copy_item_path(entry) : NULL;
	size_t size = path ? strlen(path) + 1 : 0;
	struct transfer_note *note = path ? malloc(sizeof(*note) + size) : NULL;

	if (!note)
		return;
	memcpy(note->path, path, size);
	note->dev = entry->src->st_dev;
	note->ino = is_linked(entry) ? entry->src->st_ino : 0;
	pthread_mutex_lock(&item->transfer->lock);
	note->next = item->notes;
	item->notes = note;
	pthread_mutex_unlock(&item->transfer->lock);
}

static bool note_has_path(struct transfer_item *item, const char *path)
{
	struct transfer_note **at = &item->notes, *note;

	while (*at && ((*at)->ino || strcmp((*at)->path, path) != 0))
		at = &(*at)->next;
	note = *at;
	if (!note)
		return false;
	*at = note->next;
	free(note);
	return true;
}

static bool note_has_inode(const struct transfer_item *item, const struct stat *st)
{
	for (const struct transfer_note *note = item->notes; note; note = note->next) {
		if (note->ino == st->st_ino && note->dev == st->st_dev)
			return true;
	}
	return false;
}

bool transfer_lacks_attribute(struct transfer_item *item, const struct copy_item *entry)
{
	autofree char *path = NULL;
	bool lacks = false;

	pthread_mutex_lock(&item->transfer->lock);
	if (item->notes && is_linked(entry)) {
		lacks = note_has_inode(item, entry->src);
	} else if (item->notes) {
		path = copy_item_path(entry);
		lacks = path && note_has_path(item, path);
	}
	pthread_mutex_unlock(&item->transfer->lock);
	return lacks;
}

void transfer_forget_notes(struct transfer_item *item)
{
	while (item->notes) {
		struct transfer_note *next = item->notes->next;

		free(item->notes);
		item->notes = next;
	}
}
