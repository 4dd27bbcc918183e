#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "spec/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define TIER "[tier nvme]\npath=/t\n"

static char top[] = "/tmp/test_conf.XXXXXX";
static char file[sizeof(top) + 16];

static int setup(void **state)
{
	(void)state;
	umask(022);
	if (!mkdtemp(top))
		return -1;
	snprintf(file, sizeof(file), "%s/conf", top);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(top);
}

static void write_bytes(const char *bytes, size_t size)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
}

static struct conf *load(const char *text, const char *node)
{
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;

	write_bytes(text, strlen(text));
	if (conf_load(file, node, &conf, &err))
		fail_msg("%s", err.text);
	assert_int_equal(err.code, 0);
	return conf;
}

static void test_defaults(void **state)
{
	struct conf *conf = load(TIER, NULL);

	(void)state;
	assert_string_equal(conf->state_dir, "/var/lib/stagetool");
	assert_string_equal(conf->default_tier, "nvme");
	assert_int_equal(conf->n_sources, 0);
	assert_int_equal(conf->keep_failed, 604800);
	assert_int_equal(conf->stall_limit, 1800);
	assert_true(conf->extend_limit);
	assert_int_equal(conf->threads, 0);
	assert_int_equal(conf->n_tiers, 1);
	assert_string_equal(conf->tiers[0].name, "nvme");
	assert_string_equal(conf->tiers[0].path, "/t");
	assert_true(conf->tiers[0].min_free_percent > 4.9 && conf->tiers[0].min_free_percent < 5.1);
	assert_int_equal(conf->tiers[0].dax, CONF_DAX_ANY);
	assert_int_equal(conf->tiers[0].project_first, 0);
	conf_free(conf);
	conf_free(NULL);
}

static void test_all(void **state)
{
	struct conf *conf = load("# first\n"
				 "[stagetool]\n"
				 "state_dir   = /var/lib//stage/%N/\n"
				 "default_tier= pmem\n"
				 "sources     = /home /proj/./x/\t/100%j      # the only places\n"
				 "; and one more\n"
				 "sources = /scratch ; again\n"
				 "\tkeep_failed = 2w\n"
				 "stall_limit = 15m\n"
				 "extend_limit= no\n"
				 "threads=64\n"
				 "\n"
				 "  [tier nvme]   # fast\n"
				 "path        = /local/a#b;c/%%/stage.%N\n"
				 "min_free    = 10G\n"
				 "project_ids = 2000000000-4294967294\n"
				 "[tier pmem]\n"
				 "    path = /mnt/my dax\n"
				 "    dax=require\n"
				 "    min_free=2.5%",
		"n1");

	(void)state;
	assert_string_equal(conf->state_dir, "/var/lib/stage/n1");
	assert_string_equal(conf->default_tier, "pmem");
	assert_int_equal(conf->n_sources, 4);
	assert_string_equal(conf->sources[0], "/home");
	assert_string_equal(conf->sources[1], "/proj/x");
	assert_string_equal(conf->sources[2], "/100%j");
	assert_string_equal(conf->sources[3], "/scratch");
	assert_int_equal(conf->keep_failed, 1209600);
	assert_int_equal(conf->stall_limit, 900);
	assert_false(conf->extend_limit);
	assert_int_equal(conf->threads, 64);
	assert_int_equal(conf->n_tiers, 2);
	assert_string_equal(conf->tiers[0].path, "/local/a#b;c/%/stage.n1");
	assert_int_equal(conf->tiers[0].min_free_bytes, 10ULL << 30);
	assert_true(conf->tiers[0].min_free_percent < 0);
	assert_int_equal(conf->tiers[0].project_first, 2000000000);
	assert_int_equal(conf->tiers[0].project_last, 4294967294);
	assert_int_equal(conf->tiers[0].dax, CONF_DAX_ANY);
	assert_string_equal(conf->tiers[1].path, "/mnt/my dax");
	assert_int_equal(conf->tiers[1].dax, CONF_DAX_REQUIRE);
	assert_true(conf->tiers[1].min_free_percent > 2.4 && conf->tiers[1].min_free_percent < 2.6);
	conf_free(conf);
}

static void test_tier(void **state)
{
	struct conf *conf =
		load("[stagetool]\ndefault_tier=b\n[tier a]\npath=/a\n[tier b]\npath=/b\n", NULL);
	struct error err = ERROR_INIT;

	(void)state;
	assert_string_equal(conf_tier(conf, NULL, &err)->path, "/b");
	assert_string_equal(conf_tier(conf, "a", &err)->path, "/a");
	assert_int_equal(err.code, 0);
	assert_null(conf_tier(conf, "c", &err));
	assert_int_equal(err.code, -ENOENT);
	assert_string_equal(err.text, "there is no tier \"c\": expected one of a, b");
	conf_free(conf);
}

static void test_sources(void **state)
{
	static const struct {
		const char *path;
		bool allowed;
	} cases[] = {
		{ "/proj", true },
		{ "/proj/a", true },
		{ "/home/u/x", true },
		{ "/project", false },
		{ "/home", false },
		{ "/home/user", false },
		{ "/", false },
		{ "/proj/../etc", false },
		{ "/proj/a/..", false },
		{ "proj/a", false },
		{ "", false },
	};
	struct conf *conf = load("[stagetool]\nsources=/proj /home/u\n" TIER, NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (conf_allows_source(conf, cases[i].path) != cases[i].allowed)
			fail_msg("\"%s\"", cases[i].path);
	}
	conf_free(conf);
	conf = load("[stagetool]\nsources=/\n" TIER, NULL);
	assert_true(conf_allows_source(conf, "/etc"));
	assert_true(conf_allows_source(conf, "/"));
	conf_free(conf);
	conf = load("[stagetool]\nsources=\n" TIER, NULL);
	assert_true(conf_allows_source(conf, "/etc"));
	assert_false(conf_allows_source(conf, "/a/../b"));
	conf_free(conf);
}

/* A wrong file, the line that the message must name (0: none), and what else it must say. */
static const struct {
	const char *text;
	unsigned line;
	const char *says;
} bad[] = {
	{ "", 0, ": no tier: expected a section [tier NAME]" },
	{ "[stagetool]\n", 0, "no tier" },
	/* lines */
	{ "[stagetool\n" TIER, 1, "expected a section in brackets" },
	{ "[stagetool] x\n" TIER, 1, "expected a section in brackets" },
	{ "[]\n" TIER, 1, "unknown section []" },
	{ TIER "garbage\n", 3, "garbage: expected KEY = VALUE" },
	{ TIER "dax: require=\n", 3, "expected KEY = VALUE" },
	{ TIER "dax = require\r\n", 3,
		"control byte 0x0d in column 14: expected text with Unix line ends" },
	{ TIER "dax = req\x01\n", 3, "control byte 0x01 in column 10" },
	/* sections */
	{ "threads = 1\n" TIER, 1, "threads stands before the first section" },
	{ "\n\n[tiers]\n" TIER, 3, "unknown section [tiers]: expected [stagetool] or [tier NAME]" },
	{ "[Stagetool]\n" TIER, 1, "unknown section [Stagetool]" },
	{ "[stagetool]\n[stagetool]\n" TIER, 2, "given twice (first in line 1)" },
	{ "[stagetool]\n" TIER "[stagetool]\n", 4, "given twice (first in line 1)" },
	{ TIER TIER, 3, "[tier nvme] is given twice" },
	{ "[tier]\npath=/t\n", 1, "unknown section [tier]" },
	{ "[tier ]\npath=/t\n", 1, "expected a name of letters" },
	{ "[tier  a]\npath=/t\n", 1, "expected a name of letters" },
	{ "[tier a/b]\npath=/t\n", 1, "expected a name of letters" },
	{ "[tier .a]\npath=/t\n", 1, "expected a name of letters" },
	{ "[tier a234567890123456789012345678901234567890x]\npath=/t\n", 1,
		"expected a name of letters" },
	{ "\n[tier a]\n", 2, "[tier a] has no path: expected path = DIRECTORY" },
	{ "[tier a]\ndax=any\n" TIER, 1, "[tier a] has no path" },
	{ "[tier a]\npath=/t/\n[tier b]\npath=//t\n", 4,
		"path = /t is already the path of [tier a]" },
	/* keys */
	{ "[stagetool]\nkeep_fail=1d\n" TIER, 2,
		"unknown key \"keep_fail\": expected one of state_dir, default_tier, sources, "
		"protect, keep_failed, stall_limit, extend_limit, threads" },
	{ "[stagetool]\nThreads=1\n" TIER, 2, "unknown key \"Threads\"" },
	{ "[stagetool]\n= x\n" TIER, 2, "unknown key \"\"" },
	{ "[stagetool]\npath=/t\n" TIER, 2, "path belongs into a [tier NAME] section" },
	{ TIER "threads=1\n", 3, "threads belongs into a [stagetool] section" },
	{ TIER "size=1\n", 3, "unknown key \"size\": expected one of path, min_free, dax, "
		"project_ids" },
	{ "[stagetool]\nthreads=1\n\nthreads=1\n" TIER, 4,
		"threads is given twice (first in line 2)" },
	{ TIER "path=/u\n", 3, "path is given twice (first in line 2)" },
	/* values */
	{ "[stagetool]\nstate_dir=\n" TIER, 2, "expected an absolute path" },
	{ "[stagetool]\nstate_dir=var\n" TIER, 2, "state_dir = var: expected an absolute path" },
	{ "[stagetool]\nstate_dir=/a/../b\n" TIER, 2, "expected an absolute path" },
	{ "[stagetool]\nstate_dir=/\n" TIER, 2, "expected an absolute path" },
	{ "[tier a]\npath=\"/t\"\n", 2, "path = \"/t\": expected an absolute path" },
	{ "[tier a]\npath=/t/%j\n", 2, "unknown symbol: expected %N (node) or %%" },
	{ "[tier a]\npath=/t/%\n", 2, "unknown symbol" },
	{ "[tier a]\npath=/t/%%%\n", 2, "unknown symbol" },
	{ "[tier a]\npath=/t/%N\n", 2, "%N is not known here" },
	{ "[stagetool]\ndefault_tier=pmem\n" TIER, 2,
		"default_tier = pmem: there is no tier \"pmem\": expected one of nvme" },
	{ "[stagetool]\ndefault_tier=\n" TIER, 2, "expected the NAME of a [tier NAME] section" },
	{ "[stagetool]\nsources=/a b\n" TIER, 2, "\"b\": expected absolute paths" },
	{ "[stagetool]\nsources=/a/../b\n" TIER, 2, "expected absolute paths" },
	{ "[stagetool]\nsources=/a,/b c\n" TIER, 2, "\"c\": expected absolute paths" },
	{ "[stagetool]\nkeep_failed=7 days\n" TIER, 2,
		"keep_failed = 7 days: \"7 days\" is not a time" },
	{ "[stagetool]\nkeep_failed=0\n" TIER, 2, "expected at least 1s" },
	{ "[stagetool]\nstall_limit=never\n" TIER, 2,
		"stall_limit = never: \"never\" is not a time" },
	{ "[stagetool]\nextend_limit=maybe\n" TIER, 2, "\"maybe\" is neither yes nor no" },
	{ "[stagetool]\nthreads=-1\n" TIER, 2, "\"-1\" is not a whole number" },
	{ "[stagetool]\nthreads=1025\n" TIER, 2, "1025 is out of range: expected 0 to 1024" },
	{ TIER "min_free=101%\n", 3, "more than 100%" },
	{ TIER "min_free=5 %\n", 3, "is not a share" },
	{ TIER "min_free=lots\n", 3, "is not a size" },
	{ TIER "dax=yes\n", 3, "dax = yes: expected any or require" },
	{ TIER "project_ids=yes\n", 3, "project_ids = yes: expected FIRST-LAST or none" },
	{ TIER "project_ids=0-9\n", 3, "project_ids = 0-9: " },
	{ TIER "project_ids=9-8\n", 3, "project_ids = 9-8: expected FIRST-LAST, the lower" },
	{ TIER "project_ids=1-4294967295\n", 3, "project_ids = 1-4294967295: " },
	{ TIER "project_ids=1-2-3\n", 3, "project_ids = 1-2-3: " },
};

static void check_bad(const char *text, size_t size, unsigned line, const char *says)
{
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;
	char start[64];
	int rc;

	write_bytes(text, size);
	rc = conf_load(file, NULL, &conf, &err);
	snprintf(start, sizeof(start), line ? "%s:%u: " : "%s: ", file, line);
	if (rc != -EINVAL || err.code != rc || strncmp(err.text, start, strlen(start)) ||
		!strstr(err.text, says))
		fail_msg("%s\n(line %u, \"%s\"): rc %d, \"%s\"", text, line, says, rc, err.text);
	assert_null(conf);
}

static void test_bad(void **state)
{
	static const char nul[] = TIER "dax = any\0y\n";
	char line[5000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_bad(bad[i].text, strlen(bad[i].text), bad[i].line, bad[i].says);
	check_bad(nul, sizeof(nul) - 1, 3, "control byte 0x00 in column 10");
	memset(line, 'x', sizeof(line));
	memcpy(line, "[tier a]\npath=/", 15);
	check_bad(line, sizeof(line), 2, "the line is too long");
	memcpy(line, "[tier a", 7);
	memset(line + 7, 'x', 8);
	line[sizeof(line) - 1] = ']';
	check_bad(line, sizeof(line), 1, "the line is too long");
}

/* A line of any length that inih can take must come out whole. */
static void test_line_length(void **state)
{
	struct error err = ERROR_INIT;
	char text[512];
	size_t longest = 0;

	(void)state;
	for (size_t length = 2; length < 400; length++) {
		struct conf *conf = NULL;
		size_t used = (size_t)snprintf(text, sizeof(text), "[tier a]\npath=/");

		memset(text + used, 'y', length - 1);
		write_bytes(text, used + length - 1);
		if (conf_load(file, NULL, &conf, &err)) {
			assert_non_null(strstr(err.text, "too long"));
			break;
		}
		assert_int_equal(strlen(conf->tiers[0].path), length);
		longest = length;
		conf_free(conf);
	}
	assert_true(longest > 150);
}

/* Root believes only what only root could have written. */
static void test_owner(void **state)
{
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;

	(void)state;
	assert_int_equal(conf_load("/nonexistent/conf", NULL, &conf, &err), -ENOENT);
	assert_int_equal(conf_load(top, NULL, &conf, &err), -EINVAL);
	assert_non_null(strstr(err.text, "expected a regular file"));
	if (geteuid())
		skip();
	conf_free(load(TIER, NULL));
	assert_int_equal(chmod(file, 0664), 0);
	assert_int_equal(conf_load(file, NULL, &conf, &err), -EPERM);
	assert_non_null(strstr(err.text, "others than root can write to it (mode 0664)"));
	assert_int_equal(chmod(file, 0646), 0);
	assert_int_equal(conf_load(file, NULL, &conf, &err), -EPERM);
	assert_int_equal(chmod(file, 0644), 0);
	assert_int_equal(chown(file, 65534, 0), 0);
	assert_int_equal(conf_load(file, NULL, &conf, &err), -EPERM);
	assert_non_null(strstr(err.text, "belongs to uid 65534"));
	assert_null(conf);
	unlink(file);
}

/* An ordinary user may read with what they like. */
static void test_owner_user(void **state)
{
	struct error err = ERROR_INIT;
	struct conf *conf = NULL;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	conf_free(load(TIER, NULL));
	assert_int_equal(chmod(file, 0666), 0);
	assert_int_equal(chown(file, 65534, 65534), 0);
	assert_int_equal(chmod(top, 0711), 0);
	pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(conf_load(file, NULL, &conf, &err) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	unlink(file);
}

static void test_no_stall_limit(void **state)
{
	static const char *const texts[] = { "[stagetool]\nstall_limit=none\n" TIER,
		"[stagetool]\nstall_limit=0\n" TIER };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct conf *conf = load(texts[i], NULL);

		assert_int_equal(conf->stall_limit, 0);
		conf_free(conf);
	}
}

/* The example as it is distributed: as it stands, and with every default that it names written out.
 */
static void test_example(void **state)
{
	static const char *const keys[] = { "state_dir", "default_tier", "sources", "protect", "keep_failed",
		"stall_limit", "extend_limit", "threads", "path", "min_free", "dax", "project_ids" };
	FILE *in = fopen(EXAMPLE, "r");
	char text[8192] = "", *out = text;
	struct conf *plain, *full;
	size_t size;

	(void)state;
	assert_non_null(in);
	size = fread(text, 1, sizeof(text) - 1, in);
	assert_int_equal(fclose(in), 0);
	assert_in_range(size, 100, sizeof(text) - 2);
	plain = load(text, NULL);
	for (const char *at = text; *at; at++) {
		if (*at != '#' || at[1] == ' ')
			*out++ = *at;
	}
	*out = '\0';
	full = load(text, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_non_null(strstr(text, keys[i]));
	assert_string_equal(full->state_dir, plain->state_dir);
	assert_string_equal(full->default_tier, plain->default_tier);
	assert_int_equal(full->n_sources, plain->n_sources);
	assert_int_equal(full->n_protected, plain->n_protected);
	assert_int_equal(full->keep_failed, plain->keep_failed);
	assert_int_equal(full->stall_limit, plain->stall_limit);
	assert_int_equal(full->extend_limit, plain->extend_limit);
	assert_int_equal(full->threads, plain->threads);
	assert_int_equal(full->n_tiers, plain->n_tiers);
	assert_true(full->tiers[0].min_free_percent - plain->tiers[0].min_free_percent < 1e-9);
	assert_int_equal(full->tiers[0].dax, plain->tiers[0].dax);
	assert_int_equal(full->tiers[0].project_first, plain->tiers[0].project_first);
	conf_free(plain);
	conf_free(full);
}

/* Whatever the file holds: a complete configuration, or an error of one line that names it. */
static void test_mutations(void **state)
{
	static const char start[] = "# c\n[stagetool]\nstate_dir = /s/%N ; x\ndefault_tier=b\n"
				    "sources=/a /b\nkeep_failed=7d\nextend_limit=no\nthreads=3\n"
				    "[tier a]\npath=/t\nmin_free=5%\n[tier b]\npath=/u\n"
				    "dax=any\nproject_ids=5-9\n";
	static const char bytes[] = "[]=:;# \t\n\r%/.\"x0\xff\x01";
	unsigned seed = 3, valid = 0, rounds = 3000;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct error err = ERROR_INIT;
		struct conf *conf = NULL;
		char text[sizeof(start)];
		size_t size = sizeof(start) - 1;

		memcpy(text, start, sizeof(start));
		for (int n = 1 + rand_r(&seed) % 3; n; n--)
			text[(size_t)rand_r(&seed) % size] =
				bytes[(size_t)rand_r(&seed) % (sizeof(bytes) - 1)];
		if (!(rand_r(&seed) % 8))
			size = (size_t)rand_r(&seed) % size;
		write_bytes(text, size);
		if (conf_load(file, "n1", &conf, &err)) {
			assert_int_equal(err.code, -EINVAL);
			assert_int_equal(strncmp(err.text, file, strlen(file)), 0);
			assert_null(strpbrk(err.text, "\n\r\x01"));
			assert_null(conf);
			continue;
		}
		valid++;
		assert_non_null(conf_tier(conf, NULL, &err));
		assert_int_equal(*conf->state_dir, '/');
		for (size_t j = 0; j < conf->n_tiers; j++)
			assert_int_equal(*conf->tiers[j].path, '/');
		conf_free(conf);
	}
	assert_in_range(valid, rounds / 50, rounds - rounds / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_tier),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_line_length),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_owner_user),
		cmocka_unit_test(test_no_stall_limit),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
