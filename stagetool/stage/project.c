#include "stage/project.h"

#include "base/cleanup.h"
#include "stage/quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOCK_WAIT 60
/* XFS frees what was removed a moment later, and until then the id counts as used. */
#define REMOVAL_TRIES 50
#define REMOVAL_PAUSE_NS 100000000

struct project_loading {
	const struct state *state;
	const char *self;
	struct project_ids *ids;
};

static int project_add(void *ctx, const char *name, struct error *err)
{
	struct project_loading *loading = ctx;
	struct project_ids *ids = loading->ids;
	struct record *record = NULL;
	uint32_t *grown, id;

	if (!strcmp(name, loading->self) || record_load(loading->state, name, &record, NULL))
		return 0;
	id = (uint32_t)record->project_id;
	record_free(record);
	if (!id)
		return 0;
	grown = reallocarray(ids->items, ids->count + 1, sizeof(*grown));
	if (!grown)
		return error_sys(err, -ENOMEM, "project ids");
	ids->items = grown;
	grown[ids->count++] = id;
	return 0;
}

static int project_compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

int project_ids_load(const struct state *state, const struct record *self, struct project_ids *ids,
	struct error *err)
{
	autofree char *name = record_name(self, "");
	struct project_loading loading = { state, name, ids };
	int code;

	if (!name)
		return error_sys(err, -ENOMEM, "project ids");
	code = record_each(state, NULL, ".json", project_add, &loading, err);
	if (ids->count)
		qsort(ids->items, ids->count, sizeof(*ids->items), project_compare);
	return code;
}

void project_ids_free(struct project_ids *ids)
{
	free(ids->items);
	*ids = (struct project_ids){ 0 };
}

uint32_t project_next(const struct project_ids *ids, uint32_t first, uint32_t last)
{
	for (size_t i = 0; i < ids->count && first <= last; i++)
		if (ids->items[i] == first)
			first++;
	return first <= last ? first : 0;
}

/* One that nobody's record has, and that nothing on the filesystem counts for: an unknown directory
 * that was moved aside keeps its own. 0: there is none. */
static int project_find(const struct conf_tier *tier, int stagefd, const struct project_ids *ids,
	uint32_t *id, struct error *err)
{
	struct quota_use use;
	int code = 0;

	*id = project_next(ids, tier->project_first, tier->project_last);
	while (*id) {
		code = quota_get(stagefd, *id, &use, err);
		if (code || (!use.bytes && !use.inodes))
			break;
		*id = project_next(ids, *id + 1, tier->project_last);
	}
	return code;
}

static int project_choose(const struct state *state, const struct conf_tier *tier, int stagefd,
	struct record *record, struct error *err)
{
	const struct timespec pause = { 0, REMOVAL_PAUSE_NS };
	struct project_ids ids = { 0 };
	uint32_t id = 0;
	int code = project_ids_load(state, record, &ids, err);
	int tries = project_next(&ids, tier->project_first, tier->project_last) ? REMOVAL_TRIES : 0;

	while (!code && !id) {
		code = project_find(tier, stagefd, &ids, &id, err);
		if (code || id)
			break;
		if (tries-- > 0)
			nanosleep(&pause, NULL);
		else
			code = error_set(err, -EUSERS, "all of them are in use");
	}
	project_ids_free(&ids);
	if (!code)
		record->project_id = id;
	return code;
}

/* Two prologs must not choose the same: the record with it is on disk before the other one looks.
 */
static int project_claim(const struct state *state, const struct conf_tier *tier, int stagefd,
	struct record *record, struct error *err)
{
	autoclose int lock = state_lock(state->jobs, STATE_LEDGER_LOCK, LOCK_WAIT, err);
	int code = lock;

	if (lock < 0)
		return error_prefix(err, lock, "%s/jobs", state->path);
	code = project_choose(state, tier, stagefd, record, err);
	if (!code)
		code = record_save(state, record, RECORD_PLANNED, err);
	if (code)
		record->project_id = 0;
	return code;
}

int project_hold(const struct state *state, const struct conf_tier *tier, int stagefd,
	struct record *record, uint64_t bytes, struct error *err)
{
	int code = quota_enforced(stagefd, err);

	if (!code)
		code = project_claim(state, tier, stagefd, record, err);
	if (!code)
		code = quota_join(stagefd, (uint32_t)record->project_id, err);
	if (!code)
		code = quota_limit(stagefd, (uint32_t)record->project_id, bytes, err);
	return error_prefix(err, code, "tier %s: %s: project_ids = %u-%u", tier->name, tier->path,
		tier->project_first, tier->project_last);
}

int project_release(int fd, struct record *record, struct error *err)
{
	struct error limiting = ERROR_INIT;
	int code;

	if (!record->project_id)
		return 0;
	code = quota_limit(fd, (uint32_t)record->project_id, 0, &limiting);
	if (code && code != -EOPNOTSUPP)
		return error_set(err, code, "%s", limiting.text);
	record->project_id = 0;
	return 0;
}
