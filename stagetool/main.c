#include "base/log.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct verb verb_table[] = {
	{ "copy", verb_copy, verb_copy_help, "copy files and trees, in parallel", false },
	{ "in", verb_in, verb_in_help, "bring files and trees into a stage", false },
	{ "out", verb_out, verb_out_help, "send back what changed in a stage", false },
	{ "plan", verb_plan, verb_plan_help, "say what in or out would do, and do nothing", false },
	{ "pack", verb_pack, verb_pack_help, "pack a tree into an archive, in parallel", false },
	{ "unpack", verb_unpack, verb_unpack_help, "unpack an archive, in parallel", false },
	{ "verify", verb_verify, verb_verify_help, "compare a stage with its manifest", false },
	{ "help", verb_help, verb_help_help, "explain a verb", false },
	{ "status", verb_status, verb_status_help, "show jobs on this node", false },
	{ "resume", verb_resume, verb_resume_help, "send the results that a node keeps", false },
	{ "prolog", verb_prolog, verb_prolog_help, "at the start of a job, as root", false },
	{ "epilog", verb_epilog, verb_epilog_help, "at the end of a job, as root", false },
	{ "reap", verb_reap, verb_reap_help, "finish what is left on a node, as root", false },
	{ NULL, NULL, NULL, NULL, false },
};

const struct verb *verb_find(const char *name)
{
	for (const struct verb *verb = verb_table; verb->name; verb++) {
		if (!strcmp(verb->name, name))
			return verb;
	}
	return NULL;
}

/* Returns text, cut at size: the verbs there are. */
static const char *main_verbs(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (const struct verb *verb = verb_table; verb->name && used < size; verb++) {
		if (!verb->hidden)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
				used ? " " : "", verb->name);
	}
	return text;
}

/* word is what stands in the place of the verb; NULL: nothing does. */
static int main_wrong(const char *word)
{
	char verbs[512];

	main_verbs(verbs, sizeof(verbs));
	if (!word)
		log_error("expected a verb (one of: %s); see stagetool --help", verbs);
	else if (word[0] == '-')
		log_error("unknown option %s before the verb (expected --help, --version or one of: "
			  "%s); see stagetool --help", word, verbs);
	else
		log_error("unknown verb '%s' (expected one of: %s); see stagetool --help", word, verbs);
	return VERB_USAGE;
}

static int main_version(void)
{
	struct error err = ERROR_INIT;

	if (!output_text("stagetool " PACKAGE_VERSION "\n", &err))
		return VERB_DONE;
	log_error("%s", err.text);
	return VERB_FAILED;
}

/* A standard descriptor that is closed would become that of a file we open, and a message would be written
 * into it. What takes its place fails where it is used. */
static bool main_guard_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_PATH);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int main(int argc, char **argv)
{
	char help_name[] = "help", *help[] = { help_name, NULL };
	const struct verb *verb;

	if (!main_guard_standard()) {
		log_error("/dev/null: %s", strerror(errno));
		return VERB_FAILED;
	}
	/* A reader that went away is an error of a write, not a reason to die in the middle of a copy. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return main_wrong(NULL);
	if (!strcmp(argv[1], "--version"))
		return main_version();
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return verb_help(1, help);
	verb = verb_find(argv[1]);
	return verb ? verb->run(argc - 1, argv + 1) : main_wrong(argv[1]);
}
