#include "stage/node.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "spec/handoff.h"
#include "spec/spec.h"
#include "stage/fields.h"
#include "stage/outcome.h"
#include "stage/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define REPORT_LINE_MAX 3800
/* How long the reader of a verdict may take to make room for it. */
#define VERDICT_WAIT_MS 5000

static const char *node_value(const char *name, const char *other)
{
	const char *value = getenv(name);

	if (!value && other)
		value = getenv(other);
	return value && *value ? value : NULL;
}

/* A number of the environment; missing is fallback, NULL: an error. */
static int node_number(const char *name, const char *other, uint64_t max, const uint64_t *fallback,
	uint64_t *number, struct error *err)
{
	const char *value = node_value(name, other);
	int code;

	if (!value && fallback) {
		*number = *fallback;
		return 0;
	}
	if (!value)
		return error_set(err, -EINVAL, "%s is not set", name);
	code = parse_number(value, 0, max, number, err);
	return error_prefix(err, code, "%s", name);
}

char *node_name(void)
{
	const char *name = node_value("SLURMD_NODENAME", NULL);
	char host[256];

	if (name)
		return strdup(name);
	if (gethostname(host, sizeof(host)))
		return NULL;
	host[sizeof(host) - 1] = '\0';
	host[strcspn(host, ".")] = '\0';
	return strdup(host);
}

/* The descriptor of the report; not handed on to anybody. */
static int node_report_fd(void)
{
	const char *value = node_value(HANDOFF_REPORT_FD, NULL);
	uint64_t fd;

	if (!value || parse_number(value, 0, INT16_MAX, &fd, NULL))
		return -1;
	return fcntl((int)fd, F_SETFD, FD_CLOEXEC) ? -1 : (int)fd;
}

int node_job_read(struct node_job *job, struct error *err)
{
	static const uint64_t none = 0, one = 1;
	const uint64_t uid_max = UINT32_MAX - 1;
	int code;

	*job = (struct node_job){
		.job_id = node_value("SLURM_JOB_ID", NULL),
		.user = node_value("SLURM_JOB_USER", NULL),
		.specs = node_value(HANDOFF_SPANK_SPECS, NULL),
		.name = node_value(HANDOFF_JOB_NAME, "SLURM_JOB_NAME"),
		.array_job_id = node_value(HANDOFF_ARRAY_JOB_ID, "SLURM_ARRAY_JOB_ID"),
		.array_task_id = node_value(HANDOFF_ARRAY_TASK_ID, "SLURM_ARRAY_TASK_ID"),
		.node_index = node_value(HANDOFF_NODE_INDEX, NULL),
		.output = node_value(HANDOFF_JOB_STDOUT, NULL),
		.state = node_value(HANDOFF_JOB_STATE, NULL),
		.report = node_report_fd(),
	};
	if (!job->job_id || !record_is_job_id(job->job_id))
		return error_set(err, -EINVAL, "SLURM_JOB_ID: expected the number of a job");
	code = node_number("SLURM_JOB_UID", NULL, uid_max, NULL, &job->uid, err);
	if (!code)
		code = node_number("SLURM_JOB_GID", NULL, uid_max, NULL, &job->gid, err);
	if (!code)
		code = node_number("SLURM_JOB_RESTART_COUNT", "SLURM_RESTART_COUNT", UINT32_MAX,
			&none, &job->restart, err);
	if (!code)
		code = node_number(HANDOFF_NODE_COUNT, "SLURM_JOB_NUM_NODES", UINT32_MAX, &one,
			&job->node_count, err);
	if (code)
		return code;
	if (!job->node_index && job->node_count <= 1)
		job->node_index = "0";
	job->node = node_name();
	return job->node ? 0 : error_sys(err, -ENOMEM, "the name of this node");
}

void node_job_free(struct node_job *job)
{
	free(job->node);
	job->node = NULL;
}

void node_verdict_set(struct node_verdict *verdict, enum node_blame blame, char *text)
{
	free(verdict->text);
	verdict->blame = blame;
	verdict->text = text;
}

void node_verdict_free(struct node_verdict *verdict)
{
	free(verdict->text);
	verdict->text = NULL;
}

void node_warn(const struct node *node, const char *format, ...)
{
	char text[ERROR_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	node->warn(text);
}

static void node_report(const struct node_job *job, const char *what, const char *text, int wait_ms)
{
	struct pollfd fds = { job->report, POLLOUT, 0 };
	char line[REPORT_LINE_MAX + 64];
	size_t length;

	if (job->report < 0 || poll(&fds, 1, wait_ms) != 1 || !(fds.revents & POLLOUT))
		return;
	length = (size_t)snprintf(line, sizeof(line), "%s ", what);
	log_escape(text, line + length, REPORT_LINE_MAX - length);
	length = strlen(line);
	line[length++] = '\n';
	/* shorter than a pipe's atomic size: whole or not at all; a reader that is gone needs no
	 * line */
	if (write(job->report, line, length) < 0)
		return;
}

void node_report_progress(const struct node_job *job, const char *text)
{
	node_report(job, "progress", text, 0);
}

void node_report_verdict(const struct node_job *job, const struct node_verdict *verdict)
{
	static const char *const words[] = {
		[NODE_FINE] = "verdict ok",
		[NODE_JOB] = "verdict job",
		[NODE_NODE] = "verdict node",
	};

	node_report(job, words[verdict->blame], verdict->text ? verdict->text : "out of memory",
		VERDICT_WAIT_MS);
}

char *node_boot_id(void)
{
	autoclose int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char line[64];
	ssize_t size = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (size <= 0)
		return NULL;
	line[size] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return strdup(line);
}

void node_symbols(const struct record *record, struct symbols *symbols)
{
	*symbols = (struct symbols){
		.job_id = record->job_id,
		.array_job_id = record->array_job_id ? record->array_job_id : record->job_id,
		.array_task_id = record->array_task_id ? record->array_task_id : "0",
		.job_name = record->job_name,
		.user = record->user,
		.node = record->node,
		.node_index = record->node_index,
	};
}

void node_record_tier(const struct record *record, struct conf_tier *tier)
{
	*tier = (struct conf_tier){
		.name = record->tier,
		.path = record->tier_path,
		.min_free_percent = -1,
	};
}

static int node_expect_one(
	struct record *record, size_t spec, const char *text, bool out, struct error *err)
{
	struct outcome *outcome = &record->outcomes[record->n_outcomes];

	if (record_set(&outcome->text, text, err))
		return -ENOMEM;
	outcome->spec = spec;
	outcome->out = out;
	outcome->summary.verb = out ? "staged out" : "staged in";
	record->n_outcomes++;
	return 0;
}

int node_expect(struct record *record, const struct spec_list *specs, struct error *err)
{
	int code = 0;

	record->outcomes = calloc(2 * specs->count + 1, sizeof(*record->outcomes));
	if (!record->outcomes)
		return error_sys(err, -ENOMEM, "record");
	for (size_t i = 0; i < specs->count && !code; i++) {
		const struct spec *spec = &specs->items[i];

		if (spec->side == SPEC_IN)
			code = node_expect_one(record, i, spec->text, false, err);
		if (!code && (spec->side == SPEC_OUT || spec->sync))
			code = node_expect_one(record, i, spec->text, true, err);
	}
	return code;
}

int node_take_progress(struct worker *worker, const json_t *message, uint64_t *files, uint64_t *bytes,
	struct error *err)
{
	uint64_t steps;
	int code = fields_get_number(message, "files", INT64_MAX, files, err);

	if (!code)
		code = fields_get_number(message, "bytes", INT64_MAX, bytes, err);
	if (!code)
		code = fields_get_number(message, "steps", INT64_MAX, &steps, err);
	if (!code)
		worker_counted(worker, steps);
	return code;
}

int node_take_outcome(struct record *record, const json_t *message, struct error *err)
{
	struct outcome told;
	int code = outcome_from_json(message, &told, err);

	if (code)
		return code;
	for (size_t i = 0; i < record->n_outcomes; i++) {
		struct outcome *outcome = &record->outcomes[i];

		if (outcome->spec != told.spec || outcome->out != told.out)
			continue;
		outcome->missing = told.missing;
		outcome->delivered = told.delivered;
		summary_free(&outcome->summary);
		outcome->summary = told.summary;
		free(told.text);
		return 0;
	}
	outcome_free(&told);
	return error_set(err, -EBADMSG, "\"spec\": nothing was asked of spec %zu", told.spec);
}
