/*
 * failcall: runs a command and makes one of its system calls fail, or kills it there.
 * `failcall --help` says how.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/calls.h"
#include "fault/trace.h"

static const char help[] =
	"failcall --list [--below DIR] -- COMMAND...\n"
	"failcall --call NAME --at K (--errno ERRNO [--late] | --short N) [--every] -- COMMAND...\n"
	"failcall --call NAME|any --at K (--kill [--after] [--alone] | --signal N) -- COMMAND...\n"
	"\n"
	"The K-th call NAME of the command, its threads and its children together, returns -ERRNO\n"
	"and is not run (--late: is run, but its result is lost), or moves at most N bytes; with\n"
	"--every, all from the K-th on. --kill: all processes of the command get SIGKILL before\n"
	"that call runs (--after: when it has run; --alone: only the process that makes it).\n"
	"--signal: that process gets signal N before it.\n"
	"  --below DIR     only calls on files below DIR count\n"
	"  --entry         calls of the dynamic loader before the program's own do not count\n"
	"  --no-sleep      nanosleep and clock_nanosleep return almost at once\n"
	"  --user UID:GID  run the command as this user, without other groups\n"
	"  --timeout MS    kill all after so many milliseconds\n"
	"  --report FILE   write there whether the point was reached; default: standard error\n"
	"The exit status is the command's (128 + the signal that ended it); 125: failcall's own\n"
	"error, 124: the timeout.\n";

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	fputs("failcall: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(125);
}

static unsigned long number(const char *text, const char *option)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!*text || *end || *text == '-')
		die("%s: not a number: %s", option, text);
	return value;
}

static void parse_user(struct trace_plan *plan, const char *text)
{
	const char *colon = strchr(text, ':');
	char *end;

	if (!colon)
		die("--user: expected UID:GID");
	plan->uid = (uid_t)strtoul(text, &end, 10);
	if (end != colon)
		die("--user: expected UID:GID");
	plan->gid = (gid_t)number(colon + 1, "--user");
	plan->drop = true;
}

enum option_code { BELOW = 1, CALL, AT, ERRNO, SHORT, SIGNAL, USER, TIMEOUT, REPORT, HELP };

struct flags {
	int list, late, every, kill, after, alone, entry, no_sleep;
};

struct request {
	struct trace_plan plan;
	const char *report, *error, *length, *signal;
};

static void take_option(struct request *request, int code, const char *value)
{
	struct trace_plan *plan = &request->plan;

	switch (code) {
	case BELOW:
		plan->below = realpath(value, NULL);
		if (!plan->below)
			die("--below %s: %s", value, strerror(errno));
		break;
	case CALL:
		plan->call = calls_number(value);
		if (plan->call == -1)
			die("--call: no system call known as %s", value);
		break;
	case AT:
		plan->at = number(value, "--at");
		break;
	case ERRNO:
		request->error = value;
		plan->error = errnos_number(value);
		if (!plan->error)
			die("--errno: not known: %s", value);
		break;
	case SHORT:
		request->length = value;
		plan->length = number(value, "--short");
		break;
	case SIGNAL:
		request->signal = value;
		plan->signal = (int)number(value, "--signal");
		break;
	case USER:
		parse_user(plan, value);
		break;
	case TIMEOUT:
		plan->timeout = (unsigned)number(value, "--timeout");
		break;
	case REPORT:
		request->report = value;
		break;
	case HELP:
		fputs(help, stdout);
		exit(0);
	default:
		exit(125);
	}
}

static void choose_action(struct request *request, const struct flags *flags)
{
	struct trace_plan *plan = &request->plan;
	int chosen = flags->list + flags->kill + !!request->error + !!request->length +
		!!request->signal;

	if (chosen != 1)
		die("exactly one of --list, --errno, --short, --kill, --signal");
	if (flags->list) {
		plan->call = CALL_ANY;
		plan->action = TRACE_COUNT;
		return;
	}
	if (plan->call == -1 || !plan->at)
		die("--call and --at (from 1) are needed");
	if (plan->call == CALL_ANY && !flags->kill && !request->signal)
		die("--call any is for --kill and --signal");
	if (flags->kill)
		plan->action = flags->after ? TRACE_KILL_AFTER : TRACE_KILL;
	else if (request->signal)
		plan->action = TRACE_SIGNAL;
	else if (request->length)
		plan->action = TRACE_SHORT;
	else
		plan->action = flags->late ? TRACE_LATE : TRACE_FAIL;
	plan->every = flags->every;
	plan->alone = flags->alone;
	if (plan->action == TRACE_SHORT && calls_length_argument(calls_find(plan->call)) < 0)
		die("--short: this call has no length");
}

static void parse_words(struct request *request, int argc, char **argv)
{
	struct flags flags = { 0 };
	const struct option options[] = {
		{ "list", no_argument, &flags.list, 1 },
		{ "late", no_argument, &flags.late, 1 },
		{ "every", no_argument, &flags.every, 1 },
		{ "kill", no_argument, &flags.kill, 1 },
		{ "after", no_argument, &flags.after, 1 },
		{ "alone", no_argument, &flags.alone, 1 },
		{ "entry", no_argument, &flags.entry, 1 },
		{ "no-sleep", no_argument, &flags.no_sleep, 1 },
		{ "below", required_argument, NULL, BELOW },
		{ "call", required_argument, NULL, CALL },
		{ "at", required_argument, NULL, AT },
		{ "errno", required_argument, NULL, ERRNO },
		{ "short", required_argument, NULL, SHORT },
		{ "signal", required_argument, NULL, SIGNAL },
		{ "user", required_argument, NULL, USER },
		{ "timeout", required_argument, NULL, TIMEOUT },
		{ "report", required_argument, NULL, REPORT },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	int code;

	while ((code = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (code)
			take_option(request, code, optarg);
	}
	if (optind >= argc)
		die("no command");
	request->plan.argv = argv + optind;
	request->plan.from_entry = flags.entry;
	request->plan.no_sleep = flags.no_sleep;
	choose_action(request, &flags);
}

static void report_counts(const struct trace_result *result)
{
	char text[16];

	for (int i = 0; i < CALLS_MAX; i++) {
		if (result->counts[i])
			fprintf(stderr, "%s %lu %lu\n", calls_name(i, text, sizeof(text)),
				result->counts[i], result->below[i]);
	}
}

static void report(const struct request *request, const struct trace_result *result)
{
	char text[16];

	if (request->report && !freopen(request->report, "we", stderr))
		exit(125);
	if (request->plan.action == TRACE_COUNT)
		report_counts(result);
	else if (result->hits)
		fprintf(stderr, "failcall: reached: %s, %lu of %lu%s%s\n",
			calls_name(result->hit_call, text, sizeof(text)), result->hits,
			result->seen, result->hit_path[0] ? ", " : "", result->hit_path);
	else
		fprintf(stderr, "failcall: not reached: %lu such calls\n", result->seen);
	if (fflush(stderr) || ferror(stderr))
		exit(125);
}

int main(int argc, char **argv)
{
	struct request request = { .plan = { .out = -1, .err = -1, .call = -1 } };
	static struct trace_result result;
	int rc;

	parse_words(&request, argc, argv);
	rc = trace_run(&request.plan, &result);
	if (rc < 0)
		die("cannot trace: %s", strerror(-rc));
	report(&request, &result);
	free((char *)request.plan.below);
	if (result.timed_out)
		return 124;
	return WIFSIGNALED(result.status) ? 128 + WTERMSIG(result.status) :
					    WEXITSTATUS(result.status);
}
