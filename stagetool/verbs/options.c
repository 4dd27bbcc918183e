#include "verbs/options.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/pool.h"
#include "copy/range.h"
#include "spec/handoff.h"
#include "verbs/output.h"
#include "verbs/verbs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_DIR = 256, KEY_THREADS, KEY_ENGINE, KEY_CONF, KEY_JSON };

static const struct option always[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
};

static const struct {
	unsigned bit;
	struct option option;
} on_demand[] = {
	{ OPTIONS_DIR, { "dir", required_argument, NULL, KEY_DIR } },
	{ OPTIONS_THREADS, { "threads", required_argument, NULL, KEY_THREADS } },
	{ OPTIONS_ENGINE, { "engine", required_argument, NULL, KEY_ENGINE } },
	{ OPTIONS_CONF, { "conf", required_argument, NULL, KEY_CONF } },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int options_wrong(const char *verb, const char *format, ...)
{
	char text[ERROR_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_error("%s: %s; see stagetool %s --help", verb, text, verb);
	return VERB_USAGE;
}

/* Everything spec's verb accepts, ended by zeros. Caller frees; NULL on ENOMEM. */
static struct option *options_collect(const struct options_spec *spec)
{
	size_t n_own = 0, used = 0;
	struct option *all;

	while (spec->own && spec->own[n_own].name)
		n_own++;
	all = calloc(n_own + COUNT(always) + COUNT(on_demand) + 1, sizeof(*all));
	if (!all)
		return NULL;
	for (size_t i = 0; i < n_own; i++)
		all[used++] = spec->own[i];
	for (size_t i = 0; i < COUNT(on_demand); i++) {
		if (spec->common & on_demand[i].bit)
			all[used++] = on_demand[i].option;
	}
	memcpy(all + used, always, sizeof(always));
	return all;
}

/* getopt said '?' or ':' : why, in words. */
static int options_unknown(const struct options_spec *spec, const struct option *all, int said,
	const char *word)
{
	char known[1024];
	size_t used = 0;

	if (said == ':')
		return options_wrong(spec->verb, "option %s needs a value", word);
	if (!strncmp(word, "--", 2) && optopt)
		return options_wrong(spec->verb, "option %s: no value is expected", word);
	known[0] = '\0';
	for (; all->name && used < sizeof(known); all++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, " --%s", all->name);
	if (strncmp(word, "--", 2))
		return options_wrong(spec->verb, "unknown option -%c (expected one of:%s)", optopt,
			known);
	return options_wrong(spec->verb, "unknown option %s (expected one of:%s)", word, known);
}

static int options_set_engine(struct options *options, const char *value, struct error *err)
{
	struct range *range;
	int rc = range_new(value, &range, err);

	if (rc < 0)
		return rc;
	range_free(range);
	options->engine = value;
	return 0;
}

static int options_set_common(struct options *options, int key, char *value, struct error *err)
{
	uint64_t number;
	int rc;

	switch (key) {
	case KEY_THREADS:
		rc = parse_number(value, 1, POOL_MAX_WIDTH, &number, err);
		if (rc < 0)
			return error_prefix(err, rc, "--threads");
		options->threads = (unsigned)number;
		return 0;
	case KEY_DIR:
		options->dir = value;
		return *value ? 0 : error_set(err, -EINVAL, "--dir is empty: expected a directory");
	case KEY_ENGINE:
		return options_set_engine(options, value, err);
	case KEY_CONF:
		options->conf = value;
		return 0;
	case KEY_JSON:
		options->json = true;
		return 0;
	case 'q':
	case 'v':
		options->quiet = key == 'q';
		options->verbose = key == 'v';
		return 0;
	default:
		return error_set(err, -EINVAL, "unknown option");
	}
}

static bool options_check_words(const struct options_spec *spec, const struct options *options)
{
	if (options->n_words < spec->min_words) {
		options_wrong(spec->verb, "expected %s", spec->words);
		return false;
	}
	if (spec->max_words >= 0 && options->n_words > spec->max_words) {
		options_wrong(spec->verb, "unexpected '%s' (expected %s)",
			options->words[spec->max_words],
			spec->max_words ? spec->words : "options only");
		return false;
	}
	return true;
}

/* Deals with one answer of getopt. False: *status is the answer of the verb. */
static bool options_take(const struct options_spec *spec, const struct option *all, int key,
	const char *word, struct options *options, int *status)
{
	struct error err = ERROR_INIT;
	int rc;

	*status = VERB_USAGE;
	if (key == 'h') {
		*status = output_text(spec->help, &err) < 0 ? VERB_FAILED : VERB_DONE;
		if (err.code)
			log_error("%s: %s", spec->verb, err.text);
		return false;
	}
	if (key == '?' || key == ':') {
		*status = options_unknown(spec, all, key, word);
		return false;
	}
	if (key >= OPTIONS_OWN)
		rc = spec->set(spec->ctx, key, optarg, &err);
	else
		rc = options_set_common(options, key, optarg, &err);
	if (rc < 0)
		options_wrong(spec->verb, "%s", err.text);
	return rc >= 0;
}

bool options_parse(int argc, char **argv, const struct options_spec *spec, struct options *options,
	int *status)
{
	autofree struct option *all = options_collect(spec);
	int key;

	memset(options, 0, sizeof(*options));
	*status = VERB_FAILED;
	if (!all) {
		log_error("%s: out of memory", spec->verb);
		return false;
	}
	optind = 0; /* from the start, whatever was parsed before */
	while ((key = getopt_long(argc, argv, ":hqv", all, NULL)) != -1) {
		const char *word = argv[optind > 0 ? optind - 1 : 0];

		if (!options_take(spec, all, key, word, options, status))
			return false;
	}
	options->words = argv + optind;
	options->n_words = argc - optind;
	*status = VERB_USAGE;
	if (!options_check_words(spec, options))
		return false;
	log_set_level(options->quiet ? LOG_WARNING : options->verbose ? LOG_DEBUG : LOG_INFO);
	return true;
}

const char *options_conf(const struct options *options)
{
	const char *path = options->conf ? options->conf : getenv(HANDOFF_CONF);

	return path && *path ? path : CONF_PATH;
}
