#include "verbs/hook.h"

#include "base/log.h"
#include "spec/handoff.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* slurmd may start us with standard descriptors closed: what we open must not get their numbers. */
static void hook_open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
	if (fd > STDERR_FILENO)
		close(fd);
}

static void hook_warn(const char *text)
{
	log_warning("%s", text);
}

/* SIGTERM is heard where a worker runs, which stops. Between two of them it waits: what has been done is
 * recorded, and reported, before this process ends. */
static void hook_hold_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Everything that the run needs, or an error that is the node's. */
static void hook_work(const struct hook *hook, const struct options *options,
	const struct node_job *job, struct node_verdict *verdict)
{
	struct node node = { .job = job, .warn = hook_warn };
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;
	struct state state;
	int code = conf_load(options_conf(options), job->node, &conf, &err);

	/* a node without a configuration has staged nothing, one without a state_dir neither */
	if (!job->specs && (code || access(conf->state_dir, F_OK))) {
		conf_free(conf);
		return;
	}
	if (!code)
		code = state_open(conf->state_dir, &state, &err);
	if (code) {
		node_verdict_set(verdict, NODE_NODE, strdup(err.text));
		conf_free(conf);
		return;
	}
	node.conf = conf;
	node.state = &state;
	if (job->specs || hook->wants(&node))
		hook->run(&node, verdict);
	state_close(&state);
	conf_free(conf);
}

static int hook_status(const struct hook *hook, const struct node_verdict *verdict)
{
	if (verdict->blame == NODE_NODE)
		return HANDOFF_EXIT_NODE;
	return verdict->blame == NODE_JOB ? hook->job_status : VERB_DONE;
}

static int hook_tell(const struct hook *hook, const struct options *options,
	const struct node_job *job, const struct node_verdict *verdict)
{
	const char *text = verdict->text ? verdict->text : "out of memory";
	int status = hook_status(hook, verdict);
	struct error err = ERROR_INIT;

	node_report_verdict(job, verdict);
	if (verdict->blame == NODE_FINE)
		log_info("job %s: %s", job->job_id, text);
	else
		log_error("job %s: %s", job->job_id, text);
	if (!options->json)
		return status;
	if (verdict->blame != NODE_FINE)
		error_set(&err, -EIO, "%s", text);
	return output_result(hook->verb,
		json_pack("{s:s, s:o}", "job", job->job_id, "text", summary_json_bytes(text)),
		status, &err);
}

int hook_run(int argc, char **argv, const struct hook *hook)
{
	const struct options_spec spec = {
		.verb = hook->verb,
		.help = hook->help,
		.common = OPTIONS_CONF,
		.words = "",
	};
	struct node_verdict verdict = { NODE_FINE, NULL };
	struct error err = ERROR_INIT;
	struct options options;
	struct node_job job;
	int status;

	hook_open_standard();
	if (!options_parse(argc, argv, &spec, &options, &status))
		return status;
	if (!hook->wants && !getenv(HANDOFF_SPANK_SPECS))
		return VERB_DONE;
	if (geteuid() != 0) {
		log_error("%s: only root can do this", hook->verb);
		return VERB_FAILED;
	}
	if (node_job_read(&job, &err)) {
		log_error("%s: %s; slurmd, or a site's own script, runs this verb", hook->verb,
			err.text);
		return VERB_USAGE;
	}
	hook_hold_signal();
	hook_work(hook, &options, &job, &verdict);
	status = VERB_DONE;
	if (job.specs || verdict.text || verdict.blame != NODE_FINE)
		status = hook_tell(hook, &options, &job, &verdict);
	node_verdict_free(&verdict);
	node_job_free(&job);
	return status;
}
