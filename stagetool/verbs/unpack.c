#include "base/log.h"
#include "base/parse.h"
#include "base/cleanup.h"
#include "verbs/interrupt.h"
#include "verbs/options.h"
#include "verbs/output.h"
#include "verbs/unpack_run.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

const char verb_unpack_help[] =
	"Usage: stagetool unpack [options] ARCHIVE DIR\n"
	"\n"
	"Unpacks ARCHIVE (-: standard input) into DIR, in parallel, with all that the\n"
	"archive has: nanoseconds, extended attributes, ACLs, hard links, holes. It is\n"
	"read once, from beginning to end. DIR is made if only it itself is missing.\n"
	"\n"
	"ARCHIVE: tar (v7, ustar, GNU, pax), cpio, zip, 7z or an ISO image, as it is or\n"
	"compressed by gzip, bzip2, xz, lzma, lzip, lz4, zstd or compress. Which one is\n"
	"seen from its content.\n"
	"\n"
	"Of several members of one name the last one is there in the end. Files that DIR\n"
	"had before are replaced in one step when their new content is whole; a directory\n"
	"never takes the place of something else, nor something else that of a directory.\n"
	"\n"
	"Nothing outside of DIR is touched: members with an absolute path, with '..', or\n"
	"whose path leads through a symlink are refused by name, the others are unpacked.\n"
	"So are hard links to what is not a member. Devices and sockets are not made.\n"
	"Owner and group are set by number (as root; others keep groups of their own).\n"
	"\n"
	"Options:\n"
	"      --durable          have everything on stable storage before it appears\n"
	"      --include=GLOB     unpack what matches; repeatable, with --exclude: the\n"
	"                         last match wins. A GLOB without '/' is compared with\n"
	"                         names, one with '/' with the path in the archive\n"
	"      --exclude=GLOB     leave out what matches\n"
	"      --max-bytes=SIZE   stop before more than SIZE is written\n"
	"      --keep-special-bits  keep setuid, setgid and file capabilities (root only;\n"
	"                         otherwise they are dropped, and it says so)\n"
	OPTIONS_HELP_THREADS
	OPTIONS_HELP_COMMON
	"\n"
	"Exit status:\n"
	"  0  all done\n"
	"  1  it failed: ARCHIVE is none, damaged or cut off (the message says in which\n"
	"     member and at which byte; what came before is unpacked), DIR can not be had\n"
	"  2  wrong usage: nothing was tried\n"
	"  3  some members failed, were refused or lack an attribute; each is named, the\n"
	"     others are done\n"
	"  4  it does not fit: bytes, inodes, quota or --max-bytes ran out; a DIR that\n"
	"     was made is removed again\n"
	"Stopped by SIGINT, SIGTERM or SIGHUP it removes its temporary files and ends by\n"
	"that signal.\n";

enum { KEY_DURABLE = OPTIONS_OWN, KEY_INCLUDE, KEY_EXCLUDE, KEY_MAX_BYTES, KEY_SPECIAL };

static const struct option own_options[] = {
	{ "durable", no_argument, NULL, KEY_DURABLE },
	{ "include", required_argument, NULL, KEY_INCLUDE },
	{ "exclude", required_argument, NULL, KEY_EXCLUDE },
	{ "max-bytes", required_argument, NULL, KEY_MAX_BYTES },
	{ "keep-special-bits", no_argument, NULL, KEY_SPECIAL },
	{ NULL, 0, NULL, 0 },
};

struct unpack_words {
	struct unpack_request request;
	struct filter_pattern *patterns;
	size_t n_patterns;
	struct options options;
};

static int words_set(void *ctx, int key, const char *value, struct error *err)
{
	struct unpack_words *words = ctx;
	struct copy_options *engine = &words->request.engine;
	struct filter_pattern *grown;
	int rc;

	switch (key) {
	case KEY_DURABLE:
		engine->durable = true;
		return 0;
	case KEY_SPECIAL:
		engine->keep_special_bits = true;
		return geteuid() ? error_set(err, -EPERM, "--keep-special-bits is for root") : 0;
	case KEY_MAX_BYTES:
		rc = parse_size(value, &engine->max_bytes, err);
		if (rc == 0 && !engine->max_bytes)
			rc = error_set(err, -EINVAL, "expected a size above 0");
		return error_prefix(err, rc, "--max-bytes");
	default:
		grown = reallocarray(words->patterns, words->n_patterns + 1, sizeof(*grown));
		if (!grown)
			return error_sys(err, -ENOMEM, "patterns");
		words->patterns = grown;
		grown[words->n_patterns++] =
			(struct filter_pattern){ .include = key == KEY_INCLUDE, .glob = value };
		return 0;
	}
}

static int words_finish(struct unpack_words *words, struct error *err)
{
	struct unpack_request *request = &words->request;
	struct copy_options *engine = &request->engine;

	request->archive = words->options.words[0];
	request->to = words->options.words[1];
	request->quiet = words->options.quiet;
	engine->threads = words->options.threads;
	engine->publish = engine->look = engine->keep_owner = true;
	engine->inherit_group = geteuid() != 0;
	engine->expect.kind = COPY_EXPECT_ANY;
	engine->conflict = COPY_CONFLICT_FAIL;
	return filter_new(words->patterns, words->n_patterns, &request->filter, err);
}

static int unpack_status(const struct summary *summary, int rc)
{
	if (rc == -ENOSPC || rc == -EDQUOT)
		return VERB_NO_SPACE;
	return rc < 0 ? VERB_FAILED : summary_status(summary);
}

static int unpack_report(const struct unpack_words *words, const struct summary *summary, int rc,
	const struct error *err)
{
	int status = unpack_status(summary, rc);
	autofree char *line = summary_line(summary);
	json_t *object;

	if (line && (rc == 0 || rc == -ECANCELED))
		log_info("%s", line);
	if (rc == -ECANCELED)
		log_error("unpack: stopped before all was done; what has its final name is whole");
	else if (rc < 0)
		log_error("unpack: %s", err->text);
	if (!words->options.json)
		return status;
	object = summary_json(summary);
	json_object_set_new(object, "archive", summary_json_bytes(words->request.archive));
	json_object_set_new(object, "to", summary_json_bytes(words->request.to));
	return output_result("unpack", object, status, err);
}

static int words_run(struct unpack_words *words)
{
	struct error err = ERROR_INIT;
	struct interrupt *interrupt = NULL;
	struct summary summary = { .verb = "unpacked" };
	int rc = interrupt_start(&interrupt, &err), status;

	if (rc == 0) {
		words->request.engine.cancel = interrupt_flag(interrupt);
		rc = unpack_request_run(&words->request, &summary, &err);
	}
	status = unpack_report(words, &summary, rc, &err);
	summary_free(&summary);
	interrupt_stop(interrupt);
	return status;
}

int verb_unpack(int argc, char **argv)
{
	struct unpack_words words = { .n_patterns = 0 };
	const struct options_spec spec = {
		.verb = "unpack",
		.help = verb_unpack_help,
		.common = OPTIONS_THREADS,
		.own = own_options,
		.set = words_set,
		.ctx = &words,
		.words = "ARCHIVE DIR",
		.min_words = 2,
		.max_words = 2,
	};
	struct error err = ERROR_INIT;
	int status;

	if (options_parse(argc, argv, &spec, &words.options, &status))
		status = words_finish(&words, &err) < 0 ? options_wrong("unpack", "%s", err.text) :
							   words_run(&words);
	filter_free(words.request.filter);
	free(words.patterns);
	return status;
}
