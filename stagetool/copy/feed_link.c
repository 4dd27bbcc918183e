#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/retry.h"
#include "copy/feed_internal.h"

static void link_tell(struct copy_feed *feed, struct copy_entry *entry, int dirfd,
	struct copy_dir *olddir, const char *oldname, unsigned worker)
{
	struct stat dst;
	bool have = !fstatat(dirfd, entry->dst_name, &dst, AT_SYMLINK_NOFOLLOW);
	int rc = -ENOENT;

	atomic_store_explicit(&entry->dir->touched, true, memory_order_relaxed);
	copy_entry_count(entry, COPY_DONE, worker);
	if (have) {
		entry->st.st_mode = dst.st_mode;
		pthread_mutex_lock(&feed->lock);
		rc = feed_group_add(feed, entry, &dst, olddir, oldname);
		pthread_mutex_unlock(&feed->lock);
	}
	if (rc)
		copy_entry_call(entry, COPY_DONE, have ? &dst : NULL, NULL);
}

static int link_make(struct copy_feed *feed, struct copy_entry *entry, int dirfd,
	struct copy_dir *olddir, const char *oldname, unsigned worker, struct error *err)
{
	const struct copy_options *options = &feed->copy->options;
	struct publish_request request = { dirfd, entry->dir->place.dev, NULL, entry->dst_name,
		&entry->expect, options->conflict, options->conflict_suffix, 0 };
	struct publish_result result = { .fate = PUBLISH_DONE };
	unsigned attempt = 0;
	int oldfd = copy_dir_pin(olddir, worker, err), rc;

	if (oldfd < 0)
		return oldfd;
	do
		rc = publish_link(feed->copy->publish, oldfd, oldname, &request, &result, err);
	while (rc < 0 && retry_again(rc, &attempt));
	copy_dir_unpin(olddir);
	if (rc == 0 && result.fate != PUBLISH_DONE)
		copy_entry_tell(entry, COPY_CONFLICT, NULL, err, worker);
	else if (rc == 0)
		link_tell(feed, entry, dirfd, olddir, oldname, worker);
	return rc;
}

void feed_link_run(struct copy_feed *feed, struct copy_entry *entry, uint64_t hash, bool again,
	struct copy_dir *olddir, const char *oldname, unsigned worker)
{
	struct error err = ERROR_INIT;
	struct stat old;
	int dirfd, rc;

	if (!feed_wanted(feed, entry, hash, again,
		    feed_look(olddir, oldname, true, &old) ? &old : NULL, worker))
		return;
	rc = dirfd = copy_dir_pin(entry->dir, worker, &err);
	if (dirfd >= 0) {
		rc = link_make(feed, entry, dirfd, olddir, oldname, worker, &err);
		if (rc == -ENOSPC || rc == -EDQUOT)
			copy_no_space(feed->copy, dirfd, true, &err);
		copy_dir_unpin(entry->dir);
	}
	if (rc < 0)
		copy_entry_fail(entry, false, &err, worker);
}

/* The file that came as oldpath: its directory, name and hash. */
static int link_find(struct copy_feed *feed, const char *oldpath, struct feed_place *old,
	struct error *err)
{
	bool failed;
	int rc = feed_place(feed, oldpath, true, old, err);

	if (rc)
		return error_prefix(err, rc, "a link to %s", oldpath);
	pthread_mutex_lock(&feed->lock);
	failed = feed_set_has(&feed->failed, old->hash);
	pthread_mutex_unlock(&feed->lock);
	if (!old->again || failed || old->dir->left)
		return error_set(err, -ENOENT, "a link to %s, which was not unpacked", oldpath);
	return 0;
}

static int link_send(struct copy_feed *feed, const struct copy_fed *fed, const struct feed_place *to,
	const struct feed_place *old, struct error *err)
{
	struct feed_item *item;

	if (feed_set_add(&feed->seen, to->hash))
		return error_sys(err, -ENOMEM, "unpacking");
	item = feed_item_new(feed, FEED_LINK, to, fed);
	if (!item)
		return error_sys(err, -ENOMEM, "unpacking");
	feed_item_link(feed, item, old->dir->dir, old->name);
	feed_item_done(feed);
	return 0;
}

void copy_feed_link(struct copy_feed *feed, const struct copy_fed *fed, const char *oldpath)
{
	struct feed_place to = { .name = NULL }, old = { .name = NULL };
	struct error err = ERROR_INIT;
	int rc = feed_place(feed, fed->path, false, &to, &err);

	if (!rc && to.dir->left) {
		feed_note_failed(feed, to.hash);
	} else {
		if (!rc)
			rc = link_find(feed, oldpath, &old, &err);
		if (!rc && to.hash != old.hash)
			rc = link_send(feed, fed, &to, &old, &err);
		if (rc)
			copy_feed_fail(feed, fed, &err);
	}
	feed_place_free(&to);
	feed_place_free(&old);
}

void copy_feed_relink(struct copy_feed *feed, const char *path, const char *oldpath)
{
	struct feed_place from = { .name = NULL }, old = { .name = NULL };
	struct error err = ERROR_INIT;
	struct copy_fed fed = { .path = oldpath };
	int rc;

	feed_drain(feed);
	rc = link_find(feed, path, &from, &err);
	if (!rc)
		rc = link_find(feed, oldpath, &old, &err);
	fed.st.st_mode = S_IFREG;
	if (!rc) {
		const struct feed_name *names = feed_group_names(feed, old.dir->dir, old.name);

		rc = link_send(feed, &fed, &old, &from, &err);
		for (; names && !rc; names = names->next) {
			struct feed_dir at = { .dir = names->dir };
			struct feed_place to = { &at, (char *)names->name, 0, true };

			if (names->dir == old.dir->dir && !strcmp(names->name, old.name))
				continue;
			if (names->dir == from.dir->dir && !strcmp(names->name, from.name))
				continue;
			rc = link_send(feed, &fed, &to, &from, &err);
		}
	}
	if (rc)
		copy_feed_fail(feed, &fed, &err);
	feed_drain(feed);
	feed_place_free(&from);
	feed_place_free(&old);
}
