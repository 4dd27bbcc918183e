#include "archive/pack_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

/* Enough to keep a slow server busy; on a fast one they cost next to nothing. */
#define PACK_READERS 32

const struct pack_format pack_formats[] = {
	{ "tar.zst", false, &encoder_zstd },
	{ "tar.gz", false, &encoder_gzip },
	{ "tar", false, NULL },
	{ "zip", true, NULL },
	{ NULL, false, NULL },
};

static bool ends(const char *name, const char *format)
{
	size_t length = strlen(name), size = strlen(format);

	if (length < size || strcmp(name + length - size, format))
		return false;
	return length == size || name[length - size - 1] == '.';
}

const struct pack_format *pack_format_find(const char *name)
{
	for (const struct pack_format *format = pack_formats; format->name; format++)
		if (ends(name, format->name))
			return format;
	if (ends(name, "tzst"))
		return pack_format_find("tar.zst");
	return ends(name, "tgz") ? pack_format_find("tar.gz") : NULL;
}

bool pack_stopped(const struct pack *pack)
{
	return pack->options.cancel &&
	       atomic_load_explicit(pack->options.cancel, memory_order_relaxed);
}

char *pack_entry_path(const struct pack_entry *entry)
{
	return path_join(entry->dir->path, entry->name);
}

void pack_tell_path(struct pack *pack, const char *path, enum copy_outcome outcome,
	const struct error *err)
{
	switch (outcome) {
	case COPY_VANISHED:
		pack->vanished++;
		break;
	case COPY_CHANGED:
		pack->changed++;
		break;
	case COPY_SPECIAL:
		pack->special++;
		break;
	case COPY_ATTRIBUTE:
		pack->attributes++;
		break;
	case COPY_DROPPED:
		pack->dropped++;
		break;
	default:
		pack->failed++;
	}
	if (pack->options.problem)
		pack->options.problem(pack->options.ctx, path, outcome, err);
}

void pack_tell(struct pack *pack, const struct pack_entry *entry, enum copy_outcome outcome,
	const struct error *err)
{
	autofree char *path = pack_entry_path(entry);

	pack_tell_path(pack, path ? path : entry->name, outcome, err);
}

void pack_counts(const struct pack *pack, struct copy_counts *counts)
{
	*counts = (struct copy_counts){
		.files = pack->files,
		.directories = pack->directories,
		.symlinks = pack->symlinks,
		.others = pack->others,
		.bytes = pack->bytes,
		.failed = pack->failed,
		.vanished = pack->vanished,
		.changed = pack->changed,
		.special = pack->special,
		.attributes = pack->attributes,
		.dropped = pack->dropped,
	};
}

static int pack_prepare(struct pack *pack, int rootfd, int out, struct error *err)
{
	const struct meta_options meta = { .keep_special_bits = true };
	unsigned threads = pack->options.threads, limit = handle_limit();
	int rc = library_load(err);

	if (rc)
		return rc;
	pack->locale = newlocale(LC_ALL_MASK, "C", NULL);
	pack->piece = malloc(PACK_PIECE);
	pack->links = links_new();
	if (!pack->locale || !pack->piece || !pack->links)
		return error_sys(err, -ENOMEM, "packing");
	handle_cache_init(&pack->cache, limit > 128 ? limit / 2 : 16);
	rc = meta_new(&meta, &pack->meta, err);
	if (!rc)
		rc = sink_open(&pack->sink, out, pack->options.format->encoder,
			threads ? threads : (unsigned)sysconf(_SC_NPROCESSORS_ONLN), err);
	if (!rc)
		rc = pool_start(threads ? threads : PACK_READERS, &pack->pool, err);
	return rc ? rc : pack_walk_begin(pack, rootfd, err);
}

int pack_new(int rootfd, int out, const struct pack_options *options, struct pack **pack,
	struct error *err)
{
	struct pack *new = calloc(1, sizeof(*new));
	int rc;

	if (!new)
		return error_sys(err, -ENOMEM, "packing");
	new->options = *options;
	pthread_mutex_init(&new->lock, NULL);
	pthread_cond_init(&new->change, NULL);
	rc = pack_prepare(new, rootfd, out, err);
	if (rc) {
		pack_free(new);
		return rc;
	}
	*pack = new;
	return 0;
}

void pack_free(struct pack *pack)
{
	struct links_file *file;

	if (!pack)
		return;
	pool_free(pack->pool);
	for (; pack->first < pack->next; pack->first++)
		pack_entry_free(pack->ring[pack->first % PACK_AHEAD]);
	pack_walk_end(pack);
	while (pack->links && (file = links_take(pack->links))) {
		free(file->data);
		free(file);
	}
	links_free(pack->links);
	meta_free(pack->meta);
	sink_close(&pack->sink);
	if (pack->locale)
		freelocale(pack->locale);
	handle_cache_destroy(&pack->cache);
	pthread_cond_destroy(&pack->change);
	pthread_mutex_destroy(&pack->lock);
	free(pack->piece);
	free(pack);
}

/* Sends as many entries to be read as may wait. Whether there are more. */
static int pack_read_ahead(struct pack *pack, bool *more, struct error *err)
{
	while (*more && pack->next - pack->first < PACK_AHEAD) {
		struct error failed = ERROR_INIT;
		struct pack_entry *entry = pack_walk_next(pack, &failed);

		if (failed.code) {
			*err = failed;
			return failed.code;
		}
		*more = entry;
		if (!entry)
			break;
		pack->ring[pack->next++ % PACK_AHEAD] = entry;
		entry->task.run = pack_read_run;
		pool_push_bottom(pack->pool, &entry->task);
	}
	return 0;
}

static struct pack_entry *pack_take(struct pack *pack)
{
	struct pack_entry *entry = pack->ring[pack->first % PACK_AHEAD];

	pthread_mutex_lock(&pack->lock);
	while (!entry->done)
		pthread_cond_wait(&pack->change, &pack->lock);
	pthread_mutex_unlock(&pack->lock);
	pack->first++;
	return entry;
}

static int pack_entries(struct pack *pack, struct error *err)
{
	bool more = true;
	int rc = 0;

	while (!rc) {
		struct pack_entry *entry;

		if (pack_stopped(pack))
			return error_sys(err, -ECANCELED, "stopped");
		rc = pack_read_ahead(pack, &more, err);
		if (rc || pack->first == pack->next)
			break;
		entry = pack_take(pack);
		rc = pack_write_entry(pack, entry, err);
		pack_entry_free(entry);
	}
	return rc;
}

/* What the format has no place for. */
static void pack_tell_lost(struct pack *pack)
{
	struct error err = ERROR_INIT;

	if (pack->lost_links) {
		error_set(&err, -EOPNOTSUPP,
			"%s can not carry hard links: %llu names are files of their own in it",
			pack->options.format->name, (unsigned long long)pack->lost_links);
		pack_tell_path(pack, "", COPY_DROPPED, &err);
	}
	if (pack->lost_values) {
		error_set(&err, -EOPNOTSUPP,
			"%s can not carry extended attributes and ACLs: %llu entries are without theirs",
			pack->options.format->name, (unsigned long long)pack->lost_values);
		pack_tell_path(pack, "", COPY_DROPPED, &err);
	}
}

int pack_run(struct pack *pack, struct error *err)
{
	int rc;

	/* Names are bytes: in another locale libarchive would convert them. */
	pack->before = uselocale(pack->locale);
	rc = pack_write_begin(pack, err);
	if (!rc)
		rc = pack_entries(pack, err);
	if (!rc)
		rc = pack_write_end(pack, err);
	else if (pack->archive)
		archive_write_free(pack->archive);
	if (pack->entry)
		archive_entry_free(pack->entry);
	uselocale(pack->before);
	if (!rc)
		pack_tell_lost(pack);
	return rc;
}
