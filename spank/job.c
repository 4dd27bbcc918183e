#include "spank/job.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* slurm_get_job_stdout() cuts at the size it is given. */
#define OUTPUT_SIZE (64 * 1024)

static int slurm_failure(struct error *err, const char *what, uint32_t id)
{
	int code = slurm_get_errno();

	return error_set(err, code == ESLURM_INVALID_JOB_ID ? -ESRCH : -EIO, "%s of job %u: %s",
		what, id, slurm_strerror(code));
}

static char *copy_text(const char *text)
{
	return strdup(text ? text : "");
}

static int copy_job(job_info_t *info, struct job *job, struct error *err)
{
	*job = (struct job){
		.id = info->job_id,
		.array_task = info->array_job_id != 0 && info->array_task_id != NO_VAL,
		.array_job_id = info->job_id,
		.state = info->job_state,
		.restarts = info->restart_cnt,
		.time_limit = info->time_limit,
		.submitted = info->submit_time,
		.batch = info->batch_flag != 0,
		.name = copy_text(info->name),
		.comment = copy_text(info->comment),
		.admin_comment = copy_text(info->admin_comment),
	};
	if (job->array_task) {
		job->array_job_id = info->array_job_id;
		job->array_task_id = info->array_task_id;
	}
	if (job->batch) {
		job->output = calloc(1, OUTPUT_SIZE);
		if (job->output)
			slurm_get_job_stdout(job->output, OUTPUT_SIZE, info);
	}
	if (job->name && job->comment && job->admin_comment && (job->output || !job->batch))
		return 0;
	job_free(job);
	return error_set(err, -ENOMEM, "job %u: out of memory", info->job_id);
}

static int load_once(uint32_t id, struct job *job, struct error *err)
{
	job_info_msg_t *message = NULL;
	int rc;

	if (slurm_load_job(&message, id, 0) != SLURM_SUCCESS)
		return slurm_failure(err, "asking slurmctld", id);
	/* For the id of an array the message holds all of its tasks. */
	rc = error_set(err, -ESRCH, "slurmctld does not know job %u", id);
	for (uint32_t i = 0; i < message->record_count; i++) {
		if (message->job_array[i].job_id == id) {
			rc = copy_job(&message->job_array[i], job, err);
			break;
		}
	}
	slurm_free_job_info_msg(message);
	return rc;
}

int job_load(uint32_t id, unsigned patience, struct job *job, struct error *err)
{
	struct timespec now;
	time_t end;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + (time_t)patience;
	for (;;) {
		struct error attempt = ERROR_INIT;

		rc = load_once(id, job, &attempt);
		if (!rc)
			return 0;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (rc != -EIO || now.tv_sec >= end)
			return error_set(err, rc, "%s", attempt.text);
		sleep(1);
	}
}

void job_free(struct job *job)
{
	free(job->name);
	free(job->output);
	free(job->comment);
	free(job->admin_comment);
	memset(job, 0, sizeof(*job));
}

const char *job_state_name(uint32_t state)
{
	static const char *const names[JOB_END] = {
		[JOB_PENDING] = "PENDING",
		[JOB_RUNNING] = "RUNNING",
		[JOB_SUSPENDED] = "SUSPENDED",
		[JOB_COMPLETE] = "COMPLETED",
		[JOB_CANCELLED] = "CANCELLED",
		[JOB_FAILED] = "FAILED",
		[JOB_TIMEOUT] = "TIMEOUT",
		[JOB_NODE_FAIL] = "NODE_FAIL",
		[JOB_PREEMPTED] = "PREEMPTED",
		[JOB_BOOT_FAIL] = "BOOT_FAIL",
		[JOB_DEADLINE] = "DEADLINE",
		[JOB_OOM] = "OUT_OF_MEMORY",
	};
	uint32_t base = state & JOB_STATE_BASE;

	if ((state & (JOB_REQUEUE | JOB_REQUEUE_HOLD)) || base == JOB_PENDING)
		return "REQUEUED";
	/* Without the flags: a job in its epilog is COMPLETING whatever its end was. */
	return base < JOB_END ? names[base] : "UNKNOWN";
}

bool job_is_live(const struct job *job)
{
	uint32_t base = job->state & JOB_STATE_BASE;

	return !(job->state & JOB_COMPLETING) && (base == JOB_RUNNING || base == JOB_SUSPENDED);
}

static int update(
	const struct job *job, job_desc_msg_t *message, const char *what, struct error *err)
{
	message->job_id = job->id;
	if (slurm_update_job(message) != SLURM_SUCCESS)
		return slurm_failure(err, what, job->id);
	return 0;
}

int job_set_comments(
	const struct job *job, const char *comment, const char *admin_comment, struct error *err)
{
	autofree char *comment_copy = comment ? strdup(comment) : NULL;
	autofree char *admin_copy = admin_comment ? strdup(admin_comment) : NULL;
	job_desc_msg_t message;

	slurm_init_job_desc_msg(&message);
	message.comment = comment_copy;
	message.admin_comment = admin_copy;
	return update(job, &message, "setting the comment", err);
}

int job_set_time_limit(const struct job *job, uint32_t minutes, struct error *err)
{
	job_desc_msg_t message;

	slurm_init_job_desc_msg(&message);
	message.time_limit = minutes;
	return update(job, &message, "raising the time limit", err);
}

void job_tell(const struct job *job, const char *text)
{
	autofree char *copy = strdup(text);

	if (copy)
		slurm_notify_job(job->id, copy);
}

int job_fail(uint32_t id, struct error *err)
{
	/* A wait status: exit code 1. */
	if (slurm_complete_job(id, 1 << 8) != SLURM_SUCCESS)
		return slurm_failure(err, "ending", id);
	return 0;
}

int job_requeue(const struct job *job, struct error *err)
{
	if (slurm_requeue(job->id, 0) != SLURM_SUCCESS)
		return slurm_failure(err, "requeueing", job->id);
	return 0;
}

int job_drain_node(const char *node, const char *reason, struct error *err)
{
	autofree char *node_copy = strdup(node);
	autofree char *reason_copy = strdup(reason);
	update_node_msg_t message;

	slurm_init_update_node_msg(&message);
	message.node_names = node_copy;
	message.reason = reason_copy;
	message.reason_uid = getuid();
	message.node_state = NODE_STATE_DRAIN;
	if (slurm_update_node(&message) != SLURM_SUCCESS)
		return error_set(
			err, -EIO, "draining node %s: %s", node, slurm_strerror(slurm_get_errno()));
	return 0;
}

bool job_waits_for_prologs(bool batch)
{
	slurm_conf_t *conf = NULL;
	uint16_t wanted = batch ? PROLOG_FLAG_ALLOC | PROLOG_FLAG_DEFER_BATCH : PROLOG_FLAG_ALLOC;
	bool waits;

	if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
		return false;
	waits = (conf->prolog_flags & wanted) == wanted;
	slurm_free_ctl_conf(conf);
	return waits;
}

int job_node_place(
	const char *nodelist, const char *node, int *index, int *count, struct error *err)
{
	hostlist_t list = slurm_hostlist_create(nodelist);

	if (!list)
		return error_set(err, -EINVAL, "'%s' is not a list of nodes", nodelist);
	*index = slurm_hostlist_find(list, node);
	*count = slurm_hostlist_count(list);
	slurm_hostlist_destroy(list);
	if (*index < 0)
		return error_set(
			err, -EINVAL, "node %s is not among the job's nodes %s", node, nodelist);
	return 0;
}
