#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "stage/check.h"
#include "verbs/damaged.h"
#include "verbs/hand.h"
#include "verbs/interrupt.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

const char verb_verify_help[] =
	"Usage: stagetool verify [options]\n"
	"\n"
	"Compares a stage with its manifest, and names what is missing, changed or new\n"
	"since it was staged in. A change is any difference in size, modification time,\n"
	"change time or inode, so a file that was written to and given its old time is\n"
	"found, and nothing needs to be read.\n"
	"\n"
	"With --content every file that is unchanged by these marks is read, after what\n"
	"was written has been flushed and dropped from the cache, and so is its source:\n"
	"the bytes of both are compared.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_DIR
	"      --content          read files and their sources, and compare\n" OPTIONS_HELP_THREADS
		OPTIONS_HELP_COMMON "\n"
	"Exit status:\n"
	"  0  all is as it was staged in\n"
	"  1  it failed: there is no manifest, or it can not be read\n"
	"  2  wrong usage\n"
	"  3  there are differences, each is named\n";

enum { KEY_CONTENT = OPTIONS_OWN };

static const struct option own_options[] = {
	{ "content", no_argument, NULL, KEY_CONTENT },
	{ NULL, 0, NULL, 0 },
};

static const char *const kinds[CHECK_KINDS] = {
	[CHECK_MISSING] = "missing",
	[CHECK_CHANGED] = "changed",
	[CHECK_NEW] = "new",
	[CHECK_UNKNOWN] = "unknown",
};

struct verify {
	struct hand hand;
	bool content;
	struct check_counts counts;
	json_t *problems;
};

static int set(void *ctx, int key, const char *value, struct error *err)
{
	struct verify *verify = ctx;

	(void)key, (void)value, (void)err;
	verify->content = true;
	return 0;
}

static void difference(void *ctx, const char *path, enum check_kind kind, const char *text)
{
	struct verify *verify = ctx;
	const char *shown = *path ? path : ".";

	log_error("%s: %s: %s", shown, kinds[kind], text);
	if (verify->problems && json_array_size(verify->problems) < SUMMARY_MAX_NAMED)
		json_array_append_new(verify->problems,
			json_pack("{s:o, s:s, s:s}", "path", summary_json_bytes(shown), "kind",
				kinds[kind], "text", text));
}

static bool differs(const struct verify *verify)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < CHECK_KINDS; kind++)
		sum += verify->counts.of[kind];
	return sum != 0;
}

static void say(const struct verify *verify)
{
	const struct check_counts *counts = &verify->counts;
	char size[32], read[96] = "nothing was read";

	if (verify->content)
		snprintf(read, sizeof(read), "%llu files, %s read here and at the source",
			(unsigned long long)counts->files_read,
			parse_format_size(counts->bytes_read, size, sizeof(size)));
	log_info("compared with the manifest (%s): %llu as staged in, %llu changed, %llu missing, "
		 "%llu new, %llu unknown",
		read, (unsigned long long)counts->same,
		(unsigned long long)counts->of[CHECK_CHANGED],
		(unsigned long long)counts->of[CHECK_MISSING],
		(unsigned long long)counts->of[CHECK_NEW],
		(unsigned long long)counts->of[CHECK_UNKNOWN]);
}

static json_t *verify_json(struct verify *verify)
{
	const struct check_counts *counts = &verify->counts;
	json_t *json = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I}", "same",
		(json_int_t)counts->same, "changed", (json_int_t)counts->of[CHECK_CHANGED],
		"missing", (json_int_t)counts->of[CHECK_MISSING], "new",
		(json_int_t)counts->of[CHECK_NEW], "unknown", (json_int_t)counts->of[CHECK_UNKNOWN],
		"content", verify->content, "files_read", (json_int_t)counts->files_read,
		"bytes_read", (json_int_t)counts->bytes_read);

	if (json)
		json_object_set(json, "problems", verify->problems);
	return json;
}

static int run_verify(struct verify *verify, const atomic_bool *cancel, struct error *err)
{
	struct check_options options = {
		.content = verify->content,
		.threads = verify->hand.options.threads,
		.cancel = cancel,
		.difference = difference,
		.ctx = verify,
	};
	int rc = hand_open(&verify->hand, false, err);

	return rc < 0 ? rc : check_stage(verify->hand.stagefd, &options, &verify->counts, err);
}

static int run(struct verify *verify)
{
	struct error err = ERROR_INIT;
	struct interrupt *interrupt = NULL;
	int rc;

	damaged_guard();
	rc = interrupt_start(&interrupt, &err);
	int status;

	verify->problems = json_array();
	if (rc == 0)
		rc = run_verify(verify, interrupt_flag(interrupt), &err);
	status = rc < 0 ? VERB_FAILED : (differs(verify) ? VERB_INCOMPLETE : VERB_DONE);
	if (rc == 0)
		say(verify);
	else
		log_error("verify: %s", err.text);
	if (verify->hand.options.json)
		status = output_result("verify", verify_json(verify), status, &err);
	json_decref(verify->problems);
	hand_free(&verify->hand);
	interrupt_stop(interrupt);
	return status;
}

int verb_verify(int argc, char **argv)
{
	struct verify verify = { .hand = { .verb = "verify", .stagefd = -1 } };
	const struct options_spec spec = {
		.verb = "verify",
		.help = verb_verify_help,
		.common = OPTIONS_DIR | OPTIONS_THREADS,
		.own = own_options,
		.set = set,
		.ctx = &verify,
		.words = "",
	};
	struct error err = ERROR_INIT;
	int status;

	if (!options_parse(argc, argv, &spec, &verify.hand.options, &status))
		return status;
	if (hand_specs(&verify.hand, SPEC_IN, &err) < 0) {
		hand_free(&verify.hand);
		return options_wrong("verify", "%s", err.text);
	}
	return run(&verify);
}
