/*
 * stagetool.conf: the administrator's decisions, each with a safe default.
 */
#ifndef SPEC_CONF_H
#define SPEC_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum conf_dax { CONF_DAX_ANY, CONF_DAX_REQUIRE };

struct conf_tier {
	char *name;
	char *path; /* absolute, %N expanded */
	uint64_t min_free_bytes;
	double min_free_percent; /* -1: bytes count */
	enum conf_dax dax;
	uint32_t project_first, project_last; /* ids for the quotas of stages; 0: no quotas */
};

struct conf {
	char *state_dir; /* absolute, %N expanded; default /var/lib/stagetool */
	char *default_tier; /* default: the first tier */
	char **sources; /* absolute, cleaned; n_sources 0: any */
	size_t n_sources;
	char **protected; /* absolute, cleaned: no at= there, beside what protect.h has anyway */
	size_t n_protected;
	uint64_t keep_failed; /* seconds; default 7 days */
	uint64_t stall_limit; /* seconds; default 30 minutes; 0: none */
	bool extend_limit; /* default yes */
	unsigned threads; /* limit of the copy pool; 0: the tool chooses */
	struct conf_tier *tiers;
	size_t n_tiers;
};

/* Reads path. node expands %N (NULL: %N is an error). An unknown section or key, a wrong value, a value
 * given twice, a tier without a path, a default_tier that is not there: refused with file and line. As root
 * the file must be root's and not writable by others. Caller frees with conf_free. */
int conf_load(const char *path, const char *node, struct conf **conf, struct error *err);
void conf_free(struct conf *conf);

/* The tier called name (NULL: the default); NULL and err (the names there are) if there is none. */
const struct conf_tier *conf_tier(const struct conf *conf, const char *name, struct error *err);

/* Whether an absolute, cleaned path is below one of the sources (or there are none). Text only: the node
 * checks again what the path resolves to. */
bool conf_allows_source(const struct conf *conf, const char *path);

#endif
