#include <errno.h>

#include "verbs/damaged.h"
#include "verbs/hand.h"
#include "verbs/hand_space.h"
#include "verbs/interrupt.h"
#include "verbs/verbs.h"

const char verb_in_help[] =
	"Usage: stagetool in [options] FROM[:TO][,opt[=value]]...\n"
	"\n"
	"Brings files and trees into a stage, and remembers how they were, so that\n"
	"stagetool out can send back what changed. FROM is on the shared filesystem\n"
	"(relative: below the working directory); TO is the new name of FROM below the\n"
	"stage, or, where it ends in '/', the directory that FROM goes into under its own\n"
	"name. FROM may be a pattern, then TO ends in '/'. A '/' at the end of FROM means\n"
	"nothing. @FILE reads specs from FILE, one a line. The options of a spec\n"
	"(include=, exclude=, verify, optional ...) are in stagetool(1).\n"
	"\n"
	"The stage is made, for its owner alone, if it is not there. Nothing is copied\n"
	"unless all of it fits, in bytes and inodes. A file in the stage that was\n"
	"changed, or that was not staged in and differs from its source, is never\n"
	"replaced. Once more, it brings what has changed at the source since.\n"
	"\n"
	"Options:\n" OPTIONS_HELP_DIR OPTIONS_HELP_THREADS OPTIONS_HELP_ENGINE OPTIONS_HELP_COMMON
	"\n"
	"Exit status:\n"
	"  0  all done\n"
	"  1  it failed: a FROM is missing or may not be read, the stage is in use\n"
	"  2  wrong usage: nothing was tried\n"
	"  3  some entries failed, lack an attribute, or changed or vanished while they\n"
	"     were read; each is named, the others are done\n"
	"  4  it does not fit: bytes or inodes; what was brought is gone again\n"
	"  5  a file in the stage was kept where its source has another one\n"
	"Stopped by a signal it leaves what is complete, and ends by that signal.\n";

static int run_in(struct hand *hand, const atomic_bool *cancel, struct error *err)
{
	int rc = hand_symbols(hand, err);

	if (rc == 0)
		rc = hand_open(hand, true, err);
	if (rc == 0)
		rc = plan_in(&hand->list, &hand->context, &hand->plan, err);
	if (rc == 0)
		rc = plan_measure(hand->plan, hand->options.threads, cancel, err);
	if (rc == 0)
		rc = hand_space_check(hand, cancel, err);
	return rc < 0 ? rc : hand_transfer(hand, true, cancel, err);
}

static int run(struct hand *hand)
{
	struct error err = ERROR_INIT;
	struct interrupt *interrupt = NULL;
	int rc, status;

	damaged_guard();
	rc = interrupt_start(&interrupt, &err);

	if (rc == 0)
		rc = run_in(hand, interrupt_flag(interrupt), &err);
	status = hand_report(hand, rc, &err);
	hand_free(hand);
	interrupt_stop(interrupt);
	return status;
}

static int refuse_views(const struct spec_list *list, struct error *err)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].at)
			return error_set(err, -EINVAL,
				"%s: \"at\" needs a mount namespace, which the tasks of a job get: give "
				"it to sbatch, salloc or srun",
				list->items[i].text);
	return 0;
}

int verb_in(int argc, char **argv)
{
	struct hand hand = { .verb = "in", .stagefd = -1 };
	const struct options_spec spec = {
		.verb = "in",
		.help = verb_in_help,
		.common = OPTIONS_DIR | OPTIONS_THREADS | OPTIONS_ENGINE,
		.words = "FROM[:TO]...",
		.min_words = 1,
		.max_words = -1,
	};
	struct error err = ERROR_INIT;
	int status;

	if (!options_parse(argc, argv, &spec, &hand.options, &status))
		return status;
	if (hand_specs(&hand, SPEC_IN, &err) < 0 || refuse_views(&hand.list, &err) < 0) {
		hand_free(&hand);
		return options_wrong("in", "%s", err.text);
	}
	return run(&hand);
}
