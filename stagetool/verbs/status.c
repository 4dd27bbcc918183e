#include "stage/status.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "spec/conf.h"
#include "stage/node.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdio.h>

const char verb_status_help[] =
	"Usage: stagetool status [JOBID]\n"
	"\n"
	"Shows your jobs on this node: where each stands, what was brought in and sent\n"
	"back, what is kept, where, and until when. Root sees the jobs of all users.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_CONF OPTIONS_HELP_COMMON "\n"
	"Exit status:\n"
	"  0  shown\n"
	"  1  there is no such job of yours on this node, or it can not be read\n"
	"  2  wrong usage\n";

static int status_load(
	const struct options *options, json_t **list, unsigned *bad, struct error *err)
{
	const char *job_id = options->n_words ? options->words[0] : NULL;
	autofree char *node = node_name();
	struct conf *conf = NULL;
	int code = conf_load(options_conf(options), node, &conf, err);

	if (!code)
		code = status_list(conf->state_dir, job_id, list, bad, err);
	conf_free(conf);
	if (!code && job_id && !json_array_size(*list)) {
		json_decref(*list);
		*list = NULL;
		return error_set(err, -ENOENT, "no job %s of yours on this node", job_id);
	}
	return code;
}

/* Everything on standard output is one write: whole, or an error. */
static int status_print(const json_t *list, struct error *err)
{
	autofree char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_errno(err, "status");
	if (!json_array_size(list))
		fputs("no jobs on this node\n", stream);
	for (size_t i = 0; i < json_array_size(list); i++) {
		autofree char *one = status_text(json_array_get(list, i));

		fputs(one ? one : "out of memory\n", stream);
	}
	if (fclose(stream) == EOF)
		return error_errno(err, "status");
	return output_text(text, err);
}

int verb_status(int argc, char **argv)
{
	static const struct options_spec spec = {
		.verb = "status",
		.help = verb_status_help,
		.common = OPTIONS_CONF,
		.words = "[JOBID]",
		.max_words = 1,
	};
	struct error err = ERROR_INIT;
	struct options options;
	json_t *list = NULL;
	unsigned bad = 0;
	int status, code;

	if (!options_parse(argc, argv, &spec, &options, &status))
		return status;
	if (options.n_words && !record_is_job_id(options.words[0]))
		return options_wrong(
			"status", "'%s': expected the number of a job", options.words[0]);
	code = status_load(&options, &list, &bad, &err);
	for (size_t i = 0; !code && i < json_array_size(list); i++)
		json_object_del(json_array_get(list, i), STATUS_RECORD);
	if (!code && bad)
		log_warning("status: %u records can not be read", bad);
	if (!code && !options.json)
		code = status_print(list, &err);
	if (code)
		log_error("status: %s", err.text);
	status = code ? VERB_FAILED : VERB_DONE;
	if (options.json)
		return output_result(
			"status", list ? json_pack("{s:o}", "jobs", list) : NULL, status, &err);
	json_decref(list);
	return status;
}
