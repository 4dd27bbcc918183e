#include "archive/pack_file.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "report/progress.h"
#include "verbs/interrupt.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/problem.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char verb_pack_help[] =
	"Usage: stagetool pack [options] DIR ARCHIVE\n"
	"\n"
	"Packs what is in DIR, and DIR's own attributes, into ARCHIVE, in parallel: the\n"
	"next files are read while one is written. Nanoseconds, extended attributes,\n"
	"ACLs, hard links and holes are in it (tar); the order depends on names only.\n"
	"\n"
	"ARCHIVE appears under its name when it is whole and on stable storage; a file\n"
	"that was there is replaced then. The name says the format: NAME.tar.zst,\n"
	"NAME.tar.gz, NAME.tar (pax), NAME.zip. zip has no place for hard links, holes,\n"
	"extended attributes, ACLs, FIFOs and fractions of seconds.\n"
	"\n"
	"Options:\n"
	"      --format=NAME      tar.zst, tar.gz, tar or zip, whatever ARCHIVE is called\n"
	"      --include=GLOB     pack what matches; repeatable, with --exclude: the last\n"
	"                         match wins. A GLOB without '/' is compared with names,\n"
	"                         one with '/' with the path below DIR\n"
	"      --exclude=GLOB     leave out what matches\n"
	OPTIONS_HELP_THREADS
	OPTIONS_HELP_COMMON
	"\n"
	"Exit status:\n"
	"  0  all done\n"
	"  1  it failed: nothing is at ARCHIVE of it. Also where a large file changed\n"
	"     while it was read\n"
	"  2  wrong usage: nothing was tried\n"
	"  3  some entries are missing in it, or lack an attribute; each is named\n"
	"  4  it does not fit: bytes, inodes or quota ran out\n"
	"Stopped by SIGINT, SIGTERM or SIGHUP it removes its temporary file and ends by\n"
	"that signal.\n";

enum { KEY_FORMAT = OPTIONS_OWN, KEY_INCLUDE, KEY_EXCLUDE };

static const struct option own_options[] = {
	{ "format", required_argument, NULL, KEY_FORMAT },
	{ "include", required_argument, NULL, KEY_INCLUDE },
	{ "exclude", required_argument, NULL, KEY_EXCLUDE },
	{ NULL, 0, NULL, 0 },
};

struct pack_words {
	struct options options;
	struct pack_options pack;
	struct filter_pattern *patterns;
	size_t n_patterns;
	struct filter *filter;
	char *path; /* of ARCHIVE, cleaned */
	pthread_mutex_t lock; /* of at_work */
	const struct pack *at_work;
	struct summary summary;
};

static int words_set(void *ctx, int key, const char *value, struct error *err)
{
	struct pack_words *words = ctx;
	struct filter_pattern *grown;

	if (key == KEY_FORMAT) {
		words->pack.format = pack_format_find(value);
		return words->pack.format && !strcmp(words->pack.format->name, value) ? 0 :
			error_set(err, -EINVAL, "--format: '%s' is none: expected tar.zst, tar.gz, tar or zip",
				value);
	}
	grown = reallocarray(words->patterns, words->n_patterns + 1, sizeof(*grown));
	if (!grown)
		return error_sys(err, -ENOMEM, "patterns");
	words->patterns = grown;
	grown[words->n_patterns++] =
		(struct filter_pattern){ .include = key == KEY_INCLUDE, .glob = value };
	return 0;
}

static int words_finish(struct pack_words *words, struct error *err)
{
	const char *archive = words->options.words[1];

	if (!words->pack.format)
		words->pack.format = pack_format_find(archive);
	if (!words->pack.format)
		return error_set(err, -EINVAL,
			"%s: its name says no format: expected .tar.zst, .tar.gz, .tar or .zip, or --format",
			archive);
	words->path = path_clean(archive);
	if (!words->path)
		return error_sys(err, -ENOMEM, "%s", archive);
	words->pack.threads = words->options.threads;
	return filter_new(words->patterns, words->n_patterns, &words->filter, err);
}

static void words_problem(void *ctx, const char *path, enum copy_outcome outcome,
	const struct error *err)
{
	struct pack_words *words = ctx;
	autofree char *whole = path_join(words->options.words[0], path);

	problem_tell(&words->summary, whole ? whole : path, outcome, err->text);
}

static void words_at_work(void *ctx, const struct pack *pack)
{
	struct pack_words *words = ctx;

	pthread_mutex_lock(&words->lock);
	words->at_work = pack;
	pthread_mutex_unlock(&words->lock);
}

static void words_sample(void *ctx, struct progress_now *now)
{
	struct pack_words *words = ctx;
	struct copy_counts counts = { 0 };

	pthread_mutex_lock(&words->lock);
	if (words->at_work)
		pack_counts(words->at_work, &counts);
	pthread_mutex_unlock(&words->lock);
	now->files = counts.files;
	now->bytes = counts.bytes;
}

/* The directory that ARCHIVE is to be in. */
static int words_open_parent(const struct pack_words *words, const char **name, struct error *err)
{
	autofree char *above = NULL;
	char *slash;

	*name = path_base(words->path);
	if (!**name || !strcmp(*name, ".") || !strcmp(*name, ".."))
		return error_set(err, -EISDIR, "%s is a directory", words->path);
	above = path_join(words->path, "");
	if (!above)
		return error_sys(err, -ENOMEM, "%s", words->path);
	slash = strrchr(above, '/');
	if (slash)
		slash[slash == above] = '\0';
	return path_open(slash ? above : ".", O_RDONLY | O_DIRECTORY, err);
}

static int words_pack(struct pack_words *words, struct error *err)
{
	struct publish_result result;
	struct pack_file to = { .expect = { .kind = COPY_EXPECT_ANY },
		.conflict = COPY_CONFLICT_FAIL, .at_work = words_at_work, .ctx = words };
	autoclose int root =
		path_open(words->options.words[0], O_RDONLY | O_DIRECTORY, err);
	autoclose int parent = root < 0 ? root : words_open_parent(words, &to.name, err);
	int rc;

	if (parent < 0)
		return parent;
	to.dirfd = parent;
	rc = pack_file(root, &to, &words->pack, &result, &words->summary.counts, err);
	if (!rc && result.fate != PUBLISH_DONE)
		rc = err->code;
	return rc;
}

static int words_report(const struct pack_words *words, int rc, const struct error *err)
{
	autofree char *line = summary_line(&words->summary);
	int status = rc == -ENOSPC || rc == -EDQUOT ? VERB_NO_SPACE :
		rc < 0				    ? VERB_FAILED :
						      summary_status(&words->summary);
	json_t *object;

	if (line && !rc)
		log_info("%s", line);
	if (rc == -ECANCELED)
		log_error("pack: stopped: nothing was put at %s", words->options.words[1]);
	else if (rc < 0)
		log_error("pack: %s", err->text);
	if (!words->options.json)
		return status;
	object = summary_json(&words->summary);
	json_object_set_new(object, "from", summary_json_bytes(words->options.words[0]));
	json_object_set_new(object, "archive", summary_json_bytes(words->options.words[1]));
	return output_result("pack", object, status, err);
}

static int words_run(struct pack_words *words)
{
	struct error err = ERROR_INIT;
	struct interrupt *interrupt = NULL;
	struct timespec start, end;
	struct progress *progress;
	int rc = interrupt_start(&interrupt, &err), status;

	words->summary.verb = "packed";
	words->pack.filter = words->filter;
	words->pack.problem = words_problem;
	words->pack.ctx = words;
	clock_gettime(CLOCK_MONOTONIC, &start);
	if (!rc) {
		words->pack.cancel = interrupt_flag(interrupt);
		progress = progress_start(
			STDERR_FILENO, words->options.quiet, "pack", words_sample, words);
		rc = words_pack(words, &err);
		progress_stop(progress);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	words->summary.seconds = (double)(end.tv_sec - start.tv_sec) +
		(double)(end.tv_nsec - start.tv_nsec) / 1e9;
	status = words_report(words, rc, &err);
	interrupt_stop(interrupt);
	return status;
}

int verb_pack(int argc, char **argv)
{
	struct pack_words words = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct options_spec spec = {
		.verb = "pack",
		.help = verb_pack_help,
		.common = OPTIONS_THREADS,
		.own = own_options,
		.set = words_set,
		.ctx = &words,
		.words = "DIR ARCHIVE",
		.min_words = 2,
		.max_words = 2,
	};
	struct error err = ERROR_INIT;
	int status;

	if (options_parse(argc, argv, &spec, &words.options, &status))
		status = words_finish(&words, &err) < 0 ? options_wrong("pack", "%s", err.text) :
							   words_run(&words);
	summary_free(&words.summary);
	filter_free(words.filter);
	free(words.patterns);
	free(words.path);
	return status;
}
