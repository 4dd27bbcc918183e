/*
 * stagetool.conf. What is accepted is whole, and is the same when it is written and read again.
 */
#include "fuzz/fuzz.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "spec/conf.h"
#include "spec/spec.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define LINE_SAFE 190

static struct conf *load(const char *text, size_t size)
{
	autoclose int fd = memfd_create("conf", MFD_CLOEXEC);
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;
	char path[40];

	fuzz_require(fd >= 0 && !fchmod(fd, 0600));
	fuzz_require(write(fd, text, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (conf_load(path, "node", &conf, &err))
		fuzz_require(!conf && err.code < 0 && *err.text);
	else
		fuzz_require(conf);
	return conf;
}

static void check_path(const char *path)
{
	autofree char *clean = path_clean(path);

	fuzz_require(clean && !strcmp(clean, path) && *path == '/' && !path_has_dotdot(path));
}

static void check_source(const struct conf *conf, const char *source)
{
	autofree char *below = path_join(source, "a");

	check_path(source);
	fuzz_require(below && conf_allows_source(conf, source) && conf_allows_source(conf, below));
}

static void check(const struct conf *conf)
{
	fuzz_require(conf->n_tiers && conf_tier(conf, NULL, NULL));
	fuzz_require(conf->keep_failed && conf->threads <= 1024);
	check_path(conf->state_dir);
	for (size_t i = 0; i < conf->n_sources; i++)
		check_source(conf, conf->sources[i]);
	for (size_t i = 0; i < conf->n_tiers; i++) {
		const struct conf_tier *tier = &conf->tiers[i];

		fuzz_require(spec_is_tier_name(tier->name) && tier->path[1]);
		fuzz_require(conf_tier(conf, tier->name, NULL) == tier);
		for (size_t j = 0; j < i; j++)
			fuzz_require(strcmp(tier->path, conf->tiers[j].path));
		fuzz_require(tier->min_free_percent == -1 ||
			     (tier->min_free_percent >= 0 && tier->min_free_percent <= 100 &&
				     !tier->min_free_bytes));
		check_path(tier->path);
	}
}

/* A '%' in a path stands for itself, and a blank at its end, too. */
static void put_path(FILE *out, const char *key, const char *path)
{
	fprintf(out, "%s =", key);
	for (putc(' ', out); *path; path++) {
		if (*path == '%')
			putc('%', out);
		putc(*path, out);
	}
	fputs("/\n", out);
}

static void put_tier(FILE *out, const struct conf_tier *tier)
{
	fprintf(out, "[tier %s]\n", tier->name);
	put_path(out, "path", tier->path);
	if (tier->min_free_percent < 0)
		fprintf(out, "min_free = %ju\n", (uintmax_t)tier->min_free_bytes);
	else
		fprintf(out, "min_free = %.18f%%\n", tier->min_free_percent);
	fprintf(out, "dax = %s\n", tier->dax == CONF_DAX_REQUIRE ? "require" : "any");
}

static char *format(const struct conf *conf, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	fuzz_require(out);
	fprintf(out, "[stagetool]\ndefault_tier = %s\n", conf->default_tier);
	put_path(out, "state_dir", conf->state_dir);
	for (size_t i = 0; i < conf->n_sources; i++)
		fprintf(out, "sources = %s\n", conf->sources[i]);
	fprintf(out, "keep_failed = %ju\nstall_limit = %ju\nthreads = %u\nextend_limit = %s\n",
		(uintmax_t)conf->keep_failed, (uintmax_t)conf->stall_limit, conf->threads,
		conf->extend_limit ? "yes" : "no");
	for (size_t i = 0; i < conf->n_tiers; i++)
		put_tier(out, &conf->tiers[i]);
	fuzz_require(!fclose(out));
	return text;
}

/* Expanded symbols make a line longer than the file's may be. */
static bool has_long_line(const char *text)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (strcspn(text, "\n") > LINE_SAFE)
			return true;
	return false;
}

static void check_equal(const struct conf *a, const struct conf *b)
{
	fuzz_require(!strcmp(a->state_dir, b->state_dir));
	fuzz_require(!strcmp(a->default_tier, b->default_tier));
	fuzz_require(a->n_sources == b->n_sources && a->n_tiers == b->n_tiers);
	fuzz_require(a->keep_failed == b->keep_failed && a->threads == b->threads);
	fuzz_require(a->extend_limit == b->extend_limit && a->stall_limit == b->stall_limit);
	for (size_t i = 0; i < a->n_sources; i++)
		fuzz_require(!strcmp(a->sources[i], b->sources[i]));
	for (size_t i = 0; i < a->n_tiers; i++) {
		const struct conf_tier *one = &a->tiers[i], *other = &b->tiers[i];

		fuzz_require(!strcmp(one->name, other->name) && !strcmp(one->path, other->path));
		fuzz_require(one->min_free_bytes == other->min_free_bytes);
		fuzz_require(one->dax == other->dax);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *conf = load((const char *)data, size), *again;
	autofree char *text = NULL;

	if (!conf)
		return 0;
	check(conf);
	text = format(conf, &size);
	again = has_long_line(text) ? NULL : load(text, size);
	fuzz_require(again || has_long_line(text));
	if (again)
		check_equal(conf, again);
	conf_free(conf);
	conf_free(again);
	return 0;
}
