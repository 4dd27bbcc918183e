#include "verbs/damaged.h"
#include "verbs/hand.h"
#include "verbs/interrupt.h"
#include "verbs/verbs.h"

const char verb_out_help[] =
	"Usage: stagetool out [options] FROM:TO[,opt[=value]]...\n"
	"\n"
	"Sends back what is new or changed in a stage, and remembers what it sent: once\n"
	"more, it sends nothing. FROM is below the stage ('.' is the stage itself); TO is\n"
	"on the shared filesystem (relative: below the working directory), and is the new\n"
	"name of FROM, or, where it ends in '/', the directory that FROM goes into under\n"
	"its own name. FROM may be a pattern, then TO ends in '/'. @FILE reads specs from\n"
	"FILE, one a line. The options of a spec (conflict=, delete, receipt, include=,\n"
	"exclude=, verify, optional ...) are in stagetool(1).\n"
	"\n"
	"Each file appears under its name when it is whole and on stable storage. A file\n"
	"at TO is replaced only if it is still the one that was staged in or sent;\n"
	"otherwise conflict= decides, by default ours is kept beside it.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_DIR OPTIONS_HELP_THREADS OPTIONS_HELP_ENGINE OPTIONS_HELP_COMMON
	"\n"
	"Exit status:\n"
	"  0  all done\n"
	"  1  it failed: nothing could be sent, or the stage is in use\n"
	"  2  wrong usage: nothing was tried\n"
	"  3  some entries failed, lack an attribute, or changed or vanished while they\n"
	"     were read; each is named, the others are done\n"
	"  5  conflicts: both files were kept, each is named\n"
	"Whatever the outcome, nothing in the stage is removed. Stopped by a signal it\n"
	"removes its temporary files, and ends by that signal.\n";

static int run_out(struct hand *hand, const atomic_bool *cancel, struct error *err)
{
	int rc = hand_symbols(hand, err);

	if (rc == 0)
		rc = hand_open(hand, false, err);
	if (rc == 0)
		rc = plan_out(&hand->list, &hand->context, &hand->plan, err);
	return rc < 0 ? rc : hand_transfer(hand, false, cancel, err);
}

static int run(struct hand *hand)
{
	struct error err = ERROR_INIT;
	struct interrupt *interrupt = NULL;
	int rc, status;

	damaged_guard();
	rc = interrupt_start(&interrupt, &err);

	if (rc == 0)
		rc = run_out(hand, interrupt_flag(interrupt), &err);
	status = hand_report(hand, rc, &err);
	hand_free(hand);
	interrupt_stop(interrupt);
	return status;
}

int verb_out(int argc, char **argv)
{
	struct hand hand = { .verb = "out", .stagefd = -1 };
	const struct options_spec spec = {
		.verb = "out",
		.help = verb_out_help,
		.common = OPTIONS_DIR | OPTIONS_THREADS | OPTIONS_ENGINE,
		.words = "FROM:TO...",
		.min_words = 1,
		.max_words = -1,
	};
	struct error err = ERROR_INIT;
	int status;

	if (!options_parse(argc, argv, &spec, &hand.options, &status))
		return status;
	if (hand_specs(&hand, SPEC_OUT, &err) < 0) {
		hand_free(&hand);
		return options_wrong("out", "%s", err.text);
	}
	return run(&hand);
}
