#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "spec/spec.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BASE "/sub/dir"

static char top[] = "/tmp/test_spec_list.XXXXXX";
static char file[sizeof(top) + 16];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(file, sizeof(file), "%s/specs", top);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(top);
}

/* Adds "i..." or "o..." to the list. */
static int add(struct spec_list *list, const char *word, struct error *err)
{
	return spec_list_add(list, *word == 'i' ? SPEC_IN : SPEC_OUT, word + 1, BASE, err);
}

static void add_all(struct spec_list *list, const char *const *words)
{
	struct error err = ERROR_INIT;

	for (; *words; words++) {
		if (add(list, *words, &err))
			fail_msg("%s: %s", *words, err.text);
	}
}

#define MAX_WORDS 6

static const struct {
	const char *words[MAX_WORDS];
	const char *message; /* the whole of it; NULL: nothing is wrong */
} checks[] = {
	{ { NULL }, NULL },
	{ { "i/a", "i/b", "oa:/r/a", "ob:/r/b" }, NULL },
	/* the case of two inputs with one name */
	{ { "i/x/f", "i/y/f" }, "--stage-in \"/x/f\" and --stage-in \"/y/f\": both have the target "
				"\"f\" in $STAGE_DIR: give one of them another TO" },
	{ { "i/x/f:d/", "i/b", "i/y/f:d/" },
		"--stage-in \"/x/f:d/\" and --stage-in \"/y/f:d/\": both have the target \"d/f\" "
		"in $STAGE_DIR: give one of them another TO" },
	{ { "i/y/f:d//", "i/x/g:./d/f" },
		"--stage-in \"/y/f:d//\" and --stage-in \"/x/g:./d/f\": both have the target "
		"\"d/f\" in $STAGE_DIR: give one of them another TO" },
	{ { "i/x/f", "i/y/f:g" }, NULL },
	{ { "i/x/%j", "i/y/%j" }, "--stage-in \"/x/%j\" and --stage-in \"/y/%j\": both have the "
				  "target \"%j\" in $STAGE_DIR: give one of them another TO" },
	/* one inside the other */
	{ { "i/a:d/e", "i/b:d" },
		"--stage-in \"/a:d/e\" and --stage-in \"/b:d\": one goes inside what the other one "
		"brings, to \"d/e\" in $STAGE_DIR: give one of them another TO" },
	{ { "i/a:d", "i/b:d.e", "i/c:d/x/y" },
		"--stage-in \"/a:d\" and --stage-in \"/c:d/x/y\": one goes inside what the other "
		"one brings, to \"d/x/y\" in $STAGE_DIR: give one of them another TO" },
	{ { "i/a:d", "i/b:d.e", "i/c:dd", "i/d:e/d" }, NULL },
	/* patterns: what matches is known on the node */
	{ { "i/a/*:d/", "i/b/*:d/" }, NULL },
	{ { "i/a/*:d/", "i/b:d/b" }, NULL },
	{ { "i/a/*:d/", "i/b/*:d/e/" }, NULL },
	{ { "i/a/*:./", "i/b" }, NULL },
	{ { "i/a/*:d/", "i/b:d" },
		"--stage-in \"/a/*:d/\" and --stage-in \"/b:d\": one goes inside what the other "
		"one brings, to \"d\" in $STAGE_DIR: give one of them another TO" },
	{ { "i/b:d", "i/a/*:d/e/" },
		"--stage-in \"/b:d\" and --stage-in \"/a/*:d/e/\": one goes inside what the other "
		"one brings, to \"d/e\" in $STAGE_DIR: give one of them another TO" },
	/* stage-out: the shared side counts */
	{ { "oa:/r", "ob:/r" }, "--stage-out \"a:/r\" and --stage-out \"b:/r\": both have the "
				"target \"/r\": give one of them another TO" },
	{ { "oa:r", "ob:" BASE "/r" },
		"--stage-out \"a:r\" and --stage-out \"b:/sub/dir/r\": both have the target "
		"\"/sub/dir/r\": give one of them another TO" },
	{ { "ox/f:/r/", "oy/f:/r/" }, "--stage-out \"x/f:/r/\" and --stage-out \"y/f:/r/\": both "
				      "have the target \"/r/f\": give one of them another TO" },
	{ { "of:/", "og:/f" }, "--stage-out \"f:/\" and --stage-out \"g:/f\": both have the target "
			       "\"/f\": give one of them another TO" },
	{ { "oa:/r,when=success", "ob:/r,when=failure" },
		"--stage-out \"a:/r,when=success\" and --stage-out \"b:/r,when=failure\": both "
		"have the target \"/r\": give one of them another TO" },
	{ { "oa:/r", "ob:/r/b", "o*:/r/" }, NULL },
	{ { "oa:/r/1", "oa:/r/2" }, NULL },
	{ { "i/r", "or:/r" }, NULL },
	/* sync is a stage-out too */
	{ { "i/r:a,sync", "ob:/r" }, "--stage-in \"/r:a,sync\" (sync) and --stage-out \"b:/r\": "
				     "both have the target \"/r\": give one of them another TO" },
	{ { "ob:/r", "i/r:a,sync" }, "--stage-out \"b:/r\" and --stage-in \"/r:a,sync\" (sync): "
				     "both have the target \"/r\": give one of them another TO" },
	{ { "i/r:a,sync", "i/r:b,sync" },
		"--stage-in \"/r:a,sync\" (sync) and --stage-in \"/r:b,sync\" (sync): both have "
		"the target \"/r\": give one of them another TO" },
	{ { "i/r:a,sync", "i/r:b" }, NULL },
	{ { "i/r:a,sync", "ob:/r/b" }, NULL },
	/* and a receipt is written as well */
	{ { "oa:/r,receipt", "ob:/r.receipt.json" },
		"--stage-out \"a:/r,receipt\" (receipt) and --stage-out \"b:/r.receipt.json\": "
		"both have the target \"/r.receipt.json\": give one of them another TO" },
	{ { "oa:/r/,receipt", "ob:/r.receipt.json" }, NULL },
};

static void test_check(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		struct spec_list list = { 0 };
		struct error err = ERROR_INIT;
		size_t count;
		int rc;

		add_all(&list, checks[i].words);
		count = list.count;
		rc = spec_list_check(&list, &err);
		if (strcmp(err.text, checks[i].message ? checks[i].message : ""))
			fail_msg("%zu: \"%s\"", i, err.text);
		assert_int_equal(rc, checks[i].message ? -EINVAL : 0);
		assert_int_equal(list.count, count);
		spec_list_free(&list);
	}
}

/* As many specs as fit must not take long. */
static void test_check_many(void **state)
{
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;
	char text[32];
	int n = 0;

	(void)state;
	for (;; n++) {
		snprintf(text, sizeof(text), "/%d", n);
		if (spec_list_add(&list, SPEC_IN, text, NULL, &err))
			break;
	}
	assert_int_equal(err.code, -EINVAL);
	assert_non_null(strstr(err.text, "longer than 65536 bytes together"));
	assert_true(n > 5000);
	assert_int_equal(list.count, n);
	assert_true(list.bytes <= SPEC_MAX_BYTES);
	err.text[0] = '\0';
	assert_int_equal(spec_list_check(&list, &err), 0);
	spec_list_free(&list);
}

static void test_limit(void **state)
{
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;
	char *text = malloc(SPEC_MAX_BYTES + 2), *encoded = NULL;

	(void)state;
	memset(text, 'a', SPEC_MAX_BYTES + 1);
	text[0] = '/';
	text[SPEC_MAX_BYTES] = '\0';
	assert_int_equal(spec_list_add(&list, SPEC_IN, text, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "longer than 65536 bytes together"));
	text[SPEC_MAX_BYTES - 1] = '\0';
	assert_int_equal(spec_list_add(&list, SPEC_IN, text, NULL, &err), 0);
	assert_int_equal(list.bytes, SPEC_MAX_BYTES);
	assert_int_equal(spec_list_add(&list, SPEC_IN, "", NULL, &err), -EINVAL);
	/* With its target written out it is too long for the environment. */
	assert_int_equal(spec_list_encode(&list, &encoded, &err), -EINVAL);
	assert_non_null(strstr(err.text, "relative paths made absolute"));
	assert_null(encoded);
	spec_list_free(&list);
	free(text);
}

static void test_tier_and_size(void **state)
{
	static const char *const good[] = { "nvme", "a", "7", "A.b_c-9",
		"a234567890123456789012345678901234567890" };
	static const char *const bad[] = { "", "a/b", ".a", "-a", "_a", "a b", "a\n", "\xc3\xa4",
		"%N", "a2345678901234567890123456789012345678901" };
	static const char *const bad_sizes[] = { "", "0", "0G", "lots", "-1", "1.5", "99999P" };
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(spec_list_set_tier(&list, good[i], &err), 0);
		assert_string_equal(list.tier, good[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(spec_list_set_tier(&list, bad[i], &err), -EINVAL);
		assert_int_equal(strncmp(err.text, "--stage-tier: ", 14), 0);
		assert_null(strchr(err.text, '\n'));
		assert_string_equal(list.tier, good[ARRAY_SIZE(good) - 1]);
	}
	assert_int_equal(spec_list_set_size(&list, "1.5G", &err), 0);
	assert_int_equal(spec_list_set_size(&list, "2T", &err), 0);
	assert_int_equal(list.size, 2ULL << 40);
	for (size_t i = 0; i < ARRAY_SIZE(bad_sizes); i++) {
		assert_int_equal(spec_list_set_size(&list, bad_sizes[i], &err), -EINVAL);
		assert_int_equal(strncmp(err.text, "--stage-size: ", 14), 0);
		assert_int_equal(list.size, 2ULL << 40);
	}
	spec_list_free(&list);
}

static void write_file(const char *bytes, size_t size)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
}

static void test_file(void **state)
{
	static const char text[] = "# inputs\n"
				   "\n"
				   "/proj/a\n"
				   "#/proj/no\n"
				   "b:c d ,verify\n"
				   " e \n"
				   "./#f:g";
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;
	char at[64];

	(void)state;
	write_file(text, sizeof(text) - 1);
	snprintf(at, sizeof(at), "@%s", file);
	assert_int_equal(spec_list_add(&list, SPEC_IN, "/first", BASE, &err), 0);
	assert_int_equal(spec_list_add(&list, SPEC_IN, at, BASE, &err), 0);
	assert_int_equal(list.count, 5);
	assert_string_equal(list.items[1].from, "/proj/a");
	assert_string_equal(list.items[2].from, BASE "/b");
	assert_string_equal(list.items[2].to, "c d ");
	assert_true(list.items[2].verify);
	assert_string_equal(list.items[2].text, "b:c d ,verify");
	assert_string_equal(list.items[3].to, " e ");
	assert_string_equal(list.items[4].from, BASE "/#f");
	/* relative: to base */
	assert_int_equal(spec_list_add(&list, SPEC_OUT, "@specs", top, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--stage-out: specs:3: column 1 of \"/proj/a\": FROM"));
	assert_int_equal(list.count, 5);
	/* an absolute one without a base: its relative paths have none */
	assert_int_equal(spec_list_add(&list, SPEC_IN, at, NULL, &err), -EINVAL);
	assert_non_null(strstr(
		err.text, "specs:5: column 1 of \"b:c d ,verify\": FROM is a relative path"));
	assert_int_equal(list.count, 5);
	write_file("", 0);
	assert_int_equal(spec_list_add(&list, SPEC_IN, at, NULL, &err), 0);
	assert_int_equal(list.count, 5);
	spec_list_free(&list);
}

static void test_bad_file(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *says;
	} cases[] = {
#define BYTES(text) text, sizeof(text) - 1
		{ BYTES("/a\r\n"),
			":1: column 3 of \"/a\\r\": the line ends in a carriage return" },
		{ BYTES("\r\n"), ":1: column 1 of \"\\r\": the line ends in a carriage return" },
		{ BYTES("/a\n\n@x\n"),
			":3: column 1 of \"@x\": a file of specs can not name another one" },
		{ BYTES("/a\n/b:../c"), ":2: column 4 of \"/b:../c\": TO leaves $STAGE_DIR" },
		{ BYTES("/a\n/b\0c\n"), ":2: column 3 of \"/b\": a NUL byte" },
		{ BYTES("/a\n\0\n"), ":2: column 1 of \"\": a NUL byte" },
		{ BYTES("/a\n#\0\n"), ":2: column 2 of \"#\": a NUL byte" },
		{ BYTES("/a\n  \n"), ":2: column 1 of \"  \": FROM is a relative path" },
		{ BYTES("\xef\xbb\xbf/a\n"),
			":1: column 1 of \"\xef\xbb\xbf/a\": FROM is a relative path" },
#undef BYTES
	};
	char at[64], big[SPEC_MAX_BYTES + 1];
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;

	(void)state;
	snprintf(at, sizeof(at), "@%s", file);
	assert_int_equal(spec_list_add(&list, SPEC_IN, "/first", NULL, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char start[64];

		snprintf(start, sizeof(start), "--stage-in: %s:", file);
		write_file(cases[i].text, cases[i].size);
		assert_int_equal(spec_list_add(&list, SPEC_IN, at, NULL, &err), -EINVAL);
		if (strncmp(err.text, start, strlen(start)) || !strstr(err.text, cases[i].says))
			fail_msg("%zu: %s", i, err.text);
		/* the list is as before, also where lines of the file were right */
		assert_int_equal(list.count, 1);
		assert_int_equal(list.bytes, strlen("/first") + 1);
	}
	memset(big, '\n', sizeof(big));
	write_file(big, sizeof(big));
	assert_int_equal(spec_list_add(&list, SPEC_IN, at, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is longer than 65536 bytes"));
	write_file(big, sizeof(big) - 1);
	assert_int_equal(spec_list_add(&list, SPEC_IN, at, NULL, &err), 0);
	assert_int_equal(spec_list_add(&list, SPEC_IN, "@/nonexistent/x", NULL, &err), -ENOENT);
	assert_string_equal(
		err.text, "--stage-in: file of specs: /nonexistent/x: No such file or directory");
	assert_int_equal(spec_list_add(&list, SPEC_IN, "@/", NULL, &err), -EISDIR);
	assert_int_equal(list.count, 1);
	spec_list_free(&list);
}

/* What the text looks like: it is a contract between versions of the plugin and the tool. */
static void test_encode(void **state)
{
	static const char *const words[] = { "i/proj/a", "idata/:x/", "i/a\\:\\,\\\\b",
		"i./@x:./~y", "i/a/./$x/b", "i*.h5:./,dist=first,exclude=a\\,b,include=c",
		"or:r,when=failure,gather=subdir",
		"o.:/p/%x.%j,gather=merge,conflict=fail,delete,receipt,verify,optional", "ox:/",
		/* "@..." is a file to spec_list_add: a name that begins so has "./" before it */
		"o./@q:/q", NULL };
	static const char want[] =
		"stagetool 1\n"
		"in /proj/a:a\n"
		"in /sub/dir/data:x/\n"
		"in /a\\:\\,\\\\b:a\\:\\,\\\\b\n"
		"in /sub/dir/@x:./~y\n"
		"in /a/./$x/b:b\n"
		"in /sub/dir/*.h5:./,dist=first,exclude=a\\,b,include=c\n"
		"out r:/sub/dir/r,when=failure,gather=subdir\n"
		"out .:/p/%x.%j,gather=merge,conflict=fail,delete,receipt,verify,optional\n"
		"out x:/\n"
		"out ./@q:/q\n"
		"tier nvme\n"
		"size 1024\n";
	struct spec_list list = { 0 }, back = { 0 };
	struct error err = ERROR_INIT;
	char *text = NULL;

	(void)state;
	add_all(&list, words);
	assert_int_equal(spec_list_set_tier(&list, "nvme", &err), 0);
	assert_int_equal(spec_list_set_size(&list, "1K", &err), 0);
	assert_int_equal(spec_list_encode(&list, &text, &err), 0);
	assert_string_equal(text, want);
	assert_int_equal(spec_list_decode(text, &back, &err), 0);
	assert_int_equal(back.count, list.count);
	assert_string_equal(back.items[5].to, ".");
	assert_true(back.items[5].to_dir && back.items[5].from_glob);
	assert_true(back.items[6].gather_set);
	assert_string_equal(back.tier, "nvme");
	assert_int_equal(back.size, 1024);
	spec_list_free(&list);
	spec_list_free(&back);
	free(text);
}

static void test_decode_bad(void **state)
{
	static const char *const cases[][2] = {
		{ "", "the job's staging options: they are empty" },
		{ "\n", "written by another version of stagetool" },
		{ "stagetool 2\n", "written by another version of stagetool" },
		{ "stagetool 1", "line 1 is cut off" },
		{ "stagetool 1\nin /a", "line 2 is cut off" },
		{ "stagetool 1\n\n", "line 2: unknown, or given twice" },
		{ "stagetool 1\nin\n", "line 2: unknown" },
		{ "stagetool 1\nup /a\n", "line 2: unknown" },
		{ "stagetool 1\nin /a\nin b\n", "line 3: --stage-in: column 1 of \"b\"" },
		{ "stagetool 1\nin @/etc/passwd\n",
			"line 2: --stage-in: column 1 of \"@/etc/passwd\": FROM is a relative" },
		{ "stagetool 1\nout a:b\n", "line 2: --stage-out: column 3" },
		{ "stagetool 1\nin /a:/b\n", "line 2: --stage-in: column 4" },
		{ "stagetool 1\nin /a:b\tc\n", "line 2: --stage-in: column 5" },
		{ "stagetool 1\nin-literal /a*:b,whn\n", "column 7" },
		{ "stagetool 1\ntier a/b\n", "line 2: --stage-tier" },
		{ "stagetool 1\ntier a\ntier a\n", "line 3: unknown, or given twice" },
		{ "stagetool 1\nsize 0\n", "line 2: --stage-size" },
		{ "stagetool 1\nsize 1\nsize 1\n", "line 3: unknown, or given twice" },
		{ "stagetool 1\nin /a/f\nin /b/f\n", "both have the target \"f\"" },
	};
	char *big = malloc(SPEC_MAX_BYTES + 2);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec_list list = { 0 };
		struct error err = ERROR_INIT;

		if (spec_list_decode(cases[i][0], &list, &err) != -EINVAL ||
			!strstr(err.text, cases[i][1]) ||
			strncmp(err.text, "the job's staging options: ", 27))
			fail_msg("\"%s\": %s", cases[i][0], err.text);
		assert_null(list.items);
		assert_null(list.tier);
	}
	memset(big, 'x', SPEC_MAX_BYTES + 1);
	big[SPEC_MAX_BYTES + 1] = '\0';
	assert_int_equal(spec_list_decode(big, &(struct spec_list){ 0 }, NULL), -EINVAL);
	free(big);
}

static void compare_specs(const struct spec *a, const struct spec *b, const char *text)
{
	bool equal = a->side == b->side && !strcmp(a->from, b->from) && !strcmp(a->to, b->to) &&
		     a->from_glob == b->from_glob && a->to_dir == b->to_dir && a->dist == b->dist &&
		     a->when == b->when && a->gather == b->gather &&
		     a->gather_set == b->gather_set && a->conflict == b->conflict &&
		     a->sync == b->sync && a->verify == b->verify && a->optional == b->optional &&
		     a->remove == b->remove && a->receipt == b->receipt &&
		     !a->at == !b->at && (!a->at || !strcmp(a->at, b->at)) &&
		     a->n_patterns == b->n_patterns;

	for (size_t i = 0; equal && i < a->n_patterns; i++)
		equal = a->patterns[i].include == b->patterns[i].include &&
			!strcmp(a->patterns[i].glob, b->patterns[i].glob);
	if (!equal)
		fail_msg("\"%s\" is \"%s\" -> \"%s\", after a round \"%s\" -> \"%s\" (encoded "
			 "\"%s\")",
			a->text, a->from, a->to, b->from, b->to, text);
}

/* What was encoded is what is decoded, and is encoded the same again. */
static void check_round(const struct spec_list *list)
{
	struct spec_list back = { 0 };
	struct error err = ERROR_INIT;
	char *text = NULL, *again = NULL;

	if (spec_list_encode(list, &text, &err))
		fail_msg("%s", err.text);
	if (spec_list_decode(text, &back, &err))
		fail_msg("%s\n%s", text, err.text);
	assert_int_equal(back.count, list->count);
	for (size_t i = 0; i < list->count; i++)
		compare_specs(&list->items[i], &back.items[i], text);
	assert_int_equal(back.size, list->size);
	assert_int_equal(!back.tier, !list->tier);
	assert_int_equal(spec_list_encode(&back, &again, &err), 0);
	assert_string_equal(text, again);
	spec_list_free(&back);
	free(text);
	free(again);
}

/* A source of repeatable chance. */
static unsigned chance(unsigned *seed, unsigned n)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 8) % n;
}

static void append_path(unsigned *seed, char *text, bool escaped)
{
	static const char *const pieces[] = { "a", "bc", ".", "..", "...", " ", "\\:", "\\,",
		"\\\\", "*", "?", "[x]", "%j", "%%", "%N", "$", "~", "@", "#", "=", "\xff",
		"\xc3\xa9", "'", "\"", ";", "-", "/", "/", "/", "/./", "//" };

	for (unsigned n = 1 + chance(seed, 6); n; n--) {
		const char *piece = pieces[chance(seed, ARRAY_SIZE(pieces))];

		strcat(text, *piece == '\\' && !escaped ? piece + 1 : piece);
	}
}

/* Often, but not always, a valid spec. */
static void append_spec(unsigned *seed, enum spec_side side, char *text)
{
	static const char *const options[2][10] = {
		{ "verify", "optional", "sync", "dist=first", "at=/x/%%\\,=", "at=same",
			"include=a\\,b/", "exclude=*\\:", "include=\\\\/**", "exclude=[!a]?" },
		{ "verify", "optional", "when=success", "when=always", "gather=merge",
			"gather=subdir", "conflict=overwrite", "delete", "receipt", "exclude=$x" },
	};

	if (chance(seed, 2))
		strcat(text, side == SPEC_IN ? "/" : "./");
	append_path(seed, text, true);
	if (side == SPEC_OUT || chance(seed, 3)) {
		strcat(text, ":");
		if (chance(seed, 2))
			strcat(text, side == SPEC_OUT ? "/" : "./");
		append_path(seed, text, true);
		if (chance(seed, 2))
			strcat(text, "/");
	}
	for (unsigned n = chance(seed, 4); n; n--)
		strcat(strcat(text, ","), options[side][chance(seed, 10)]);
}

static void test_round_trip(void **state)
{
	unsigned seed = 20, valid = 0, tried;

	(void)state;
	for (tried = 0; tried < 60000; tried++) {
		enum spec_side side = (enum spec_side)chance(&seed, 2);
		char text[512] = "", base[256] = "/";
		struct spec_list list = { 0 };
		struct error err = ERROR_INIT;

		append_spec(&seed, side, text);
		append_path(&seed, base, false);
		if (*text != '@' && !spec_list_add(&list, side, text, base, &err)) {
			valid++;
			if (chance(&seed, 2))
				assert_int_equal(spec_list_set_tier(&list, "t", &err), 0);
			list.size = chance(&seed, 3);
			check_round(&list);
		}
		spec_list_free(&list);
	}
	/* The property means something only if many were valid. */
	assert_true(valid > 5000);
	assert_true(valid < tried);
}

static void mutate(unsigned *seed, char *text, size_t size)
{
	static const char bytes[] = ":,\\\n /.%*[@~$=\t\xff\x01io1";

	for (unsigned n = 1 + chance(seed, 4); n; n--) {
		size_t length = strlen(text), at = length ? chance(seed, (unsigned)length) : 0;
		char byte = bytes[chance(seed, sizeof(bytes) - 1)];

		switch (chance(seed, 4)) {
		case 0: /* change */
			if (length)
				text[at] = byte;
			break;
		case 1: /* insert */
			if (length + 2 < size) {
				memmove(text + at + 1, text + at, length - at + 1);
				text[at] = byte;
			}
			break;
		case 2: /* remove */
			if (length)
				memmove(text + at, text + at + 1, length - at);
			break;
		default: /* cut off */
			if (!chance(seed, 8))
				text[at] = '\0';
		}
	}
}

/* Whatever comes: an error of one line, or a list that can be encoded and means the same again. */
static void test_mutations(void **state)
{
	static const char start[] =
		"stagetool 1\nin /proj/a\\:b:c/,dist=first,exclude=*.o,include=a/\n"
		"in-literal /x[1]/./$y:./~z\nin /g*:h/\nout r/%x:/s/%j.%n/,when=failure,delete\n"
		"out .:/q,gather=merge,receipt,conflict=fail\ntier nvme\nsize 4096\n";
	unsigned seed = 7, valid = 0, rounds = 60000;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct spec_list list = { 0 };
		struct error err = ERROR_INIT;
		char text[600], *line;

		strcpy(text, start);
		mutate(&seed, text, sizeof(text));
		if (!spec_list_decode(text, &list, &err)) {
			valid++;
			check_round(&list);
		} else {
			assert_int_equal(err.code, -EINVAL);
			assert_null(strpbrk(err.text, "\n\t\x01"));
			assert_null(list.items);
		}
		spec_list_free(&list);
		/* and as a user's option */
		line = strchr(text, '/');
		if (line && *line &&
			!spec_list_add(&list, (enum spec_side)(i & 1), line, BASE, &err))
			check_round(&list);
		spec_list_free(&list);
	}
	assert_in_range(valid, rounds / 100, rounds - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_many),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_tier_and_size),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_decode_bad),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
