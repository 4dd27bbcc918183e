#include "stage/ledger.h"

#include "base/cleanup.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

/* Counting takes milliseconds; who waits longer than this waits for a dead disk. */
#define LEDGER_WAIT 60

struct ledger_room {
	struct ledger_amount total, free, kept, promised;
	bool inodes_limited;
	unsigned jobs; /* that hold promises */
	unsigned unsent; /* whose results are kept */
	uint64_t until;  /* when the first of those ends */
};

struct ledger_count {
	const struct state *state;
	const struct record *self;
	const char *self_name;
	struct ledger_room *room;
};

static uint64_t ledger_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void ledger_note(
	const struct state *state, const struct record *record, const struct ledger_amount *used)
{
	autofree char *name = record_name(record, ".progress");
	autoclose int fd = -1;
	char line[64];

	if (!name)
		return;
	fd = openat(state->jobs, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	memset(line, ' ', sizeof(line));
	snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 "\n", used->bytes, used->inodes);
	/* of one length always, so that no reader sees the end of an older, longer line */
	if (fd >= 0 && pwrite(fd, line, sizeof(line), 0) < 0)
		return;
}

void ledger_noted(const struct state *state, const char *name, struct ledger_amount *used)
{
	autofree char *file = NULL, *text = NULL;
	struct ledger_amount noted;

	*used = (struct ledger_amount){ 0 };
	if (asprintf(&file, "%s.progress", name) < 0)
		return;
	if (state_read(state->jobs, file, 64, &text, NULL, NULL))
		return;
	if (sscanf(text, "%" SCNu64 " %" SCNu64 "\n", &noted.bytes, &noted.inodes) == 2)
		*used = noted;
}

/* Whether the process that works on an attempt is alive. */
static bool ledger_is_alive(const struct state *state, const char *name)
{
	autofree char *file = NULL;
	int lock;

	if (asprintf(&file, "%s.lock", name) < 0)
		return true;
	lock = state_lock(state->jobs, file, 0, NULL);
	if (lock >= 0)
		close(lock);
	return lock == -EBUSY;
}

static bool ledger_same_boot(const struct record *a, const struct record *b)
{
	return a->boot_id && b->boot_id && !strcmp(a->boot_id, b->boot_id);
}

/* What another job was promised and has not used. */
static int ledger_add(void *ctx, const char *name, struct error *err)
{
	struct ledger_count *count = ctx;
	struct record *record = NULL;
	struct ledger_amount used = { 0 };
	bool claims = false;

	(void)err;
	/* a record that is gone or can not be read makes no claim; whoever works on it says so */
	if (!strcmp(name, count->self_name) || record_load(count->state, name, &record, NULL))
		return 0;
	if (record->stage_dev != count->self->stage_dev) {
		record_free(record);
		return 0;
	}
	if (record->state == RECORD_READY) {
		claims = ledger_same_boot(record, count->self);
		used = (struct ledger_amount){ record->staged_bytes, record->staged_inodes };
	} else if (record->state == RECORD_STAGING) {
		claims = ledger_is_alive(count->state, name);
		ledger_noted(count->state, name, &used);
	}
	if (record->state == RECORD_KEPT) {
		if (!count->room->unsent++ || record->until < count->room->until)
			count->room->until = record->until;
	}
	if (claims) {
		count->room->promised.bytes += ledger_less(record->reserved_bytes, used.bytes);
		count->room->promised.inodes += ledger_less(record->reserved_inodes, used.inodes);
		count->room->jobs++;
	}
	record_free(record);
	return 0;
}

static int ledger_measure(
	const struct conf_tier *tier, int tierfd, struct ledger_room *room, struct error *err)
{
	struct statvfs vfs;

	if (fstatvfs(tierfd, &vfs))
		return error_errno(err, "tier %s: %s: statvfs", tier->name, tier->path);
	*room = (struct ledger_room){
		.total = { vfs.f_blocks * vfs.f_frsize, vfs.f_files },
		.free = { vfs.f_bavail * vfs.f_frsize, vfs.f_favail },
		.inodes_limited = vfs.f_files != 0, /* btrfs and the like make them as needed */
	};
	if (tier->min_free_percent >= 0) {
		double share = tier->min_free_percent / 100;

		room->kept.bytes = (uint64_t)((double)room->total.bytes * share);
		room->kept.inodes = (uint64_t)((double)room->total.inodes * share);
	} else {
		room->kept.bytes = tier->min_free_bytes;
	}
	return 0;
}

/* Space that a prolog does not take: ", results of 2 jobs are kept, the first until 2026-12-31 12:00". */
static void ledger_say_unsent(const struct ledger_room *room, char *text, size_t size)
{
	time_t until = (time_t)room->until;
	struct tm tm;
	char date[32];

	*text = '\0';
	if (room->unsent && localtime_r(&until, &tm) &&
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm))
		snprintf(text, size, ", results of %u job%s are kept, %s until %s", room->unsent,
			room->unsent == 1 ? "" : "s", room->unsent == 1 ? "those" : "the first",
			date);
}

static int ledger_refuse(const struct conf_tier *tier, const struct ledger_room *room,
	const struct record *record, const char *what, const char *need, const char *available,
	const char *details, struct error *err)
{
	char unsent[128];

	ledger_say_unsent(room, unsent, sizeof(unsent));
	return error_set(err, -ENOSPC,
		"does not fit on tier %s of %s: %s %s are needed, %s are available (%s%s)",
		tier->name, record->node, need, what, available, details, unsent);
}

static int ledger_compare(const struct conf_tier *tier, const struct ledger_room *room,
	const struct record *record, const struct ledger_amount *need, uint64_t *most,
	struct error *err)
{
	uint64_t bytes = *most = ledger_less(room->free.bytes, room->kept.bytes + room->promised.bytes);
	uint64_t inodes = ledger_less(room->free.inodes, room->kept.inodes + room->promised.inodes);
	char needed[64], available[64], free[64], kept[64], promised[64], details[400];

	if (need->bytes > bytes) {
		snprintf(details, sizeof(details),
			"free %s, kept free %s, promised to %u other jobs %s",
			parse_format_size(room->free.bytes, free, sizeof(free)),
			parse_format_size(room->kept.bytes, kept, sizeof(kept)), room->jobs,
			parse_format_size(room->promised.bytes, promised, sizeof(promised)));
		return ledger_refuse(tier, room, record, "of space",
			parse_format_size(need->bytes, needed, sizeof(needed)),
			parse_format_size(bytes, available, sizeof(available)), details, err);
	}
	if (room->inodes_limited && need->inodes > inodes) {
		snprintf(details, sizeof(details),
			"free %" PRIu64 ", kept free %" PRIu64
			", promised to %u other jobs %" PRIu64,
			room->free.inodes, room->kept.inodes, room->jobs, room->promised.inodes);
		snprintf(needed, sizeof(needed), "%" PRIu64, need->inodes);
		snprintf(available, sizeof(available), "%" PRIu64, inodes);
		return ledger_refuse(tier, room, record, "inodes", needed, available, details, err);
	}
	return 0;
}

int ledger_reserve(const struct state *state, const struct conf_tier *tier, int tierfd,
	struct record *record, const struct ledger_amount *need, uint64_t *most,
	struct error *err)
{
	autoclose int lock = state_lock(state->jobs, STATE_LEDGER_LOCK, LEDGER_WAIT, err);
	autofree char *name = record_name(record, "");
	struct ledger_room room;
	struct ledger_count count = { state, record, name, &room };
	int code;

	if (lock < 0)
		return error_prefix(err, lock, "%s/jobs", state->path);
	if (!name)
		return error_sys(err, -ENOMEM, "job %s", record->job_id);
	code = ledger_measure(tier, tierfd, &room, err);
	if (!code)
		code = record_each(state, NULL, ".lock", ledger_add, &count, err);
	if (!code)
		code = ledger_compare(tier, &room, record, need, most, err);
	if (code)
		return code;
	record->reserved_bytes = need->bytes;
	record->reserved_inodes = need->inodes;
	return record_save(state, record, RECORD_STAGING, err);
}
