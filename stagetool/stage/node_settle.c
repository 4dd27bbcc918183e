#include "stage/node_settle.h"

#include "base/cleanup.h"
#include "stage/node_return.h"
#include "stage/node_supersede.h"
#include "stage/stage.h"
#include "stage/tier.h"

#include <errno.h>
#include <string.h>

int node_clear(
	const struct node *node, struct record *record, enum record_state last, struct error *err)
{
	struct error removing = ERROR_INIT;
	autoclose int tierfd = -1;
	struct conf_tier tier;

	if (!record->present)
		return record->state == last ? 0 : record_save(node->state, record, last, err);
	node_record_tier(record, &tier);
	tierfd = tier_open(&tier, err);
	if (tierfd < 0)
		return tierfd;
	if (stage_remove(tierfd, record, &removing))
		node_warn(node, "job %s: %s", record->job_id, removing.text);
	return record_save(node->state, record, last, err);
}

int node_clear_unfinished(const struct node *node, struct record *record, struct error *err)
{
	if (!record->reason &&
		record_set(&record->reason, "the stage-in did not come to its end", err))
		return -ENOMEM;
	return node_clear(node, record, RECORD_FAILED, err);
}

static void settle_tell(const struct node *node, const struct record *record, char *text)
{
	struct error err = ERROR_INIT;
	int code = node_tell(record, text, &err);

	if (code && code != -ENOENT)
		node_warn(node, "%s", err.text);
	free(text);
}

int node_return_and_tell(
	const struct node *node, struct record *record, int lock, struct error *err)
{
	bool kept = record->state == RECORD_KEPT && record->reason;
	autofree char *known = NULL;
	int code = record_set(&known, kept ? record->reason : "", err);

	if (!code)
		code = node_return(node, record, lock, err);
	if (!known || record->state == RECORD_RETURNING)
		return code;
	if (record->state != RECORD_KEPT || !record->reason || strcmp(known, record->reason))
		settle_tell(node, record, node_return_notice(record));
	return code;
}

int node_settle_superseded(const struct node *node, struct record *record, struct error *err)
{
	uint64_t later;
	bool live;
	int code = node_later(node->state, record, &later, &live, err);

	if (!code && later)
		code = node_supersede(node, record, later, err);
	if (code || !record->superseded || record->state != RECORD_KEPT || record->told || live)
		return code;
	settle_tell(node, record, node_superseded_notice(record));
	record->told = 1;
	return record_save(node->state, record, RECORD_KEPT, err);
}
