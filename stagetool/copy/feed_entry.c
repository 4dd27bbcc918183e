#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copy/feed_internal.h"

/* Of an entry that has no place: its path stands for its name. */
static void entry_tell(struct copy_feed *feed, const struct copy_fed *fed,
	enum copy_outcome outcome, const struct error *err)
{
	struct copy_entry entry = { .copy = feed->copy, .dir = feed->dirs[0]->dir,
		.src_name = fed->path, .dst_name = fed->path };

	entry.st = fed->st;
	copy_entry_tell(&entry, outcome, NULL, err, COPY_FEEDER);
}

void copy_feed_fail(struct copy_feed *feed, const struct copy_fed *fed, const struct error *err)
{
	entry_tell(feed, fed, COPY_FAILED, err);
}

void copy_feed_lacks(struct copy_feed *feed, const struct copy_fed *fed, const struct error *err)
{
	entry_tell(feed, fed, COPY_ATTRIBUTE, err);
}

static const char *special_kind(mode_t mode)
{
	if (S_ISSOCK(mode))
		return "a socket is not unpacked";
	if (S_ISBLK(mode) || S_ISCHR(mode))
		return "a device is not unpacked";
	return "an entry of an unknown kind is not unpacked";
}

static void entry_special(struct copy_feed *feed, const struct copy_fed *fed)
{
	struct error err = ERROR_INIT;

	error_set(&err, -EOPNOTSUPP, "%s", special_kind(fed->st.st_mode));
	entry_tell(feed, fed, COPY_SPECIAL, &err);
}

static int entry_directory(struct copy_feed *feed, const struct copy_fed *fed,
	struct feed_place *place, struct error *err)
{
	struct feed_dir *parent = *place->name ? place->dir : NULL, *dir;
	struct feed_item *item;
	size_t length = strlen(place->name);
	int rc = 0;

	dir = feed_dir_find(feed, parent, place->name, length);
	if (dir)
		rc = feed_dir_describe(feed, dir, fed);
	else
		dir = feed_dir_get(feed, parent, place->name, length, fed);
	if (rc || !dir)
		return error_sys(err, -ENOMEM, "unpacking");
	if (dir->left || !dir->dir->send)
		return 0;
	item = feed_item_new(feed, FEED_DIRECTORY, place, fed);
	if (!item)
		return error_sys(err, -ENOMEM, "unpacking");
	feed_item_link(feed, item, dir->dir, "");
	feed_item_done(feed);
	return 0;
}

static int entry_other(struct copy_feed *feed, const struct copy_fed *fed,
	const struct feed_place *place, struct error *err)
{
	if (place->dir->left) {
		feed_note_failed(feed, place->hash);
		return 0;
	}
	if (feed_set_add(&feed->seen, place->hash) ||
		!feed_item_new(feed, FEED_OTHER, place, fed))
		return error_sys(err, -ENOMEM, "unpacking");
	feed_item_done(feed);
	return 0;
}

void copy_feed_entry(struct copy_feed *feed, const struct copy_fed *fed)
{
	mode_t mode = fed->st.st_mode;
	bool is_dir = S_ISDIR(mode);
	struct feed_place place = { .name = NULL };
	struct error err = ERROR_INIT;
	int rc;

	if (!is_dir && !S_ISLNK(mode) && !S_ISFIFO(mode)) {
		entry_special(feed, fed);
		return;
	}
	rc = feed_place(feed, fed->path, is_dir, &place, &err);
	if (!rc)
		rc = is_dir ? entry_directory(feed, fed, &place, &err) :
			      entry_other(feed, fed, &place, &err);
	if (rc)
		copy_feed_fail(feed, fed, &err);
	feed_place_free(&place);
}
