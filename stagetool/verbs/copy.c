#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "verbs/copy_work.h"
#include "verbs/interrupt.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

const char verb_copy_help[] =
	"Usage: stagetool copy [options] FROM... TO\n"
	"\n"
	"Copies files and trees with their attributes, in parallel: the job of cp -a.\n"
	"\n"
	"TO is the new name of FROM. A TO that ends in '/' (or '/.'), and any TO of\n"
	"several FROMs, is the directory that each FROM goes into under its own name; it\n"
	"is made if only it itself is missing. A '/' at the end of FROM means nothing. If\n"
	"FROM is a directory and TO is one already, FROM's entries are merged into TO,\n"
	"which takes on FROM's owner, mode and times. FROM itself may be a symlink to\n"
	"what is copied; symlinks below it are copied as they are.\n"
	"\n"
	"A file that is there already, of the same size, modification time and mode (as\n"
	"root: and owner), is left as it is. So is a symlink with the same target. Other\n"
	"files, symlinks and FIFOs are replaced in one step when their new content is\n"
	"whole. A directory never takes the place of something else, nor something else\n"
	"that of a directory, a device or a socket. Sockets and devices are not copied.\n"
	"\n"
	"Options:\n"
	"      --verify           read back what was written and compare\n"
	"      --durable          have everything on stable storage before it appears\n"
	"      --checksum         also compare the content of files that look unchanged\n"
	"      --include=GLOB     copy what matches; repeatable, with --exclude: the last\n"
	"                         match wins. A GLOB without '/' is compared with names,\n"
	"                         one with '/' with the path below FROM\n"
	"      --exclude=GLOB     leave out what matches\n"
	"      --max-bytes=SIZE   stop before more than SIZE is written\n"
	"      --keep-special-bits  keep setuid, setgid and file capabilities (root only;\n"
	"                         otherwise they are dropped, and it says so)\n"
	OPTIONS_HELP_THREADS
	OPTIONS_HELP_ENGINE
	OPTIONS_HELP_COMMON
	"\n"
	"Exit status:\n"
	"  0  all done\n"
	"  1  it failed: a FROM or TO's parent is missing, nothing could be copied\n"
	"  2  wrong usage: nothing was tried\n"
	"  3  some entries failed, lack an attribute, or changed or vanished while they\n"
	"     were read; each is named, the others are done\n"
	"  4  it does not fit: bytes, inodes, quota or --max-bytes ran out\n"
	"Stopped by SIGINT, SIGTERM or SIGHUP it removes its temporary files and ends by\n"
	"that signal.\n";

enum { KEY_VERIFY = OPTIONS_OWN, KEY_DURABLE, KEY_CHECKSUM, KEY_INCLUDE, KEY_EXCLUDE, KEY_MAX_BYTES,
	KEY_SPECIAL };

static const struct option own_options[] = {
	{ "verify", no_argument, NULL, KEY_VERIFY },
	{ "durable", no_argument, NULL, KEY_DURABLE },
	{ "checksum", no_argument, NULL, KEY_CHECKSUM },
	{ "include", required_argument, NULL, KEY_INCLUDE },
	{ "exclude", required_argument, NULL, KEY_EXCLUDE },
	{ "max-bytes", required_argument, NULL, KEY_MAX_BYTES },
	{ "keep-special-bits", no_argument, NULL, KEY_SPECIAL },
	{ NULL, 0, NULL, 0 },
};

static int request_set(void *ctx, int key, const char *value, struct error *err)
{
	struct copy_request *request = ctx;
	struct filter_pattern *grown;
	int rc;

	switch (key) {
	case KEY_VERIFY:
		request->engine.verify = true;
		return 0;
	case KEY_DURABLE:
		request->engine.durable = true;
		return 0;
	case KEY_CHECKSUM:
		request->checksum = true;
		return 0;
	case KEY_SPECIAL:
		request->engine.keep_special_bits = true;
		return geteuid() ? error_set(err, -EPERM, "--keep-special-bits is for root") : 0;
	case KEY_MAX_BYTES:
		rc = parse_size(value, &request->engine.max_bytes, err);
		if (rc == 0 && !request->engine.max_bytes)
			rc = error_set(err, -EINVAL, "expected a size above 0");
		return error_prefix(err, rc, "--max-bytes");
	default:
		grown = reallocarray(request->patterns, request->n_patterns + 1, sizeof(*grown));
		if (!grown)
			return error_sys(err, -ENOMEM, "patterns");
		request->patterns = grown;
		grown[request->n_patterns++] =
			(struct filter_pattern){ .include = key == KEY_INCLUDE, .glob = value };
		return 0;
	}
}

/* What the options come to. Negative: wrong usage. */
static int request_finish(struct copy_request *request, struct error *err)
{
	const struct options *options = &request->options;
	struct copy_options *engine = &request->engine;
	int rc;

	engine->threads = options->threads;
	engine->engine = options->engine;
	engine->publish = engine->look = engine->keep_owner = true;
	engine->inherit_group = geteuid() != 0;
	engine->expect.kind = COPY_EXPECT_ANY;
	engine->conflict = COPY_CONFLICT_FAIL;
	rc = filter_new(request->patterns, request->n_patterns, &request->filter, err);
	if (rc < 0)
		return rc;
	return copy_places_parse(options->words, (size_t)options->n_words - 1,
		options->words[options->n_words - 1], &request->places, err);
}

static void request_free(struct copy_request *request)
{
	copy_places_free(&request->places);
	filter_free(request->filter);
	free(request->patterns);
}

static int copy_status(const struct summary *summary, int rc)
{
	const struct copy_counts *counts = &summary->counts;
	int status = summary_status(summary);

	if (rc == -ENOSPC || rc == -EDQUOT)
		return VERB_NO_SPACE;
	if (rc < 0)
		return VERB_FAILED;
	if (status == VERB_INCOMPLETE && !counts->files && !counts->directories &&
		!counts->symlinks && !counts->others && !counts->unchanged)
		return VERB_FAILED; /* "the others are done" would be a lie */
	return status;
}

static json_t *copy_json(const struct copy_request *request, const struct summary *summary)
{
	json_t *object = summary_json(summary), *from = json_array();

	for (size_t i = 0; i < request->places.count; i++)
		json_array_append_new(from, summary_json_bytes(request->places.items[i].from));
	json_object_set_new(object, "from", from);
	json_object_set_new(object, "to", summary_json_bytes(request->places.to));
	return object;
}

/* Says what happened. Returns the exit status. */
static int copy_report(const struct copy_request *request, const struct summary *summary, int rc,
	const struct error *err)
{
	int status = copy_status(summary, rc);
	autofree char *line = summary_line(summary);

	if (line && (status != VERB_FAILED || rc == -ECANCELED))
		log_info("%s", line);
	if (rc == -ECANCELED)
		log_error("copy: stopped before all was done; what has its final name is whole");
	else if (rc < 0)
		log_error("copy: %s", err->text);
	if (!request->options.json)
		return status;
	return output_result("copy", copy_json(request, summary), status, err);
}

static int copy_request_run(struct copy_request *request)
{
	struct error err = ERROR_INIT;
	struct interrupt *interrupt = NULL;
	struct summary summary = {
		.verb = request->engine.verify ? "copied and verified" : "copied",
	};
	int rc, status;

	rc = interrupt_start(&interrupt, &err);
	if (rc == 0) {
		request->engine.cancel = interrupt_flag(interrupt);
		rc = copy_work_run(request, &summary, &err);
	}
	status = copy_report(request, &summary, rc, &err);
	summary_free(&summary);
	interrupt_stop(interrupt);
	return status;
}

int verb_copy(int argc, char **argv)
{
	struct copy_request request = { .checksum = false };
	const struct options_spec spec = {
		.verb = "copy",
		.help = verb_copy_help,
		.common = OPTIONS_THREADS | OPTIONS_ENGINE,
		.own = own_options,
		.set = request_set,
		.ctx = &request,
		.words = "FROM... TO",
		.min_words = 2,
		.max_words = -1,
	};
	struct error err = ERROR_INIT;
	int status;

	if (options_parse(argc, argv, &spec, &request.options, &status))
		status = request_finish(&request, &err) < 0 ? options_wrong("copy", "%s", err.text)
							     : copy_request_run(&request);
	request_free(&request);
	return status;
}
