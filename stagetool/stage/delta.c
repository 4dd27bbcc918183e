#include "stage/delta.h"

#include <string.h>

bool delta_equal(const struct stat *a, const struct stat *b)
{
	return (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT) && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_identity(const struct stat *st, const struct manifest_identity *identity)
{
	struct manifest_identity now;

	manifest_identity_from(st, &now);
	return manifest_identity_equal(&now, identity);
}

/* Of a directory: its size and times tell of its entries. */
static bool same_attributes(const struct stat *st, const struct manifest_entry *record)
{
	return record->mode == (st->st_mode & 07777) && record->uid == st->st_uid &&
	       record->gid == st->st_gid;
}

static bool same_type(const struct stat *st, const struct manifest_entry *record)
{
	return record && record->type == (st->st_mode & S_IFMT);
}

static enum delta_in delta_in_dir(
	const struct stat *src, const struct stat *dst, const struct manifest_entry *record)
{
	if (record && record->mode == MANIFEST_MODE_UNKNOWN)
		return DELTA_IN_BRING;
	if (!record || !same_attributes(dst, record) || is_identity(src, &record->shared))
		return DELTA_IN_KEEP;
	return DELTA_IN_BRING;
}

enum delta_in delta_in(const struct stat *src, const struct stat *dst,
	const struct manifest_entry *record, uint32_t pair)
{
	if (!dst)
		return DELTA_IN_BRING;
	if ((src->st_mode & S_IFMT) != (dst->st_mode & S_IFMT))
		return DELTA_IN_CONFLICT;
	if (!same_type(dst, record) || !record->pair)
		record = NULL;
	if (S_ISDIR(src->st_mode))
		return delta_in_dir(src, dst, record);
	if (!S_ISREG(src->st_mode) && !S_ISLNK(src->st_mode))
		return DELTA_IN_KEEP; /* one FIFO is as good as another */
	if (record && is_identity(dst, &record->local)) {
		if (is_identity(src, &record->shared) && record->mode != MANIFEST_MODE_UNKNOWN)
			return DELTA_IN_KEEP;
		return record->pair == pair ? DELTA_IN_REPLACE : DELTA_IN_CONFLICT;
	}
	if (!delta_equal(src, dst))
		return DELTA_IN_CONFLICT;
	/* A file that was staged and then touched stays changed: a stage-out decides about it. */
	return record ? DELTA_IN_KEEP : DELTA_IN_ADOPT;
}

void delta_expect(struct copy_expect *expect, const struct manifest_identity *identity)
{
	expect->kind = COPY_EXPECT_SAME;
	expect->identity.size = identity->size;
	expect->identity.ino = identity->ino;
	expect->identity.mtime.tv_sec = identity->mtime_sec;
	expect->identity.mtime.tv_nsec = identity->mtime_nsec;
	expect->identity.ctime.tv_sec = identity->ctime_sec;
	expect->identity.ctime.tv_nsec = identity->ctime_nsec;
}

static bool unchanged(const struct stat *src, const struct manifest_entry *record)
{
	if (!same_type(src, record))
		return false;
	if (S_ISDIR(src->st_mode))
		return same_attributes(src, record);
	return (!S_ISREG(src->st_mode) && !S_ISLNK(src->st_mode)) ||
	       is_identity(src, &record->local);
}

/* Not one that lacks an attribute which it may get another time. */
static bool is_whole(const struct manifest_entry *record)
{
	return record->mode != MANIFEST_MODE_UNKNOWN;
}

bool delta_out(const struct stat *src, const struct manifest_entry *staged,
	const struct manifest_entry *sent, bool suspect, struct copy_expect *expect)
{
	const struct manifest_entry *last =
		sent && (!staged || sent->run >= staged->run) ? sent : staged;
	bool is_dir = S_ISDIR(src->st_mode);

	memset(expect, 0, sizeof(*expect));
	expect->kind = COPY_EXPECT_NOTHING;
	/* A directory that we know of is ours to open up and to give its attributes. */
	if (is_dir && last && last->type == S_IFDIR && last->mode != MANIFEST_MODE_UNKNOWN)
		expect->kind = COPY_EXPECT_ANY;
	/* A file never becomes again what it was; a directory's mode can. */
	if (is_dir ? unchanged(src, last)
		   : unchanged(src, staged) || (unchanged(src, sent) && is_whole(sent)))
		return false;
	if (!is_dir && last && last->type != S_IFDIR && !(suspect && last == staged))
		delta_expect(expect, &last->shared);
	return true;
}
