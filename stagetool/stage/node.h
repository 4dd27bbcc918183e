/*
 * A job on this node, as slurmd or a site's own Prolog and Epilog describe it in the environment;
 * and the answer to them.
 */
#ifndef STAGE_NODE_H
#define STAGE_NODE_H

#include <stdint.h>

#include "base/error.h"
#include "base/priv.h"
#include "spec/conf.h"
#include "spec/symbols.h"
#include "stage/ledger.h"
#include "stage/record.h"
#include "stage/state.h"

/* Strings are borrowed from the environment but for node; NULL where it does not say. */
struct node_job {
	const char *job_id;
	uint64_t restart, uid, gid;
	const char *user;
	const char *specs; /* spec_list_encode() of what it asked for */
	const char *name, *array_job_id, *array_task_id;
	char *node;
	const char *node_index;
	uint64_t node_count;
	const char *output; /* its output file */
	const char *state;  /* how it ended */
	int report;         /* where report lines go; -1: nowhere */
};

/* The name that Slurm has for this node; without it, the host's. Caller frees; NULL on ENOMEM. */
char *node_name(void);

/* Reads the environment. A job id, uid or gid that is missing or wrong is -EINVAL. Free with
 * node_job_free. */
int node_job_read(struct node_job *job, struct error *err);
void node_job_free(struct node_job *job);

/* Whose fault it is. */
enum node_blame { NODE_FINE, NODE_JOB, NODE_NODE };

struct node_verdict {
	enum node_blame blame;
	char *text; /* one line for people */
};

/* Takes text (NULL: out of memory, which the verdict then says). */
void node_verdict_set(struct node_verdict *verdict, enum node_blame blame, char *text);
void node_verdict_free(struct node_verdict *verdict);

/* What prolog and epilog work with. All borrowed. */
struct node {
	const struct node_job *job;
	const struct conf *conf;
	const struct state *state;
	/* Told of what is wrong and does not change the verdict; one line. */
	void (*warn)(const char *text);
	bool *stopped; /* set where a signal ended a stage-out; may be NULL */
};

void node_warn(const struct node *node, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Report lines. A reader that does not read loses progress, and keeps nobody waiting for long. */
void node_report_progress(const struct node_job *job, const char *text);
void node_report_verdict(const struct node_job *job, const struct node_verdict *verdict);

/* The id of this boot; NULL where the kernel does not say. Caller frees. */
char *node_boot_id(void);

/* What symbols stand for, from a record (borrowed). user is who the job runs as. */
void node_symbols(const struct record *record, struct symbols *symbols);

/* The tier that a record lies on, whatever the configuration says by now. Borrowed from record. */
void node_record_tier(const struct record *record, struct conf_tier *tier);

/* Fills outcomes with one entry for each thing that specs ask for. */
struct spec_list;
int node_expect(struct record *record, const struct spec_list *specs, struct error *err);

/* Takes over how far a worker says that it is, and whether it gets on. -EBADMSG. */
struct worker;
int node_take_progress(struct worker *worker, const json_t *message, uint64_t *files, uint64_t *bytes,
	struct error *err);

/* Takes over what a worker says of a spec (an untrusted message) into the outcome that is waiting
 * for it. -EBADMSG. */
int node_take_outcome(struct record *record, const json_t *message, struct error *err);

#endif
