#include "report/summary.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "report/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rate of less says nothing. */
#define RATE_BYTES (1024 * 1024)
/* Nothing is as fast; what a process of the user's tells may be anything. */
#define RATE_MOST 1e18

void summary_add_problem(struct summary *summary, const char *path, const char *kind, const char *text)
{
	struct summary_problem problem, *grown;

	if (summary->n_problems >= SUMMARY_MAX_NAMED) {
		summary->n_unnamed++;
		return;
	}
	grown = reallocarray(summary->problems, summary->n_problems + 1, sizeof(*grown));
	if (!grown) {
		summary->n_unnamed++;
		return;
	}
	summary->problems = grown;
	problem.path = strdup(path);
	problem.kind = strdup(kind);
	problem.text = strdup(text);
	if (problem.path && problem.kind && problem.text) {
		grown[summary->n_problems++] = problem;
		return;
	}
	summary->n_unnamed++;
	free(problem.path);
	free(problem.kind);
	free(problem.text);
}

void summary_merge(struct summary *total, const struct summary *item)
{
	struct copy_counts *to = &total->counts;
	const struct copy_counts *from = &item->counts;

	to->files += from->files;
	to->directories += from->directories;
	to->symlinks += from->symlinks;
	to->others += from->others;
	to->bytes += from->bytes;
	to->unchanged += from->unchanged;
	to->failed += from->failed;
	to->vanished += from->vanished;
	to->changed += from->changed;
	to->conflicts += from->conflicts;
	to->attributes += from->attributes;
	to->dropped += from->dropped;
	to->special += from->special;
	total->removed += item->removed;
	total->seconds += item->seconds;
	for (size_t i = 0; i < item->n_problems; i++) {
		const struct summary_problem *problem = &item->problems[i];

		summary_add_problem(total, problem->path, problem->kind, problem->text);
	}
	total->n_unnamed += item->n_unnamed;
}

void summary_free(struct summary *summary)
{
	for (size_t i = 0; i < summary->n_problems; i++) {
		free(summary->problems[i].path);
		free(summary->problems[i].kind);
		free(summary->problems[i].text);
	}
	free(summary->problems);
	summary->problems = NULL;
	summary->n_problems = summary->n_unnamed = 0;
}

int summary_status(const struct summary *summary)
{
	const struct copy_counts *counts = &summary->counts;

	if (counts->failed || counts->vanished || counts->changed || counts->attributes)
		return 3;
	return counts->conflicts ? 5 : 0;
}

/* What a person should know beside the plain count; entries with 0 are left out. */
static void summary_list_rest(const struct summary *summary, FILE *stream)
{
	const struct copy_counts *counts = &summary->counts;
	const struct {
		uint64_t number;
		const char *one, *many;
	} rest[] = {
		{ counts->unchanged, "unchanged", "unchanged" },
		{ summary->removed, "removed", "removed" },
		{ counts->failed, "failed", "failed" },
		{ counts->conflicts, "conflict", "conflicts" },
		{ counts->changed, "changed while being read", "changed while being read" },
		{ counts->vanished, "vanished", "vanished" },
		{ counts->attributes, "attribute not set", "attributes not set" },
		{ counts->dropped, "without its special bits", "without their special bits" },
		{ counts->special, "socket or device skipped", "sockets or devices skipped" },
	};
	char text[96];

	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		if (rest[i].number)
			fprintf(stream, ", %s",
				numbers_count(rest[i].number, rest[i].one, rest[i].many, text,
					sizeof(text)));
	}
}

char *summary_line(const struct summary *summary)
{
	const struct copy_counts *counts = &summary->counts;
	uint64_t entries = counts->files + counts->symlinks + counts->others;
	double per_second = summary->seconds > 0 ? (double)counts->bytes / summary->seconds : 0;
	char files[64], size[64], time[64], rate[64];
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		return NULL;
	fprintf(stream, "%s %s, %s in %s", summary->verb,
		numbers_count(entries, "file", "files", files, sizeof(files)),
		parse_format_size(counts->bytes, size, sizeof(size)),
		parse_format_duration(summary->seconds, time, sizeof(time)));
	if (counts->bytes >= RATE_BYTES && per_second > 0 && per_second < RATE_MOST)
		fprintf(stream, " (%s/s)",
			parse_format_size((uint64_t)per_second, rate, sizeof(rate)));
	summary_list_rest(summary, stream);
	if (fclose(stream) == EOF) {
		free(text);
		return NULL;
	}
	return text;
}
