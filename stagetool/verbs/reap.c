#include "verbs/reap.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "report/summary.h"
#include "spec/conf.h"
#include "spec/handoff.h"
#include "stage/node_end.h"
#include "stage/node_reap.h"
#include "stage/stage.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char verb_reap_help[] =
	"Usage: stagetool reap [options]\n"
	"\n"
	"What a timer runs as root on every node, and a unit at boot: finishes what no\n"
	"prolog and no epilog will come back for. Results that are kept are tried again,\n"
	"at first after a minute, at last every 6 hours; once they are back the stage is\n"
	"removed, and the job's output file says so. What is kept longer than keep_failed\n"
	"is removed, after a note in the job's output file. What a stage-in that died has\n"
	"left is removed. Running jobs are left alone, and whatever another stagetool\n"
	"works on.\n"
	"\n"
	"Options:\n"
	"      --boot             the node has booted: jobs of before have failed\n"
	"      --now              try now what is kept, whenever its next try is\n"
	"      --orphans          remove directories that no record knows and that are\n"
	"                         older than keep_failed; without it they are named\n"
	OPTIONS_HELP_CONF OPTIONS_HELP_COMMON "\n"
	"Exit status:\n"
	"  0  nothing is left to be done\n"
	"  1  results are kept on the node, or could not be saved; each is named\n"
	"  2  wrong usage\n"
	"  6  the node is broken: its tier, its configuration or its state_dir\n";

enum { REAP_BOOT = OPTIONS_OWN, REAP_NOW, REAP_ORPHANS };

struct reap_result {
	json_t *jobs, *orphans;
	unsigned seen;
	bool left, broken;
};

static const char *const end_texts[] = {
	[REAP_NOTHING] = "nothing is left to be done",
	[REAP_RUNNING] = "not over",
	[REAP_BUSY] = "another process works on it",
	[REAP_CLEARED] = "its stage is removed",
	[REAP_DELIVERED] = "all results are back, its stage is removed",
	[REAP_EXPIRED] = "its time was over, its stage is removed",
	[REAP_LOST] = "nothing can be sent",
	[REAP_WAITING] = "kept, to be tried later",
	[REAP_SUPERSEDED] = "kept, not sent over a later attempt's results",
	[REAP_KEPT] = "kept, tried in vain",
	[REAP_FAILED] = "could not be worked on",
};

static void reap_add(struct reap_result *result, const char *name, const struct record *record,
	enum reap_end end, const char *text)
{
	autofree char *dir = record && record->present ? stage_path(record) : NULL;
	json_t *job = json_pack("{s:s#, s:i, s:s}", "job", name, strcspn(name, "."), "restart",
		atoi(name + strcspn(name, ".") + 1), "result", reap_end_name(end));

	if (job && dir)
		json_object_set_new(job, "dir", summary_json_bytes(dir));
	if (job && record && record->until)
		json_object_set_new(job, "until", json_integer((json_int_t)record->until));
	if (job && record && record->next_try)
		json_object_set_new(job, "next_try", json_integer((json_int_t)record->next_try));
	if (job && text)
		json_object_set_new(job, "text", summary_json_bytes(text));
	json_array_append_new(result->jobs, job);
}

static void reap_told(void *ctx, const char *name, const struct record *record, enum reap_end end,
	const char *text)
{
	struct reap_result *result = ctx;
	autofree char *dir = record && record->present ? stage_path(record) : NULL;
	bool problem = end >= REAP_EXPIRED;

	result->seen++;
	if (end == REAP_NOTHING)
		return;
	result->left |= problem;
	result->broken |= end == REAP_FAILED;
	reap_add(result, name, record, end, text);
	if (end == REAP_RUNNING)
		log_debug("job %s: %s", name, end_texts[end]);
	else if (problem)
		log_warning("job %s: %s%s%s%s%s", name, end_texts[end], dir ? " in " : "",
			dir ? dir : "", text ? ": " : "", text ? text : "");
	else
		log_info("job %s: %s%s%s", name, end_texts[end], end == REAP_BUSY && text ? ": " : "",
			end == REAP_BUSY && text ? text : "");
}

static void orphan_told(void *ctx, const struct reap_orphan *orphan)
{
	struct reap_result *result = ctx;
	json_t *object = json_pack("{s:o, s:s, s:I, s:b}", "dir",
		summary_json_bytes(orphan->path), "tier", orphan->tier, "seconds",
		(json_int_t)orphan->seconds, "removed", orphan->removed);

	json_array_append_new(result->orphans, object);
	if (orphan->problem)
		log_warning("no record knows %s: %s", orphan->path, orphan->problem);
	else
		log_warning("no record knows %s%s", orphan->path,
			orphan->removed ? ": removed" : "");
}

static void reap_warn(const char *text)
{
	log_warning("%s", text);
}

static int reap_state(const struct reap_call *call, const struct conf *conf,
	struct reap_result *result, struct error *err)
{
	const struct node_job job = { .report = -1 };
	struct state state;
	bool stopped = false;
	const struct node node = { &job, conf, &state, reap_warn, &stopped };
	const struct reap_options options = {
		.job_id = call->job_id,
		.boot = call->boot,
		.now = call->now,
		.told = reap_told,
		.ctx = result,
	};
	int code = state_open(conf->state_dir, &state, err);

	if (code)
		return code;
	code = node_reap(&node, &options, err);
	if (!code && !call->job_id) {
		node_prune(&node);
		code = node_orphans(&node, call->orphans, orphan_told, result, err);
	}
	state_close(&state);
	return code;
}

static int reap_run(const struct reap_call *call, const struct options *options,
	struct reap_result *result, struct error *err)
{
	autofree char *name = node_name();
	struct conf *conf = NULL;
	int code = conf_load(options_conf(options), name, &conf, err);

	if (!code && access(conf->state_dir, F_OK) == 0)
		code = reap_state(call, conf, result, err);
	conf_free(conf);
	return code;
}

static int reap_status(const struct reap_result *result, int code)
{
	if (code == -ECANCELED)
		return VERB_FAILED;
	if (code || result->broken)
		return HANDOFF_EXIT_NODE;
	return result->left ? VERB_FAILED : VERB_DONE;
}

int reap_call(const struct reap_call *call, const struct options *options)
{
	struct reap_result result = { .jobs = json_array(), .orphans = json_array() };
	struct error err = ERROR_INIT;
	int code = reap_run(call, options, &result, &err);
	int status = reap_status(&result, code);

	if (!code && call->job_id && !result.seen) {
		error_set(&err, -ENOENT, "no job %s on this node", call->job_id);
		status = VERB_FAILED;
	}
	if (err.code)
		log_error("%s: %s", call->verb, err.text);
	if (options->json)
		return output_result(call->verb,
			json_pack("{s:o, s:o}", "jobs", result.jobs, "orphans", result.orphans),
			status, &err);
	json_decref(result.jobs);
	json_decref(result.orphans);
	return status;
}

static int reap_set(void *ctx, int val, const char *value, struct error *err)
{
	struct reap_call *call = ctx;

	(void)value;
	(void)err;
	call->boot |= val == REAP_BOOT;
	call->now |= val == REAP_NOW;
	call->orphans |= val == REAP_ORPHANS;
	return 0;
}

int verb_reap(int argc, char **argv)
{
	static const struct option own[] = {
		{ "boot", no_argument, NULL, REAP_BOOT },
		{ "now", no_argument, NULL, REAP_NOW },
		{ "orphans", no_argument, NULL, REAP_ORPHANS },
		{ NULL, 0, NULL, 0 },
	};
	struct reap_call call = { .verb = "reap" };
	const struct options_spec spec = {
		.verb = "reap",
		.help = verb_reap_help,
		.common = OPTIONS_CONF,
		.own = own,
		.set = reap_set,
		.ctx = &call,
		.words = "",
	};
	struct options options;
	int status;

	if (!options_parse(argc, argv, &spec, &options, &status))
		return status;
	if (geteuid() != 0) {
		log_error("reap: only root can do this; stagetool resume sends your own results");
		return VERB_FAILED;
	}
	return reap_call(&call, &options);
}
