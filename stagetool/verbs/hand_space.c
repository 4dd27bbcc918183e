#include "verbs/hand_space.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/parse.h"

struct space {
	uint64_t bytes, inodes;
};

static struct space needed(const struct hand *hand, const struct space *present)
{
	uint64_t bytes = hand->plan->bytes, inodes = hand->plan->inodes;

	bytes -= bytes < present->bytes ? bytes : present->bytes;
	inodes -= inodes < present->inodes ? inodes : present->inodes;
	return (struct space){ bytes + HAND_SPACE_MANIFEST_BYTES(inodes),
		inodes + HAND_SPACE_MANIFEST_INODES };
}

/* Filesystems that make inodes as they need them count none. */
static struct space available(const struct statvfs *fs)
{
	return (struct space){ (uint64_t)fs->f_bavail * fs->f_frsize,
		fs->f_files ? fs->f_favail : UINT64_MAX };
}

static int too_much(const struct hand *hand, const struct space *need, const struct space *have,
	struct error *err)
{
	char need_text[32], have_text[32];

	if (need->bytes > have->bytes)
		return error_set(err, -ENOSPC,
			"it does not fit: bytes: %s needed, %s available in %s",
			parse_format_size(need->bytes, need_text, sizeof(need_text)),
			parse_format_size(have->bytes, have_text, sizeof(have_text)), hand->dir);
	return error_set(err, -ENOSPC, "it does not fit: inodes: %llu needed, %llu available in %s",
		(unsigned long long)need->inodes, (unsigned long long)have->inodes, hand->dir);
}

static bool fits(const struct space *need, const struct space *have)
{
	return need->bytes <= have->bytes && need->inodes <= have->inodes;
}

int hand_space_check(const struct hand *hand, const atomic_bool *cancel, struct error *err)
{
	struct space present = { 0, 0 }, need = needed(hand, &present), have;
	struct statvfs fs;
	int rc;

	if (fstatvfs(hand->stagefd, &fs) < 0)
		return error_errno(err, "%s: statvfs", hand->dir);
	have = available(&fs);
	if (fits(&need, &have))
		return 0;
	rc = plan_measure_present(hand->plan, hand->stagefd, hand->options.threads, cancel,
		&present.bytes, &present.inodes, err);
	if (rc < 0)
		return rc;
	need = needed(hand, &present);
	return fits(&need, &have) ? 0 : too_much(hand, &need, &have, err);
}
