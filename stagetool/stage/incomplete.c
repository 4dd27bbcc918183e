#include "stage/transfer_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/retry.h"

struct transfer_note {
	struct transfer_note *next;
	char path[];
};

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
	pthread_mutex_lock(&item->transfer->lock);
	note->next = item->notes;
	item->notes = note;
	pthread_mutex_unlock(&item->transfer->lock);
}

static struct transfer_note *take(struct transfer_item *item, const char *path)
{
	struct transfer_note **at = &item->notes, *note;

	while (*at && strcmp((*at)->path, path) != 0)
		at = &(*at)->next;
	note = *at;
	if (note)
		*at = note->next;
	return note;
}

bool transfer_lacks_attribute(struct transfer_item *item, const struct copy_item *entry)
{
	struct transfer_note *note = NULL;
	autofree char *path = NULL;
	bool lacks;

	pthread_mutex_lock(&item->transfer->lock);
	path = item->notes ? copy_item_path(entry) : NULL;
	if (path)
		note = take(item, path);
	pthread_mutex_unlock(&item->transfer->lock);
	lacks = note != NULL;
	free(note);
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
