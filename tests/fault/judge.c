#include "fault/judge.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define TEMPORARY ".stagetool-tmp."

static char *told;
static size_t told_size;

void judge_begin(char *text, size_t size)
{
	told = text;
	told_size = size;
	told[0] = '\0';
}

void judge_say(const char *format, ...)
{
	size_t used = strlen(told);
	va_list args;

	if (used)
		used += (size_t)snprintf(told + used, told_size - used, "; ");
	if (used >= told_size)
		return;
	va_start(args, format);
	vsnprintf(told + used, told_size - used, format, args);
	va_end(args);
}

static bool is_temporary(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, TEMPORARY, strlen(TEMPORARY));
}

/* A name as the tool prints it. */
static void escape(const char *path, char *text, size_t size)
{
	size_t used = 0;

	for (; *path && used + 5 < size; path++)
		used += (size_t)snprintf(
			text + used, size - used, *path == '\n' ? "\\n" : "%c", *path);
	text[used] = '\0';
}

/* Whether the tool named path or a directory above it (then all below is meant). */
static bool is_named(const char *said, const char *path)
{
	char text[600];
	char *slash;

	escape(path, text, sizeof(text));
	if (strstr(said, text))
		return true;
	while ((slash = strrchr(text, '/'))) {
		*slash = '\0';
		for (const char *hit = strstr(said, text); hit; hit = strstr(hit + 1, text)) {
			char next = hit[strlen(text)];

			if (next != '/' && !isalnum((unsigned char)next))
				return true;
		}
	}
	return false;
}

/* No half file: each final name has its whole new content or its whole old content. */
static void judge_names(const struct world *world, const struct snapshot *now)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct entry *entry = &now->entries[i];
		const struct entry *want = snapshot_find(world->want, entry->path);
		const struct entry *old = snapshot_find(world->old, entry->path);

		if (is_temporary(entry->path) || (S_ISDIR(entry->st.st_mode) && (want || old)))
			continue;
		if (want && !snapshot_difference(now, entry, world->want, want, IGNORE_ATTRIBUTES))
			continue;
		if (old && !snapshot_difference(now, entry, world->old, old, IGNORE_ATTRIBUTES))
			continue;
		judge_say(want || old ? "neither old nor new under a final name: %s" :
					"a name that nobody asked for: %s",
			entry->path);
	}
	for (size_t i = 0; i < world->old->count; i++) {
		const struct entry *old = &world->old->entries[i];

		if (!is_temporary(old->path) && !snapshot_find(now, old->path))
			judge_say("was at the destination and is gone: %s", old->path);
	}
}

/* What is not as it should be is told to missing, if that returns; the number of them. */
static size_t incomplete(const struct world *world, const struct snapshot *now, unsigned ignore,
	void (*each)(const char *path, const char *what, const void *ctx), const void *ctx)
{
	size_t count = 0;

	for (size_t i = 0; i < world->want->count; i++) {
		const struct entry *want = &world->want->entries[i];
		const struct entry *is = snapshot_find(now, want->path);
		const char *what =
			is ? snapshot_difference(now, is, world->want, want, ignore) : "missing";

		if (what) {
			count++;
			each(want->path, what, ctx);
		}
	}
	return count;
}

static void say_lie(const char *path, const char *what, const void *ctx)
{
	judge_say("%s, but \"%s\": %s", (const char *)ctx, path, what);
}

/* Of names that are one file it is enough to name one. */
static bool is_group_named(const struct snapshot *want, const char *said, const char *path)
{
	size_t first = snapshot_find(want, path)->first_link;

	for (size_t i = first; i < want->count; i++) {
		if (want->entries[i].first_link == first && is_named(said, want->entries[i].path))
			return true;
	}
	return false;
}

struct naming {
	const struct snapshot *want;
	const char *said;
};

static void say_unnamed(const char *path, const char *what, const void *ctx)
{
	const struct naming *naming = ctx;

	if (*path && !is_group_named(naming->want, naming->said, path))
		judge_say("not named: \"%s\": %s", path, what);
}

static const char *left_over(const struct snapshot *now)
{
	for (size_t i = 0; i < now->count; i++) {
		if (is_temporary(now->entries[i].path))
			return now->entries[i].path;
	}
	return NULL;
}

/* Where the filesystem says that it has no extended attributes there is nothing to miss. A
 * directory that was there before is not ours to change. */
static unsigned excused(const struct scenario *scenario, const struct point *point)
{
	const struct call *call = calls_find(point->call);
	const char *name = call ? call->name : "";

	if (point->action == TRACE_LATE && point->error == EEXIST && strstr(name, "mkdir"))
		return IGNORE_DIR_MODES | IGNORE_DIR_TIMES;
	if (point->action == TRACE_FAIL && point->error == EOPNOTSUPP &&
		(strstr(name, "listxattr") || strstr(name, "getxattr")))
		return IGNORE_XATTRS;
	/* what seemed to be gone is sent by a second look, into a directory that was finished */
	if (scenario->job && point->error == ENOENT)
		return IGNORE_LINKS | IGNORE_DIR_TIMES;
	return 0;
}

/* An attribute that was refused for good, which was told, is not asked for again. */
static bool is_refusal(const struct point *point)
{
	static const char *const calls[] = { "xattr", "fchmod", "fchown", "utimensat" };
	static const int errnos[] = { EPERM, EACCES, EOPNOTSUPP, ERANGE, EINVAL, ENOENT };
	const struct call *call = calls_find(point->call);
	bool attribute = false, final = false;

	for (size_t i = 0; call && i < sizeof(calls) / sizeof(calls[0]); i++)
		attribute |= strstr(call->name, calls[i]) != NULL;
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
		final |= point->error == errnos[i];
	return attribute && final;
}

/* What is equal in size, mtime, mode and owner is left as it is, whatever its extended attributes;
 * so are symlinks and FIFOs, whatever their times. */
static unsigned excused_repair(
	const struct scenario *scenario, const struct point *point, bool warned)
{
	const struct call *call = calls_find(point->call);
	bool xattr = call && strstr(call->name, "xattr");

	/* of a job's results there is nothing left to ask again for */
	if (warned && (scenario->job || is_refusal(point)))
		return IGNORE_ATTRIBUTES;
	return IGNORE_OTHER_TIMES | excused(scenario, point) |
	       (xattr && warned ? IGNORE_XATTRS : 0);
}

/* Whether a path is one that a user named, and not the node's. */
static bool is_users(const struct world *world, const char *path)
{
	size_t length = strlen(world->root);

	return !strncmp(path, world->root, length) &&
		(!strncmp(path + length, "/from", 5) || !strncmp(path + length, "/to", 3));
}

static void judge_status(const struct scenario *scenario, const struct world *world,
	const struct snapshot *now,
	const struct point *point, const struct trace_result *result, const char *said)
{
	unsigned ignore = world->ignore | excused(scenario, point);
	int status = WEXITSTATUS(result->status);
	const struct call *call = calls_find(point->call);
	const char *name = call ? call->name : "";

	switch (status) {
	case 0:
		if (scenario->keeps && strstr(said, "error"))
			break;
		/* a job starts also with an attribute less, which its line of output tells */
		if (scenario->job && strstr(said, "not set"))
			ignore |= IGNORE_ATTRIBUTES;
		if (scenario->job && strstr(said, "vanished"))
			break;
		incomplete(world, now, ignore, say_lie, "exit status 0");
		if (left_over(now) && !strstr(said, TEMPORARY) && !strstr(name, "unlink"))
			judge_say("exit status 0, but left over: %s", left_over(now));
		break;
	case 3:
	case 5:
		/* who has no memory for ever has none for a name */
		if (!result->hit_output && !(!strcmp(name, "mmap") && point->every) &&
			!(scenario->item && strstr(said, scenario->item)))
			incomplete(world, now, ignore, say_unnamed,
				&(struct naming){ world->want, said });
		break;
	case 6: /* the node is broken, which files of the user's do not show */
		if (!scenario->job || (is_users(world, result->hit_path) && !point->every))
			judge_say("exit status 6 after %s", result->hit_path);
		break;
	case 1:
	case 4:
		if (!said[0] && !result->hit_output)
			judge_say("exit status %d without a word", status);
		break;
	default:
		judge_say("exit status %d", status);
	}
}

/* What is not as it was must be safe at the target. */
static void judge_consumed(const struct world *world, const struct snapshot *now)
{
	struct snapshot *target = snapshot_take(world->target);

	for (size_t i = 0; i < world->guard->count; i++) {
		const struct entry *was = &world->guard->entries[i];
		const struct entry *is = snapshot_find(now, was->path);
		const struct entry *safe = snapshot_find(target, was->path);

		if (is && !snapshot_difference(world->guard, was, now, is, IGNORE_ATTRIBUTES))
			continue;
		if (!safe ||
			snapshot_difference(world->guard, was, target, safe, IGNORE_ATTRIBUTES))
			judge_say("gone here and not safe there: %s", was->path);
	}
	snapshot_free(target);
}

static void judge_guard(const struct scenario *scenario, const struct world *world)
{
	struct snapshot *now = snapshot_take(world->guarded);
	char text[400];

	if (scenario->consumes)
		judge_consumed(world, now);
	else if (snapshot_compare(world->guard, now, 0, text, sizeof(text)))
		judge_say("the source changed: %s", text);
	snapshot_free(now);
}

void judge_run(const struct scenario *scenario, const struct world *world,
	const struct point *point, const struct trace_result *result, const char *said)
{
	struct snapshot *now = snapshot_take(world->target);
	bool killed = point->action == TRACE_KILL || point->action == TRACE_KILL_AFTER;
	int signal = WIFSIGNALED(result->status) ? WTERMSIG(result->status) : 0;

	if (result->timed_out)
		judge_say("hung");
	else if (!signal)
		judge_status(scenario, world, now, point, result, said);
	else if (!(killed && signal == SIGKILL && result->hits) && signal != point->signal)
		judge_say("died of signal %d", signal);
	if (!scenario->private_target)
		judge_names(world, now);
	judge_guard(scenario, world);
	if (scenario->extra)
		scenario->extra(world, result);
	snapshot_free(now);
}

/* What could not be removed is for a later run, once its process number is another's. */
static void judge_strangers(const struct world *world, const struct snapshot *now,
	const struct point *point)
{
	const struct call *call = calls_find(point->call);
	bool stuck = call && strstr(call->name, "unlink");

	for (size_t i = 0; i < now->count; i++) {
		const struct entry *entry = &now->entries[i];
		const struct entry *old = snapshot_find(world->old, entry->path);
		const char *what;

		if (snapshot_find(world->want, entry->path) ||
			(stuck && is_temporary(entry->path)))
			continue;
		what = old ? snapshot_difference(now, entry, world->old, old, IGNORE_DIR_TIMES) :
			     "not expected";
		if (what)
			judge_say("after the repair: %s: %s", entry->path, what);
	}
}

void judge_repair(const struct scenario *scenario, const struct world *world,
	const struct point *point, bool warned, const struct trace_result *result,
	const char *said)
{
	const struct call *call = calls_find(point->call);
	const char *target = world->repaired[0] ? world->repaired : world->target;
	struct snapshot *now = snapshot_take(target);
	unsigned ignore = world->ignore | excused_repair(scenario, point, warned) |
		scenario->ignore_repaired;
	/* a name of a file whose other name was done again has a new ctime, and counts as changed
	 */
	bool kept = point->every && call && !strcmp(call->name, "utimensat") &&
		WIFEXITED(result->status) && WEXITSTATUS(result->status) == 5;

	if (kept)
		ignore |= IGNORE_ATTRIBUTES;
	else if (result->timed_out || result->status != 0)
		judge_say("the repair ended with %x: %.200s", result->status, said);
	incomplete(world, now, ignore, say_lie, "repaired");
	judge_strangers(world, now, point);
	judge_guard(scenario, world);
	if (scenario->extra_repaired)
		scenario->extra_repaired(world, point);
	snapshot_free(now);
}
