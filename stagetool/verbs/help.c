#include "base/cleanup.h"
#include "base/log.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

#include <stdio.h>
#include <stdlib.h>

const char verb_help_help[] =
	"Usage: stagetool help [VERB]\n"
	"\n"
	"Prints what VERB does and its options, as stagetool VERB --help does. Without\n"
	"VERB: the list of verbs.\n"
	"\n"
	"Options:\n"
	OPTIONS_HELP_COMMON;

static const char head[] =
	"Usage: stagetool VERB [options] ...\n"
	"\n"
	"Brings data to a node's local storage and results back.\n"
	"\n"
	"Verbs:\n";

static const char tail[] =
	"\n"
	"Options:\n"
	"      --version          print the version and exit\n"
	"  -h, --help             print this, or after VERB what that verb does, and exit\n"
	"\n"
	"Exit status:\n"
	"  0  all done\n"
	"  1  it failed\n"
	"  2  wrong usage: nothing was tried\n"
	"  3  some entries failed and the others are done; each failed one is named\n"
	"  4  it does not fit: bytes, inodes or quota\n"
	"  5  conflicts were kept; nothing else failed\n";

static int help_list(struct error *err)
{
	autofree char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_errno(err, "help");
	fputs(head, stream);
	for (const struct verb *verb = verb_table; verb->name; verb++) {
		if (!verb->hidden)
			fprintf(stream, "  %-8s %s\n", verb->name, verb->summary);
	}
	fputs(tail, stream);
	if (fclose(stream) == EOF)
		return error_errno(err, "help");
	return output_text(text, err);
}

int verb_help(int argc, char **argv)
{
	static const struct options_spec spec = {
		.verb = "help",
		.help = verb_help_help,
		.words = "[VERB]",
		.max_words = 1,
	};
	const struct verb *verb = NULL;
	struct error err = ERROR_INIT;
	struct options options;
	int status;

	if (!options_parse(argc, argv, &spec, &options, &status))
		return status;
	if (options.n_words) {
		verb = verb_find(options.words[0]);
		if (!verb) {
			log_error("unknown verb '%s'; see stagetool --help", options.words[0]);
			return VERB_USAGE;
		}
	}
	if ((verb ? output_text(verb->help, &err) : help_list(&err)) < 0) {
		log_error("help: %s", err.text);
		return VERB_FAILED;
	}
	return VERB_DONE;
}
