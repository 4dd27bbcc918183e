/*
 * What plugstack.conf says to the plugin: required stage.so [tool=PATH] [conf=PATH].
 */
#ifndef SPANK_PLUGIN_H
#define SPANK_PLUGIN_H

#include <stdbool.h>

#include "base/error.h"

struct plugin {
	const char *tool; /* borrowed from the arguments, or built in */
	const char *conf;
	bool conf_given;
};

/* -EINVAL for an argument that is none of these. */
int plugin_parse(int count, char *arguments[], struct plugin *plugin, struct error *err);

/* The tool runs as root: an absolute path to a regular file of root's that nobody else may write.
 */
int plugin_check_tool(const struct plugin *plugin, struct error *err);

/* The options, in the order of their table. */
enum plugin_option {
	PLUGIN_STAGE_IN,
	PLUGIN_STAGE_OUT,
	PLUGIN_STAGE_TIER,
	PLUGIN_STAGE_SIZE,
	PLUGIN_OPTIONS,
};

#endif
