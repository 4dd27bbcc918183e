#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "stage/changes.h"
#include "stage/estimate.h"
#include "verbs/damaged.h"
#include "verbs/hand.h"
#include "verbs/hand_space.h"
#include "verbs/interrupt.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

const char verb_plan_help[] =
	"Usage: stagetool plan [options] in FROM[:TO][,opt[=value]]...\n"
	"       stagetool plan [options] out FROM:TO[,opt[=value]]...\n"
	"\n"
	"Says what stagetool in or stagetool out would do, and does nothing: what goes\n"
	"where, how many entries and bytes that is, whether it fits, and, of a stage-in,\n"
	"about how long it takes, from a look at a few of the files. Of a stage-out it\n"
	"says what is new or changed.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_DIR OPTIONS_HELP_THREADS OPTIONS_HELP_COMMON "\n"
	"Exit status:\n"
	"  0  it can be done\n"
	"  1  it can not: a FROM is missing or may not be read\n"
	"  2  wrong usage\n"
	"  4  it does not fit: bytes or inodes\n";

struct planning {
	struct hand hand;
	struct changes *changes; /* of out, one for each item */
	struct estimate estimate;
	struct error space; /* of in: why it does not fit */
};

/* How long that takes depends on what is in it. */
static bool has_archive(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->items[i].spec->as == SPEC_AS_UNPACK)
			return true;
	return false;
}

static int plan_ins(struct planning *planning, const atomic_bool *cancel, struct error *err)
{
	struct hand *hand = &planning->hand;
	int rc = plan_in(&hand->list, &hand->context, &hand->plan, err);

	if (rc == 0)
		rc = plan_measure(hand->plan, hand->options.threads, cancel, err);
	if (rc == 0)
		rc = hand_space_check(hand, cancel, &planning->space);
	if (rc < 0 && rc != -ENOSPC)
		return planning->space.code ? error_set(err, rc, "%s", planning->space.text) : rc;
	if (!has_archive(hand->plan))
		estimate_make(hand->plan, hand->options.threads, &planning->estimate);
	return 0;
}

static int plan_outs(struct planning *planning, const atomic_bool *cancel, struct error *err)
{
	struct hand *hand = &planning->hand;
	int rc = plan_out(&hand->list, &hand->context, &hand->plan, err);

	if (rc < 0)
		return rc;
	planning->changes = calloc(hand->plan->count + 1, sizeof(*planning->changes));
	if (!planning->changes)
		return error_sys(err, -ENOMEM, "plan");
	for (size_t i = 0; i < hand->plan->count && rc == 0; i++) {
		const struct plan_item *item = &hand->plan->items[i];

		if (item->problem)
			return error_set(
				err, -ENOENT, "stage-out %s: %s", item->spec->text, item->problem);
		if (!item->missing)
			rc = changes_find(item, hand->stagefd, hand->options.threads, cancel,
				&planning->changes[i], err);
	}
	return rc;
}

/* Control bytes escaped, so that an item is one line. */
static void print_name(FILE *stream, const char *name, const char *after)
{
	size_t size = 4 * strlen(name) + 1;
	char *shown = malloc(size);

	if (shown)
		fprintf(stream, "%s%s", log_escape(name, shown, size), after);
	free(shown);
}

static void print_in(FILE *stream, const struct planning *planning)
{
	const struct plan *plan = planning->hand.plan;
	char size[32];

	for (size_t i = 0; i < plan->count; i++) {
		print_name(stream, plan->items[i].shared, " -> ");
		print_name(stream, plan->items[i].local, ": ");
		parse_format_size(plan->items[i].bytes, size, sizeof(size));
		if (plan->items[i].spec->as == SPEC_AS_UNPACK)
			fprintf(stream, "an archive of %s, to be unpacked: at least as much\n",
				size);
		else
			fprintf(stream, "%llu entries, %s\n",
				(unsigned long long)plan->items[i].inodes, size);
	}
	fprintf(stream, "%s: %llu entries, %s\n",
		planning->space.code ? planning->space.text : "it fits",
		(unsigned long long)plan->inodes,
		parse_format_size(plan->bytes, size, sizeof(size)));
}

static void print_estimate(FILE *stream, const struct estimate *estimate)
{
	char rate[32], time[32];

	if (!estimate->files)
		return;
	fprintf(stream, "about %s (%u %s looked at: %.2f ms each",
		parse_format_duration(estimate->seconds, time, sizeof(time)), estimate->files,
		estimate->files == 1 ? "file was" : "files were",
		estimate->file_seconds * 1e3);
	if (estimate->bytes_second > 0)
		fprintf(stream, ", %s/s",
			parse_format_size((uint64_t)estimate->bytes_second, rate, sizeof(rate)));
	fprintf(stream, ")\n");
}

static bool pays(const struct estimate *estimate)
{
	return estimate->passes > 0 && estimate->passes <= ESTIMATE_PASSES_MOST;
}

static void print_worth(FILE *stream, const struct estimate *estimate)
{
	char time[32];

	if (!estimate->files)
		return;
	parse_format_duration(estimate->pass_seconds, time, sizeof(time));
	if (!pays(estimate))
		fprintf(stream,
			"it will not pay: read where it is, one file after the other, that is about %s\n",
			time);
	else if (estimate->passes <= 1)
		fprintf(stream,
			"it pays: read where it is, one file after the other, that would be about %s\n",
			time);
	else
		fprintf(stream, "it pays if it is read more than %.0f times: once where it is would be about %s\n",
			estimate->passes, time);
}

static void print_out(FILE *stream, const struct planning *planning)
{
	const struct plan *plan = planning->hand.plan;
	char size[32];

	for (size_t i = 0; i < plan->count; i++) {
		const struct changes *changes = &planning->changes[i];

		print_name(stream, plan->items[i].local, " -> ");
		print_name(stream, plan->items[i].shared, ": ");
		if (plan->items[i].missing)
			fprintf(stream, "not there, and need not be\n");
		else
			fprintf(stream, "%llu entries to send, %s; %llu unchanged\n",
				(unsigned long long)changes->entries,
				parse_format_size(changes->bytes, size, sizeof(size)),
				(unsigned long long)changes->unchanged);
	}
}

static int print(const struct planning *planning, bool in, struct error *err)
{
	autofree char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_errno(err, "plan");
	(in ? print_in : print_out)(stream, planning);
	print_estimate(stream, &planning->estimate);
	print_worth(stream, &planning->estimate);
	if (fclose(stream) == EOF)
		return error_errno(err, "plan");
	return output_text(text, err);
}

static json_t *item_json(const struct planning *planning, size_t i, bool in)
{
	const struct plan_item *item = &planning->hand.plan->items[i];
	const struct changes none = { 0 }, *changes = in ? &none : &planning->changes[i];

	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I}", "spec",
		summary_json_bytes(item->spec->text), "shared", summary_json_bytes(item->shared),
		"local", summary_json_bytes(item->local), "entries",
		(json_int_t)(in ? item->inodes : changes->entries), "bytes",
		(json_int_t)(in ? item->bytes : changes->bytes), "unchanged",
		(json_int_t)changes->unchanged);
}

static json_t *planning_json(const struct planning *planning, bool in)
{
	const struct plan *plan = planning->hand.plan;
	json_t *json = json_pack("{s:s}", "direction", in ? "in" : "out");
	json_t *items = json_array();

	for (size_t i = 0; plan && (in || planning->changes) && i < plan->count; i++)
		json_array_append_new(items, item_json(planning, i, in));
	if (json)
		json_object_set_new(json, "items", items);
	if (json && plan && in) {
		json_object_set_new(json, "fits", json_boolean(!planning->space.code));
		json_object_set_new(json, "entries", json_integer((json_int_t)plan->inodes));
		json_object_set_new(json, "bytes", json_integer((json_int_t)plan->bytes));
		json_object_set_new(json, "seconds", json_real(planning->estimate.seconds));
		json_object_set_new(
			json, "pass_seconds", json_real(planning->estimate.pass_seconds));
		json_object_set_new(json, "pays", json_boolean(pays(&planning->estimate)));
	}
	return json;
}

static int report(struct planning *planning, bool in, int rc, struct error *err)
{
	int status = rc < 0 ? VERB_FAILED : (planning->space.code ? VERB_NO_SPACE : VERB_DONE);

	if (rc == 0 && !planning->hand.options.json && print(planning, in, err) < 0) {
		rc = err->code;
		status = VERB_FAILED;
	}
	if (rc < 0)
		log_error("plan: %s", err->text);
	if (!planning->hand.options.json)
		return status;
	return output_result("plan", planning_json(planning, in), status,
		planning->space.code ? &planning->space : err);
}

static int run(struct planning *planning, bool in)
{
	struct error err = ERROR_INIT;
	struct interrupt *interrupt = NULL;
	int rc;

	damaged_guard();
	rc = interrupt_start(&interrupt, &err);
	int status;

	if (rc == 0)
		rc = hand_symbols(&planning->hand, &err);
	if (rc == 0)
		rc = in ? hand_open_above(&planning->hand, &err)
			: hand_open(&planning->hand, false, &err);
	if (rc == 0)
		rc = (in ? plan_ins : plan_outs)(planning, interrupt_flag(interrupt), &err);
	status = report(planning, in, rc, &err);
	free(planning->changes);
	hand_free(&planning->hand);
	interrupt_stop(interrupt);
	return status;
}

int verb_plan(int argc, char **argv)
{
	struct planning planning = { .hand = { .verb = "plan", .stagefd = -1 } };
	const struct options_spec spec = {
		.verb = "plan",
		.help = verb_plan_help,
		.common = OPTIONS_DIR | OPTIONS_THREADS,
		.words = "in|out SPEC...",
		.min_words = 2,
		.max_words = -1,
	};
	struct hand *hand = &planning.hand;
	struct error err = ERROR_INIT;
	const char *way;
	int status;

	if (!options_parse(argc, argv, &spec, &hand->options, &status))
		return status;
	way = hand->options.words[0];
	if (strcmp(way, "in") != 0 && strcmp(way, "out") != 0)
		return options_wrong("plan", "expected \"in\" or \"out\" first, not \"%s\"", way);
	hand->options.words++;
	hand->options.n_words--;
	if (hand_specs(hand, strcmp(way, "in") == 0 ? SPEC_IN : SPEC_OUT, &err) < 0) {
		hand_free(hand);
		return options_wrong("plan", "%s", err.text);
	}
	return run(&planning, strcmp(way, "in") == 0);
}
