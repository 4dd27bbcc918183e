/*
 * The verbs of the command: stagetool VERB [options] words.
 *
 * One file per verb, verbs/VERB.c, holds its run function and its help. The table (in main.c) has one line
 * for each.
 */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include <stdbool.h>

/* What the command's exit status means. */
enum verb_status {
	VERB_DONE, /* all done */
	VERB_FAILED, /* it could not be done */
	VERB_USAGE, /* wrong usage: nothing was tried */
	VERB_INCOMPLETE, /* some entries failed, each is named, the others are done */
	VERB_NO_SPACE, /* bytes, inodes or quota do not suffice */
	VERB_CONFLICTS, /* conflicts were kept, nothing else failed */
};

struct verb {
	const char *name;
	/* argv[0] is the verb's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
	const char *help; /* what --help prints, whole */
	const char *summary; /* one line, in the list of verbs */
	bool hidden; /* not in the list of verbs */
};

/* Ended by a row whose name is NULL. */
extern const struct verb verb_table[];

/* The row of a verb, NULL if there is none. */
const struct verb *verb_find(const char *name);

int verb_copy(int argc, char **argv);
int verb_epilog(int argc, char **argv);
int verb_help(int argc, char **argv);
int verb_in(int argc, char **argv);
int verb_out(int argc, char **argv);
int verb_pack(int argc, char **argv);
int verb_plan(int argc, char **argv);
int verb_prolog(int argc, char **argv);
int verb_reap(int argc, char **argv);
int verb_resume(int argc, char **argv);
int verb_status(int argc, char **argv);
int verb_unpack(int argc, char **argv);
int verb_verify(int argc, char **argv);

extern const char verb_copy_help[];
extern const char verb_epilog_help[];
extern const char verb_help_help[];
extern const char verb_in_help[];
extern const char verb_out_help[];
extern const char verb_pack_help[];
extern const char verb_plan_help[];
extern const char verb_prolog_help[];
extern const char verb_reap_help[];
extern const char verb_resume_help[];
extern const char verb_status_help[];
extern const char verb_unpack_help[];
extern const char verb_verify_help[];

#endif
