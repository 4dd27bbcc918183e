#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "spec/spec.h"

#include <errno.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BASE "/sub/dir"

/* One spec, and what it must be read as. */
struct good_case {
	enum spec_side side;
	const char *text, *from, *to;
	bool from_glob, to_dir;
};

#define IN(text, from, to)                                                                         \
	{                                                                                          \
		SPEC_IN, text, from, to, false, false                                              \
	}
#define IN_DIR(text, from, to)                                                                     \
	{                                                                                          \
		SPEC_IN, text, from, to, false, true                                               \
	}
#define IN_GLOB(text, from, to)                                                                    \
	{                                                                                          \
		SPEC_IN, text, from, to, true, true                                                \
	}
#define OUT(text, from, to)                                                                        \
	{                                                                                          \
		SPEC_OUT, text, from, to, false, false                                             \
	}
#define OUT_DIR(text, from, to)                                                                    \
	{                                                                                          \
		SPEC_OUT, text, from, to, false, true                                              \
	}
#define OUT_GLOB(text, from, to)                                                                   \
	{                                                                                          \
		SPEC_OUT, text, from, to, true, true                                               \
	}

static const struct good_case good[] = {
	/* TO left out: FROM's own name */
	IN("/proj/data", "/proj/data", "data"),
	IN("/proj/data/", "/proj/data", "data"),
	IN("/proj/data//", "/proj/data", "data"),
	IN("/proj/./data/.", "/proj/data", "data"),
	IN("/proj/%x.%j", "/proj/%x.%j", "%x.%j"),
	IN("data", BASE "/data", "data"),
	IN("a/b", BASE "/a/b", "b"),
	IN("../b", BASE "/../b", "b"),
	IN(".", BASE, "dir"),
	IN("./", BASE, "dir"),
	IN("/a,verify", "/a", "a"),
	/* the slash rule */
	IN("/proj/data:d", "/proj/data", "d"),
	IN("/proj/data/:d", "/proj/data", "d"),
	IN("/proj/data:a/b", "/proj/data", "a/b"),
	IN("/proj/data:./a//b", "/proj/data", "a/b"),
	IN("/:root", "/", "root"),
	IN("..:up", BASE "/..", "up"),
	IN_DIR("/proj/data:d/", "/proj/data", "d"),
	IN_DIR("/proj/data:d//", "/proj/data", "d"),
	IN_DIR("/proj/data/:d/", "/proj/data", "d"),
	IN_DIR("/proj/data:./", "/proj/data", "."),
	IN_DIR("/proj/data:a/./", "/proj/data", "a"),
	OUT("results:/proj/r", "results", "/proj/r"),
	OUT("results/:/proj/r", "results", "/proj/r"),
	OUT("./a/b:/proj/r", "a/b", "/proj/r"),
	OUT(".:/proj/r", ".", "/proj/r"),
	OUT("./:/proj/r", ".", "/proj/r"),
	OUT(".:.", ".", BASE),
	OUT("results:r", "results", BASE "/r"),
	OUT("results:../r", "results", BASE "/../r"),
	OUT_DIR("results:/proj/", "results", "/proj"),
	OUT_DIR("results:/", "results", "/"),
	OUT_DIR("results://", "results", "/"),
	OUT_DIR("results:./", "results", BASE),
	OUT_DIR("results:../", "results", BASE "/.."),
	OUT_DIR("results:r/", "results", BASE "/r"),
	/* patterns */
	IN_GLOB("/proj/*.h5:d/", "/proj/*.h5", "d"),
	IN_GLOB("/proj/a?:./", "/proj/a?", "."),
	IN_GLOB("/proj/[ab]/c:d/", "/proj/[ab]/c", "d"),
	IN_GLOB("*:d/", BASE "/*", "d"),
	OUT_GLOB("*.log:/proj/logs/", "*.log", "/proj/logs"),
	OUT_GLOB("a[1]:r/", "a[1]", BASE "/r"),
	/* no pattern in TO */
	IN("/proj/a:b*", "/proj/a", "b*"),
	OUT("a:/p/[b]", "a", "/p/[b]"),
	/* odd names */
	IN("/a\\:b", "/a:b", "a:b"),
	IN("/a\\,b", "/a,b", "a,b"),
	IN("/a\\\\b", "/a\\b", "a\\b"),
	IN("/a\\:\\,\\\\:x\\:\\,\\\\", "/a:,\\", "x:,\\"),
	IN("/a b:c d", "/a b", "c d"),
	IN(" /a:b", BASE "/ /a", "b"),
	IN("/a :b ", "/a ", "b "),
	IN("/a'\"`;&|<>(){}!#:b=c", "/a'\"`;&|<>(){}!#", "b=c"),
	IN("/\xff\xfe:\xe4", "/\xff\xfe", "\xe4"),
	IN("/\xc3\xa9t\xc3\xa9", "/\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9"),
	IN("/100%%:b", "/100%%", "b"),
	IN("/a=b", "/a=b", "a=b"),
	IN("/a...:...", "/a...", "..."),
	IN("/a:..b", "/a", "..b"),
	IN("/a:-b", "/a", "-b"),
	IN("./@x", BASE "/@x", "@x"),
	IN("./~x", BASE "/~x", "~x"),
	IN("./$x", BASE "/$x", "$x"),
	IN("/a/./$x:./$y", "/a/$x", "$y"),
	IN("/a/~x:b/~", "/a/~x", "b/~"),
	IN("/a$x:b$", "/a$x", "b$"),
	IN("/a:.stagetoolx", "/a", ".stagetoolx"),
	IN("/a:b/.stagetool", "/a", "b/.stagetool"),
	IN("/a/.stagetool:b", "/a/.stagetool", "b"),
	OUT("@x:y", "@x", BASE "/y"),
	OUT("x:./~y", "x", BASE "/~y"),
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const struct good_case *want = &good[i];
		struct spec_list list = { 0 };
		struct error err = ERROR_INIT;
		const struct spec *got;

		/* Such a text is @FILE to spec_list_add; only an encoded list may hold it. */
		if (*want->text == '@')
			continue;
		if (spec_list_add(&list, want->side, want->text, BASE, &err))
			fail_msg("\"%s\": %s", want->text, err.text);
		assert_int_equal(err.code, 0);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.bytes, strlen(want->text) + 1);
		got = &list.items[0];
		if (strcmp(got->from, want->from) || strcmp(got->to, want->to) ||
			got->from_glob != want->from_glob || got->to_dir != want->to_dir)
			fail_msg("\"%s\": from \"%s\", to \"%s\", glob %d, dir %d", want->text,
				got->from, got->to, got->from_glob, got->to_dir);
		assert_int_equal(got->side, want->side);
		assert_string_equal(got->text, want->text);
		spec_list_free(&list);
		assert_int_equal(list.count, 0);
	}
}

static void test_options_in(void **state)
{
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;
	const struct spec *spec;

	(void)state;
	assert_int_equal(spec_list_add(&list, SPEC_IN, "/a:b", NULL, &err), 0);
	spec = &list.items[0];
	assert_int_equal(spec->dist, SPEC_DIST_ALL);
	assert_false(spec->sync || spec->verify || spec->optional);
	assert_int_equal(spec->n_patterns, 0);
	assert_int_equal(spec_list_add(&list, SPEC_IN,
				 "/a:b,as=copy,dist=first,sync,verify,optional,exclude=*.o,include="
				 "keep.o,exclude=x\\,y\\:z/",
				 NULL, &err),
		0);
	spec = &list.items[1];
	assert_int_equal(spec->dist, SPEC_DIST_FIRST);
	assert_true(spec->sync && spec->verify && spec->optional);
	assert_int_equal(spec->n_patterns, 3);
	assert_false(spec->patterns[0].include);
	assert_string_equal(spec->patterns[0].glob, "*.o");
	assert_true(spec->patterns[1].include);
	assert_string_equal(spec->patterns[1].glob, "keep.o");
	assert_false(spec->patterns[2].include);
	assert_string_equal(spec->patterns[2].glob, "x,y:z/");
	assert_int_equal(spec_list_add(&list, SPEC_IN,
				 "/a:b,include=a=b,include=a=b,include=/top/**/"
				 "x,include=.hidden,include=...",
				 NULL, &err),
		0);
	assert_int_equal(list.items[2].n_patterns, 5);
	assert_string_equal(list.items[2].patterns[1].glob, "a=b");
	spec_list_free(&list);
}

static void test_options_out(void **state)
{
	static const struct {
		const char *text;
		enum spec_when when;
		enum spec_gather gather;
		bool gather_set;
		enum spec_conflict conflict;
		bool remove, receipt;
	} cases[] = {
		{ "a:/b", SPEC_WHEN_ALWAYS, SPEC_GATHER_SUBDIR, false, SPEC_CONFLICT_KEEP, false,
			false },
		{ "a:/b,when=always,gather=subdir,conflict=keep", SPEC_WHEN_ALWAYS,
			SPEC_GATHER_SUBDIR, true, SPEC_CONFLICT_KEEP, false, false },
		{ "a:/b,when=success,gather=merge,conflict=fail,delete", SPEC_WHEN_SUCCESS,
			SPEC_GATHER_MERGE, true, SPEC_CONFLICT_FAIL, true, false },
		{ "a:/b,receipt,conflict=overwrite,when=failure", SPEC_WHEN_FAILURE,
			SPEC_GATHER_SUBDIR, false, SPEC_CONFLICT_OVERWRITE, false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec_list list = { 0 };
		struct error err = ERROR_INIT;
		const struct spec *spec;

		assert_int_equal(spec_list_add(&list, SPEC_OUT, cases[i].text, NULL, &err), 0);
		spec = &list.items[0];
		assert_int_equal(spec->when, cases[i].when);
		assert_int_equal(spec->gather, cases[i].gather);
		assert_int_equal(spec->gather_set, cases[i].gather_set);
		assert_int_equal(spec->conflict, cases[i].conflict);
		assert_int_equal(spec->remove, cases[i].remove);
		assert_int_equal(spec->receipt, cases[i].receipt);
		spec_list_free(&list);
	}
}

static void test_at(void **state)
{
	static const struct {
		const char *text, *at;
	} cases[] = {
		{ "/a", NULL },
		{ "/a:b,at=/x//y/", "/x/y" },
		{ "/a/%u:b/,at=same", "/a/%u" },
		{ "d:b,at=same", "/base/d" },
		{ "/a:b,at=/x/%j\\,\\:,verify", "/x/%j,:" },
		{ "/a:b,at=/etcetera", "/etcetera" },
		{ "/a:b,at=/x=y", "/x=y" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec_list list = { 0 };
		struct error err = ERROR_INIT;

		assert_int_equal(spec_list_add(&list, SPEC_IN, cases[i].text, "/base", &err), 0);
		if (cases[i].at)
			assert_string_equal(list.items[0].at, cases[i].at);
		else
			assert_null(list.items[0].at);
		spec_list_free(&list);
	}
}

/* A wrong spec, the column that the message must name, and what else it must say. */
struct bad_case {
	enum spec_side side;
	const char *text;
	unsigned column;
	const char *says;
};

static const struct bad_case bad[] = {
	/* missing and empty */
	{ SPEC_IN, "", 1, "FROM is empty" },
	{ SPEC_IN, ":x", 1, "FROM is empty" },
	{ SPEC_IN, ",verify", 1, "FROM is empty" },
	{ SPEC_IN, "/a:", 4, "TO is empty" },
	{ SPEC_IN, "/a:,verify", 4, "TO is empty" },
	{ SPEC_OUT, "a", 2, "TO is missing: expected FROM:TO" },
	{ SPEC_OUT, "abc,verify", 4, "TO is missing" },
	{ SPEC_OUT, "a:", 3, "TO is empty" },
	{ SPEC_OUT, ":/b", 1, "FROM is empty" },
	{ SPEC_IN, "/", 1, "no name of its own" },
	{ SPEC_IN, "//", 1, "no name of its own" },
	{ SPEC_IN, "..", 1, "no name of its own" },
	{ SPEC_IN, "/a/..", 1, "no name of its own" },
	{ SPEC_IN, "/:x/", 1, "no name of its own" },
	{ SPEC_IN, "..:x/", 1, "no name of its own" },
	{ SPEC_IN, "*/..:x/", 1, "no name of its own" },
	{ SPEC_OUT, ".:/b/", 1, "no name of its own" },
	/* ':' and '\' */
	{ SPEC_IN, "/a:b:c", 5, "write \\: for a ':' in a name" },
	{ SPEC_IN, "/a:b:", 5, "a second ':'" },
	{ SPEC_IN, "/a::b", 4, "a second ':'" },
	{ SPEC_IN, "/a\\::b:c", 7, "a second ':'" },
	{ SPEC_IN, "/a,verify:b", 10, "a ':' after the options" },
	{ SPEC_IN, "/a:b,include=x:y", 15, "write \\: for a ':' in a value" },
	{ SPEC_IN, "/a\\b", 3, "write \\\\ for a '\\' in a name" },
	{ SPEC_IN, "/a\\", 3, "write \\\\" },
	{ SPEC_IN, "/a\\\\\\x", 5, "write \\\\" },
	{ SPEC_IN, "/a\\*:b/", 3, "write \\\\" },
	{ SPEC_IN, "/a:b,include=\\d", 14, "write \\\\" },
	/* control bytes */
	{ SPEC_IN, "/a\nb", 3, "control byte 0x0a" },
	{ SPEC_IN, "/a\t", 3, "control byte 0x09" },
	{ SPEC_IN, "/a:b\x7f", 5, "control byte 0x7f" },
	{ SPEC_IN, "/a:b,include=\x01", 14, "control byte 0x01" },
	{ SPEC_IN, "/a\r", 3, "control byte 0x0d" },
	/* what leaves the stage, or is not the user's */
	{ SPEC_IN, "/a:/b", 4, "must be relative" },
	{ SPEC_IN, "/a:..", 4, "leaves $STAGE_DIR" },
	{ SPEC_IN, "/a:../", 4, "leaves $STAGE_DIR" },
	{ SPEC_IN, "/a:b/../c", 6, "leaves $STAGE_DIR" },
	{ SPEC_IN, "/a:b\\,/..", 8, "leaves $STAGE_DIR" },
	{ SPEC_IN, "/a:.", 4, "end it in '/'" },
	{ SPEC_IN, "/a:b/.", 6, "end it in '/'" },
	{ SPEC_OUT, "a:.", 3, "end it in '/'" },
	{ SPEC_OUT, "a:..", 3, "end it in '/'" },
	{ SPEC_OUT, "a:/b/.", 6, "end it in '/'" },
	{ SPEC_OUT, ".:/b/..", 6, "end it in '/'" },
	{ SPEC_OUT, ".:/.", 3, "is the root of all files" },
	{ SPEC_OUT, "/a:/b", 1, "must be relative" },
	{ SPEC_OUT, "a/../..:/b", 3, "leaves $STAGE_DIR" },
	{ SPEC_OUT, "..:/b", 1, "leaves $STAGE_DIR" },
	{ SPEC_OUT, "*/..:/b/", 3, "leaves $STAGE_DIR" },
	{ SPEC_IN, "/a:.stagetool", 4, "keeps its own files" },
	{ SPEC_IN, "/a:./.stagetool/", 4, "keeps its own files" },
	{ SPEC_IN, "/a:.stagetool/b", 4, "keeps its own files" },
	{ SPEC_IN, "/a/.stagetool", 1, "is called .stagetool" },
	{ SPEC_OUT, ".stagetool:/b", 1, "keeps its own files" },
	{ SPEC_OUT, ".stagetool/*:/b/", 1, "keeps its own files" },
	{ SPEC_IN, "/a:b/.stagetool-tmp.1", 6, "begins with .stagetool-tmp." },
	{ SPEC_OUT, "a:/b/.stagetool-tmp.x/c", 6, "begins with .stagetool-tmp." },
	/* what a shell would have expanded */
	{ SPEC_IN, "~/a", 1, "no shell expands" },
	{ SPEC_IN, "~:a", 1, "./~x" },
	{ SPEC_IN, "$HOME/a", 1, "no shell expands" },
	{ SPEC_IN, "/scratch/$USER/a", 10, "no shell expands" },
	{ SPEC_IN, "/a:$b", 4, "TO holds a name that begins with '$'" },
	{ SPEC_OUT, "a:~/b", 3, "no shell expands" },
	{ SPEC_OUT, "a:/b/${X}", 6, "no shell expands" },
	/* symbols */
	{ SPEC_IN, "/a%q", 3, "unknown symbol \"%q\"" },
	{ SPEC_IN, "/a:%", 4, "unknown symbol \"%\"" },
	{ SPEC_IN, "/a:\\:%%%", 8, "unknown symbol \"%\"" },
	{ SPEC_OUT, "a:/b/%J", 6, "unknown symbol \"%J\"" },
	/* patterns */
	{ SPEC_IN, "/a*", 4, "TO is missing: where FROM is a pattern" },
	{ SPEC_IN, "/a*:b", 5, "must end in '/'" },
	{ SPEC_IN, "/a[1]:b", 7, "write [*] [?] [[]" },
	{ SPEC_OUT, "a?:/b", 4, "must end in '/'" },
	{ SPEC_IN, "/a*:b/,verify,sync", 15, "\"sync\" can not go with a pattern" },
	/* options */
	{ SPEC_IN, "/proj/a:data,whn=x", 14,
		"unknown option \"whn\"; did you mean \"when\", an option of --stage-out? expected "
		"one of as, dist, at, sync, include, exclude, verify, optional" },
	{ SPEC_OUT, "a:/b,whn=always", 6, "did you mean \"when\"?" },
	{ SPEC_OUT, "a:/b,confict=keep", 6, "did you mean \"conflict\"?" },
	{ SPEC_OUT, "a:/b,overwrite", 6, "did you mean \"conflict=overwrite\"?" },
	{ SPEC_IN, "/a,exlcude=x", 4, "did you mean \"exclude\"?" },
	{ SPEC_IN, "/a,Verify", 4, "did you mean \"verify\"?" },
	{ SPEC_IN, "/a, verify", 4, "did you mean \"verify\"?" },
	{ SPEC_IN, "/a,zzzzzzz", 4, "unknown option \"zzzzzzz\": expected one of as, dist" },
	{ SPEC_IN, "/a,", 4, "an empty option" },
	{ SPEC_IN, "/a:b,,verify", 6, "an empty option" },
	{ SPEC_IN, "/a:b,verify,", 13, "an empty option" },
	{ SPEC_IN, "/a:b,=x", 6, "without a name" },
	{ SPEC_IN, "/a:b,verify,verify", 13, "given twice (first in column 6)" },
	{ SPEC_OUT, "a:/b,when=always,when=always", 18, "given twice (first in column 6)" },
	{ SPEC_IN, "/a:b,as=copy,as=copy", 14, "given twice" },
	{ SPEC_IN, "/a:b,verify=yes", 6, "takes no value" },
	{ SPEC_IN, "/a:b,sync=", 6, "takes no value" },
	{ SPEC_OUT, "a:/b,when", 6,
		"needs a value: expected when=VALUE, one of always, success, failure" },
	{ SPEC_OUT, "a:/b,gather=", 6, "needs a value" },
	{ SPEC_OUT, "a:/b,when=sucess", 11,
		"did you mean \"success\"? expected one of always, success, failure" },
	{ SPEC_OUT, "a:/b,conflict=replace", 15, "expected one of keep, fail, overwrite" },
	{ SPEC_OUT, "a:/b,gather=Merge", 13, "did you mean \"merge\"?" },
	{ SPEC_IN, "/a:b,dist=some", 11, "expected one of all, first" },
	{ SPEC_IN, "/a:b,as=zip", 9, "\"zip\" is not a value of \"as\": expected one of copy, unpack" },
	{ SPEC_IN, "/a:b,include", 6, "a pattern is missing" },
	{ SPEC_IN, "/a:b,exclude=", 6, "a pattern is missing" },
	{ SPEC_IN, "/a:b,exclude=/", 15, "can not match anything" },
	{ SPEC_IN, "/a:b,exclude=a//b", 16, "can not match anything" },
	{ SPEC_IN, "/a:b,exclude=a/./b", 16, "can not match anything" },
	{ SPEC_IN, "/a:b,exclude=../b", 14, "can not match anything" },
	{ SPEC_IN, "/a:b,exclude=a\\,/..", 18, "can not match anything" },
	/* the other side's */
	{ SPEC_IN, "/a:b,when=always", 6,
		"\"when\" is an option of --stage-out, not of --stage-in" },
	{ SPEC_IN, "/a:b,gather=merge", 6, "option of --stage-out" },
	{ SPEC_IN, "/a:b,conflict=keep", 6, "option of --stage-out" },
	{ SPEC_IN, "/a:b,delete", 6, "option of --stage-out" },
	{ SPEC_IN, "/a:b,receipt", 6, "option of --stage-out" },
	{ SPEC_IN, "/a:b,pack=tar", 6, "option of --stage-out" },
	{ SPEC_OUT, "a:/b,as=copy", 6, "\"as\" is an option of --stage-in, not of --stage-out" },
	{ SPEC_OUT, "a:/b,dist=all", 6, "option of --stage-in" },
	{ SPEC_OUT, "a:/b,sync", 6, "option of --stage-in" },
	{ SPEC_OUT, "a:/b,at=same", 6, "option of --stage-in" },
	{ SPEC_OUT, "a:/b,cache", 6, "option of --stage-in" },
	/* planned ones */
	{ SPEC_IN, "/a:b,as=image", 6,
		"as=image is not available in this version: expected copy, unpack" },
	{ SPEC_IN, "/a:b,as=unpack,sync", 16, "\"sync\" can not go with as=unpack" },
	{ SPEC_IN, "/a:b,verify,as=unpack", 6, "\"verify\" can not go with as=unpack" },
	{ SPEC_IN, "/a:b,as=overlay", 6, "as=overlay is not available" },
	{ SPEC_IN, "/a:b,as=lazy", 6, "as=lazy is not available" },
	{ SPEC_IN, "/a:b,dist=shard", 6, "dist=shard is not available" },
	{ SPEC_IN, "/a:b,dist=bcast", 6, "dist=bcast is not available" },
	{ SPEC_IN, "/a:b,cache", 6, "\"cache\" is not available in this version" },
	{ SPEC_OUT, "a:/b,pack=rar", 11, "expected one of none, tar.zst, tar.gz, tar, zip" },
	{ SPEC_OUT, "a:/b,pack=tar,delete", 15, "\"delete\" can not go with pack=" },
	{ SPEC_OUT, "a:/b,verify,pack=tar", 6, "\"verify\" can not go with pack=" },
	/* places */
	{ SPEC_IN, "/a:b,at", 6, "expected at=PATH or at=same" },
	{ SPEC_IN, "/a:b,at=", 9, "needs the absolute path" },
	{ SPEC_IN, "/a:b,at=x", 9, "needs the absolute path" },
	{ SPEC_IN, "/a:b,at=/x/../y", 9, "holds \"..\"" },
	{ SPEC_IN, "/a:b,at=/x,at=/y", 12, "given twice" },
	{ SPEC_IN, "/a:b,at=/x/%q", 9, "%q" },
	{ SPEC_IN, "/a*:b/,at=/x", 11, "pattern as FROM" },
	{ SPEC_IN, "/a*:b/,at=same", 11, "pattern as FROM" },
	{ SPEC_IN, "/a:b,at=/", 9, "/ is protected: it would hide /" },
	{ SPEC_IN, "/a:b,at=//", 9, "it would hide" },
	{ SPEC_IN, "/a:b,at=/etc", 9, "/etc is protected" },
	{ SPEC_IN, "/a:b,at=//etc/./x/", 9, "/etc/x is protected: nothing can be shown in /etc" },
	{ SPEC_IN, "/a:b,at=/proc/self/cwd", 9, "nothing can be shown in /proc" },
	{ SPEC_IN, "/usr/share:b,at=same", 17, "nothing can be shown in /usr" },
	/* files */
	{ SPEC_IN, "@", 2, "a file name is missing" },
};

static void check_bad(const struct bad_case *want, const char *base)
{
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;
	char start[64];
	int rc = spec_list_add(&list, want->side, want->text, base, &err);

	snprintf(start, sizeof(start), "%s: column %u of \"",
		want->side == SPEC_IN ? "--stage-in" : "--stage-out", want->column);
	if (rc != -EINVAL || err.code != -EINVAL || strncmp(err.text, start, strlen(start)) ||
		!strstr(err.text, want->says))
		fail_msg("\"%s\" (column %u, \"%s\"): rc %d, \"%s\"", want->text, want->column,
			want->says, rc, err.text);
	/* One line, whatever the user wrote. */
	assert_null(strpbrk(err.text, "\n\r\t\x7f\x01"));
	assert_int_equal(list.count, 0);
	assert_int_equal(list.bytes, 0);
	spec_list_free(&list);
}

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_bad(&bad[i], BASE);
}

/* Relative paths on the shared side, where it is not known what they are relative to. */
static void test_base(void **state)
{
	static const struct bad_case in = { SPEC_IN, "a:b", 1, "expected an absolute path" };
	static const struct bad_case out = { SPEC_OUT, "a:b", 3, "expected an absolute path" };
	static const struct bad_case odd = { SPEC_OUT, "a:b", 3, "name holds a control byte" };
	static const struct bad_case temp = { SPEC_IN, "a:b", 1, "keeps for its own files" };
	static const struct bad_case file = { SPEC_IN, "@specs", 2, "expected @/PATH" };
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;

	(void)state;
	check_bad(&in, NULL);
	check_bad(&out, NULL);
	check_bad(&in, "");
	check_bad(&in, "relative");
	check_bad(&odd, "/a\nb");
	check_bad(&temp, "/a/.stagetool-tmp.n/b");
	check_bad(&file, NULL);
	/* What the directory is called is only a name: no symbol, no pattern. */
	assert_int_equal(spec_list_add(&list, SPEC_IN, "x:y", "/100%j/[a]*", &err), 0);
	assert_string_equal(list.items[0].from, "/100%%j/[a]*/x");
	assert_false(list.items[0].from_glob);
	assert_int_equal(spec_list_add(&list, SPEC_IN, "x*:y/", "/100%j/[a]*?", &err), 0);
	assert_string_equal(list.items[1].from, "/100%%j/[[]a][*][?]/x*");
	assert_true(list.items[1].from_glob);
	assert_int_equal(spec_list_add(&list, SPEC_OUT, "x:y", "/100%j/[a]*", &err), 0);
	assert_string_equal(list.items[2].to, "/100%%j/[a]*/y");
	spec_list_free(&list);
}

/* A message shows the part of a long spec that it is about. */
static void test_long_message(void **state)
{
	struct spec_list list = { 0 };
	struct error err = ERROR_INIT;
	char text[4000];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "/", 1);
	memcpy(text + 3000, ":b,vrify,x", 10);
	text[3500] = '\0';
	assert_int_equal(spec_list_add(&list, SPEC_IN, text, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--stage-in: column 3004 of ...\"aaaa"));
	assert_non_null(strstr(err.text, "a:b,vrify,xaaa"));
	assert_non_null(
		strstr(err.text, "aaa\"...: unknown option \"vrify\"; did you mean \"verify\"?"));
	assert_true(strlen(err.text) < 500);
	spec_list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_options_in),
		cmocka_unit_test(test_options_out),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_base),
		cmocka_unit_test(test_long_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
