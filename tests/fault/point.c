#include "fault/point.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault/calls.h"

/* A reply that is lost after the server has done the work, and what a client that asks again is
 * told. */
static const struct {
	const char *call, *errnos;
} late[] = {
	{ "mkdirat", "EEXIST EIO ETIMEDOUT ESTALE" },
	{ "mknodat", "EEXIST EIO ETIMEDOUT" },
	{ "symlinkat", "EEXIST EIO ETIMEDOUT" },
	{ "linkat", "EEXIST EIO ETIMEDOUT ESTALE" },
	{ "unlinkat", "ENOENT EIO ETIMEDOUT" },
	{ "renameat", "ENOENT EIO ETIMEDOUT ESTALE EINTR" },
	{ "renameat2", "ENOENT EEXIST EIO ETIMEDOUT ESTALE EINTR" },
	{ "openat", "EEXIST EINTR EIO" },
	{ "openat2", "EEXIST EINTR EIO" },
	{ "close", "EIO EINTR ENOSPC EDQUOT ETIMEDOUT" }, /* it closes in any case */
	{ "write", "EIO ENOSPC ETIMEDOUT" },
	{ "pwrite64", "EIO ENOSPC ETIMEDOUT" },
	{ "copy_file_range", "EIO ENOSPC ETIMEDOUT" },
	{ "ftruncate", "EIO" },
	{ "fsync", "EIO ENOSPC EDQUOT" },
	{ "fchmod", "EIO" },
	{ "fchown", "EIO" },
	{ "utimensat", "EIO" },
	{ "rename", "ENOENT EIO" },
	{ "unlink", "ENOENT EIO" },
	{ "mkdir", "EEXIST EIO" },
};

/* Calls that never get better: EINTR is not among these, nobody is interrupted for ever. */
static const char *const lasting[] = { "ENOSPC", "EDQUOT", "EIO", "ESTALE", "ETIMEDOUT", "EAGAIN",
	"EMFILE", "ENOMEM", "ENOSYS", "EOPNOTSUPP", "EACCES", "EPERM", "EROFS", "EINVAL", "EXDEV" };

static const struct {
	size_t length;
	bool every;
} shorter[] = { { 0, false }, { 1, false }, { 100, false }, { 1000, true } };

/* One kind of interference: all of its points differ in `at` only. */
struct kind {
	struct point point;
	unsigned long count;
};

struct kinds {
	struct kind *kinds;
	size_t count;
};

static void kinds_add(struct kinds *kinds, struct point point, unsigned long count)
{
	kinds->kinds = reallocarray(kinds->kinds, kinds->count + 1, sizeof(*kinds->kinds));
	if (!kinds->kinds)
		err(99, "memory");
	kinds->kinds[kinds->count++] = (struct kind){ point, count };
}

static bool is_lasting(const char *name)
{
	for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++) {
		if (!strcmp(lasting[i], name))
			return true;
	}
	return false;
}

static void kinds_add_errnos(struct kinds *kinds, const struct call *call, const char *errnos,
	enum trace_action action, unsigned long count)
{
	char text[256], *rest = text;

	snprintf(text, sizeof(text), "%s", errnos);
	for (char *name; (name = strsep(&rest, " "));) {
		struct point point = {
			.action = action, .call = call->number, .error = errnos_number(name)
		};

		if (!point.error)
			continue;
		kinds_add(kinds, point, count);
		point.every = true;
		if ((action == TRACE_FAIL || !call->errnos) && count > 1 && is_lasting(name))
			kinds_add(kinds, point, count);
	}
}

static void kinds_of_call(struct kinds *kinds, const struct call *call, unsigned long count)
{
	if (call->errnos)
		kinds_add_errnos(kinds, call, call->errnos, TRACE_FAIL, count);
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		if (!strcmp(late[i].call, call->name))
			kinds_add_errnos(kinds, call, late[i].errnos, TRACE_LATE, count);
	}
	for (size_t i = 0;
		calls_length_argument(call) >= 0 && i < sizeof(shorter) / sizeof(shorter[0]); i++) {
		struct point point = { .action = TRACE_SHORT, .call = call->number,
			.length = shorter[i].length, .every = shorter[i].every };

		/* a write of nothing is not an answer that a kernel gives */
		if (point.length || !strncmp(call->name, "read", 4) ||
			!strncmp(call->name, "pread", 5))
			kinds_add(kinds, point, point.every ? 1 : count);
	}
}

static size_t kinds_total(const struct kinds *kinds, unsigned long most)
{
	size_t total = 0;

	for (size_t i = 0; i < kinds->count; i++)
		total += kinds->kinds[i].count < most ? kinds->kinds[i].count : most;
	return total;
}

/* The largest share that every kind can have. */
static unsigned long kinds_share(const struct kinds *kinds, size_t limit)
{
	unsigned long share = 1;

	if (!limit)
		return -1UL;
	while (share < 100000 && kinds_total(kinds, share + 1) <= limit)
		share++;
	return share;
}

static void point_list_take(struct point_list *list, struct kinds *kinds, size_t limit)
{
	unsigned long share = kinds_share(kinds, limit);

	list->count = 0;
	list->points = calloc(kinds_total(kinds, share) + 1, sizeof(*list->points));
	if (!list->points)
		err(99, "memory");
	for (size_t i = 0; i < kinds->count; i++) {
		const struct kind *kind = &kinds->kinds[i];
		unsigned long taken = kind->count < share ? kind->count : share;

		for (unsigned long j = 0; j < taken; j++) {
			struct point *point = &list->points[list->count++];

			*point = kind->point;
			/* evenly, and each kind from another start */
			point->at = taken == kind->count ?
				j + 1 :
				(j * kind->count / taken + i * 7) % kind->count + 1;
		}
	}
	free(kinds->kinds);
}

void point_list_make(struct point_list *list, const unsigned long *counts, size_t limit)
{
	struct kinds kinds = { NULL, 0 };

	for (int number = 0; number < CALLS_MAX; number++) {
		const struct call *call = calls_find(number);

		if (call && counts[number])
			kinds_of_call(&kinds, call, counts[number]);
	}
	point_list_take(list, &kinds, limit);
}

void point_list_make_kills(struct point_list *list, unsigned long total, bool alone, size_t limit)
{
	struct kinds kinds = { NULL, 0 };
	struct point point = { .action = TRACE_KILL, .call = CALL_ANY };

	kinds_add(&kinds, point, total);
	point.action = TRACE_KILL_AFTER;
	kinds_add(&kinds, point, total);
	if (alone) {
		point.alone = true;
		kinds_add(&kinds, point, total);
	}
	point = (struct point){ .action = TRACE_SIGNAL, .call = CALL_ANY, .signal = SIGTERM };
	kinds_add(&kinds, point, total);
	point_list_take(list, &kinds, limit);
}

void point_list_free(struct point_list *list)
{
	free(list->points);
}

const char *point_options(const struct point *point, char *buffer, size_t size)
{
	const char *name = point->call == CALL_ANY ? "any" : calls_find(point->call)->name;
	int used = snprintf(buffer, size, "--call %s --at %lu", name, point->at);
	char *rest = buffer + used;
	size_t room = size - (size_t)used;

	switch (point->action) {
	case TRACE_FAIL:
	case TRACE_LATE:
		snprintf(rest, room, " --errno %s%s%s", errnos_name(point->error),
			point->action == TRACE_LATE ? " --late" : "",
			point->every ? " --every" : "");
		break;
	case TRACE_SHORT:
		snprintf(rest, room, " --short %zu%s", point->length,
			point->every ? " --every" : "");
		break;
	case TRACE_SIGNAL:
		snprintf(rest, room, " --signal %d", point->signal);
		break;
	default:
		snprintf(rest, room, " --kill%s%s",
			point->action == TRACE_KILL_AFTER ? " --after" : "",
			point->alone ? " --alone" : "");
	}
	return buffer;
}

/* An option that stands alone. */
static bool parse_flag(const char *name, struct point *point)
{
	if (!strcmp(name, "--late"))
		point->action = TRACE_LATE;
	else if (!strcmp(name, "--every"))
		point->every = true;
	else if (!strcmp(name, "--kill"))
		point->action = TRACE_KILL;
	else if (!strcmp(name, "--after"))
		point->action = TRACE_KILL_AFTER;
	else if (!strcmp(name, "--alone"))
		point->alone = true;
	else
		return false;
	return true;
}

static bool parse_value(const char *name, const char *value, struct point *point)
{
	if (!strcmp(name, "--call")) {
		point->call = calls_number(value);
		return point->call != -1;
	}
	if (!strcmp(name, "--at")) {
		point->at = strtoul(value, NULL, 10);
		return point->at > 0;
	}
	if (!strcmp(name, "--errno")) {
		point->error = errnos_number(value);
		return point->error != 0;
	}
	if (!strcmp(name, "--short")) {
		point->action = TRACE_SHORT;
		point->length = strtoul(value, NULL, 10);
		return true;
	}
	if (strcmp(name, "--signal") != 0)
		return false;
	point->action = TRACE_SIGNAL;
	point->signal = (int)strtol(value, NULL, 10);
	return true;
}

int point_parse(const char *options, struct point *point)
{
	char text[256], *rest = text;

	snprintf(text, sizeof(text), "%s", options);
	*point = (struct point){ .action = TRACE_FAIL, .call = -1 };
	for (char *name; (name = strsep(&rest, " "));) {
		const char *value;

		if (!*name || parse_flag(name, point))
			continue;
		value = strsep(&rest, " ");
		if (!value || !parse_value(name, value, point))
			return -1;
	}
	return point->at && point->call != -1 ? 0 : -1;
}
