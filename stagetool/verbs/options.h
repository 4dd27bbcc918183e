/*
 * The options that verbs have in common, and reading those of one verb.
 */
#ifndef VERBS_OPTIONS_H
#define VERBS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "base/error.h"

/* Common options that a verb must ask for. --help, --json, -q and -v belong to every verb. */
enum {
	OPTIONS_DIR = 1, /* --dir */
	OPTIONS_THREADS = 2, /* --threads */
	OPTIONS_ENGINE = 4, /* --engine */
	OPTIONS_CONF = 8, /* --conf */
};

/* What was given. Strings are borrowed from argv. */
struct options {
	bool json, quiet, verbose;
	const char *dir; /* NULL: not given */
	unsigned threads; /* 0: not given */
	const char *engine; /* NULL: not given */
	const char *conf; /* NULL: not given */
	char **words; /* what is not an option, in order */
	int n_words;
};

/* The val of a verb's own long options counts from this. */
#define OPTIONS_OWN 1000

struct options_spec {
	const char *verb; /* its name, for messages */
	const char *help;
	unsigned common; /* OPTIONS_* bits */
	const struct option *own; /* long options of this verb, ended by zeros; NULL: none */
	/* Told of each own option in the order given. A negative return is wrong usage; err says what was
	 * expected. */
	int (*set)(void *ctx, int val, const char *value, struct error *err);
	void *ctx;
	const char *words; /* for the message when there are too few or many: "FROM... TO" */
	int min_words, max_words; /* max_words -1: any number */
};

/* Reads argv (which is permuted), prints the help if asked for, reports wrong usage, and sets the level of
 * the log. False: the verb is to return *status. */
bool options_parse(int argc, char **argv, const struct options_spec *spec, struct options *options,
	int *status);

/* Reports wrong usage of verb: one line with what was expected and where to read on. Returns VERB_USAGE. */
int options_wrong(const char *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The configuration's path: --conf, $STAGE_CONF (which a job has where plugstack.conf says conf=), or the
 * one that was built in. Borrowed. */
const char *options_conf(const struct options *options);

/* Parts of help texts, so that common options read the same in every verb. */
#define OPTIONS_HELP_DIR "      --dir=DIR          the stage; default: $STAGE_DIR\n"
#define OPTIONS_HELP_THREADS "      --threads=N        work with N threads, 1 to 512; default: as many as help\n"
#define OPTIONS_HELP_ENGINE                                                                        \
	"      --engine=NAME      move bytes in this way and no other: reflink,\n"                         \
	"                         copy_file_range, readwrite; default: what works best\n"
#define OPTIONS_HELP_CONF                                                                          \
	"      --conf=FILE        the configuration; default: $STAGE_CONF, else\n"                        \
	"                         " CONF_PATH "\n"
#define OPTIONS_HELP_COMMON                                                                        \
	"      --json             print the result as one JSON object on standard output\n"                \
	"  -q, --quiet            say nothing but problems\n"                                              \
	"  -v, --verbose          say more\n"                                                              \
	"  -h, --help             print this and exit\n"

#endif
