/*
 * The grammar of --stage-in and --stage-out: FROM:TO[,opt[=value]]...
 *
 * Everything that can be wrong without looking at a filesystem is found here, with the column and what
 * was expected. No Slurm, no files but @FILE.
 */
#ifndef SPEC_SPEC_H
#define SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* All options of a job together stay below this: they travel in its environment, where 128 KiB is the
 * kernel's limit for one string. */
#define SPEC_MAX_BYTES (64 * 1024)

enum spec_side { SPEC_IN, SPEC_OUT };
enum spec_as { SPEC_AS_COPY, SPEC_AS_UNPACK };
enum spec_pack { SPEC_PACK_NONE, SPEC_PACK_TAR_ZST, SPEC_PACK_TAR_GZ, SPEC_PACK_TAR, SPEC_PACK_ZIP };
enum spec_dist { SPEC_DIST_ALL, SPEC_DIST_FIRST };
enum spec_when { SPEC_WHEN_ALWAYS, SPEC_WHEN_SUCCESS, SPEC_WHEN_FAILURE };
enum spec_gather { SPEC_GATHER_SUBDIR, SPEC_GATHER_MERGE };
enum spec_conflict { SPEC_CONFLICT_KEEP, SPEC_CONFLICT_FAIL, SPEC_CONFLICT_OVERWRITE };

/* include= or exclude=, in the order written; the last match wins. */
struct spec_pattern {
	bool include;
	char *glob;
};

struct spec {
	enum spec_side side;
	char *text; /* as the user wrote it */
	/* Unescaped, cleaned (path_clean), symbols not yet expanded. The shared side is absolute, the
	 * stage's side relative to $STAGE_DIR and without "..". "." is the stage itself (FROM of out). */
	char *from;
	char *to; /* where TO ended in '/', without it; never NULL: a missing TO of in is FROM's name */
	bool from_glob; /* FROM holds * ? or [ : it is a pattern (fnmatch, FNM_PATHNAME | FNM_PERIOD, no
			 * escapes) */
	bool to_dir; /* TO is the directory that FROM goes into under its own name */
	enum spec_as as;
	enum spec_pack pack;
	enum spec_dist dist;
	enum spec_when when;
	enum spec_gather gather;
	bool gather_set; /* gather= was written */
	enum spec_conflict conflict;
	char *at; /* where the job is to see it too: absolute, cleaned, symbols not yet expanded; NULL: nowhere */
	bool sync, verify, optional, remove, receipt; /* remove: the option delete */
	struct spec_pattern *patterns;
	size_t n_patterns;
};

/* "tar.zst", for SPEC_PACK_TAR_ZST. */
const char *spec_pack_name(enum spec_pack pack);

/* Whether local (cleaned, symbols expanded) may be written or read in a stage: a symbol's value can lead
 * where the text of the spec did not. -EINVAL for an absolute path, "..", and what the tool keeps for
 * itself. */
int spec_check_local(const char *local, struct error *err);

/* Whether name can be a tier's: letters, digits, '.', '_' and '-', at most 40, the first one a letter or a
 * digit. */
bool spec_is_tier_name(const char *name);

/* Everything a job asked for. */
struct spec_list {
	struct spec *items;
	size_t count;
	char *tier; /* --stage-tier; NULL: the administrator's default */
	uint64_t size; /* --stage-size in bytes; 0: not given */
	size_t bytes; /* of all texts so far */
};

void spec_list_free(struct spec_list *list);

/* Parses one option value and adds it. text may be @FILE (specs one a line, '#' comments and empty lines
 * skipped; read relative to base). base is the absolute directory that a relative shared path is
 * relative to; NULL: such a path is refused. On failure -EINVAL (or of reading FILE) and err says spec,
 * column and what was expected; the list is as before. */
int spec_list_add(struct spec_list *list, enum spec_side side, const char *text, const char *base,
	struct error *err);

/* --stage-tier and --stage-size. Given twice: the last one counts, as Slurm does it. */
int spec_list_set_tier(struct spec_list *list, const char *name, struct error *err);
int spec_list_set_size(struct spec_list *list, const char *text, struct error *err);

/* What only the whole shows: two specs with one target (both are named), sync and a stage-out at odds,
 * total length. Adds nothing. */
int spec_list_check(const struct spec_list *list, struct error *err);

/* A text of printable lines for the job's environment, and back. Decoding does not trust its input:
 * everything is parsed and checked anew. Caller frees *text. */
int spec_list_encode(const struct spec_list *list, char **text, struct error *err);
int spec_list_decode(const char *text, struct spec_list *list, struct error *err);

#endif
