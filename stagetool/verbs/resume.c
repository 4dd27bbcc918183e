#include "stage/node_resume.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "spec/conf.h"
#include "stage/node_return.h"
#include "stage/status.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/reap.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char verb_resume_help[] =
	"Usage: stagetool resume [JOBID]\n"
	"\n"
	"Sends the results that this node keeps because they could not be delivered when\n"
	"their job had ended: of JOBID, or of all your jobs. To be run on the node that\n"
	"has them (see stagetool status), by the job's user. It sends what the job asked\n"
	"for, and what is back already is not sent again. The stage itself is removed by\n"
	"the next stagetool reap, or when its time is over. By root: a reap of that job,\n"
	"now.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_CONF OPTIONS_HELP_COMMON "\n"
	"Exit status:\n"
	"  0  all results are back, or nothing is kept\n"
	"  1  there is no such job of yours on this node, it is not over, or not all\n"
	"     results could be sent\n"
	"  2  wrong usage\n";

struct resume {
	const char *job_id; /* NULL: all */
	struct node node;
	json_t *jobs;
};

static void resume_warn(const char *text)
{
	log_warning("%s", text);
}

static void resume_add(
	struct resume *resume, const char *job, const struct record *record, const char *problem)
{
	json_t *object = json_pack("{s:s, s:s}", "job", job, "result", problem ? "kept" : "sent");
	json_t *items = json_array();

	for (size_t i = 0; record && i < record->n_outcomes; i++)
		if (record->outcomes[i].out)
			json_array_append_new(items, outcome_json(&record->outcomes[i], NULL));
	if (object && problem)
		json_object_set_new(object, "text", summary_json_bytes(problem));
	json_object_set_new(object, "items", items);
	json_array_append_new(resume->jobs, object);
}

/* A job that is at another point of its life is passed over, where none was named. */
static int resume_one(struct resume *resume, const json_t *status, struct error *err)
{
	const char *job = json_string_value(json_object_get(status, "job"));
	autofree char *text = NULL;
	struct record *record = NULL;
	struct error own = ERROR_INIT;
	int code;

	if (!job || (!resume->job_id && !json_object_get(status, STATUS_RECORD)))
		return 0;
	code = node_resume(&resume->node, status, &record, &own);
	text = record && code != -ENOENT && code != -ESTALE ? node_return_notice(record) : NULL;
	resume_add(resume, job, record, code ? own.text : NULL);
	if (text)
		fputs(text, stderr);
	record_free(record);
	if (code)
		log_error("resume: %s", own.text);
	return code ? error_set(err, code, "%s", own.text) : 0;
}

static int resume_list(struct resume *resume, struct error *err)
{
	json_t *list = NULL;
	unsigned bad = 0;
	int code = status_list(resume->node.conf->state_dir, resume->job_id, &list, &bad, err);
	int worst = 0;

	if (!code && resume->job_id && !json_array_size(list))
		code = error_set(err, -ENOENT, "no job %s of yours on this node", resume->job_id);
	if (code || bad)
		log_error("resume: %s", code ? err->text : "a status can not be read");
	for (size_t i = 0; !code && i < json_array_size(list); i++) {
		int one = resume_one(resume, json_array_get(list, i), err);

		worst = one ? one : worst;
	}
	json_decref(list);
	return code ? code : worst;
}

static int resume_own(const char *job_id, const struct options *options)
{
	const struct node_job job = { .report = -1 };
	struct resume resume = { .job_id = job_id, .jobs = json_array() };
	struct error err = ERROR_INIT;
	autofree char *name = node_name();
	struct conf *conf = NULL;
	int code = conf_load(options_conf(options), name, &conf, &err), status;

	if (code)
		log_error("resume: %s", err.text);
	resume.node = (struct node){ .job = &job, .conf = conf, .warn = resume_warn };
	if (!code)
		code = resume_list(&resume, &err);
	conf_free(conf);
	status = code ? VERB_FAILED : VERB_DONE;
	if (options->json)
		return output_result("resume", json_pack("{s:o}", "jobs", resume.jobs), status, &err);
	if (!code && !json_array_size(resume.jobs))
		log_info("nothing of yours is kept on this node");
	json_decref(resume.jobs);
	return status;
}

int verb_resume(int argc, char **argv)
{
	static const struct options_spec spec = {
		.verb = "resume",
		.help = verb_resume_help,
		.common = OPTIONS_CONF,
		.words = "[JOBID]",
		.max_words = 1,
	};
	struct reap_call call = { .verb = "resume", .now = true };
	struct options options;
	int status;

	if (!options_parse(argc, argv, &spec, &options, &status))
		return status;
	call.job_id = options.n_words ? options.words[0] : NULL;
	if (call.job_id && !record_is_job_id(call.job_id))
		return options_wrong("resume", "'%s': expected the number of a job", call.job_id);
	return geteuid() == 0 ? reap_call(&call, &options) : resume_own(call.job_id, &options);
}
