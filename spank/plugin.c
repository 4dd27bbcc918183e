#include "spank/plugin.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int plugin_parse(int count, char *arguments[], struct plugin *plugin, struct error *err)
{
	*plugin = (struct plugin){ .tool = TOOL_PATH, .conf = CONF_PATH };
	for (int i = 0; i < count; i++) {
		if (!strncmp(arguments[i], "tool=", 5)) {
			plugin->tool = arguments[i] + 5;
		} else if (!strncmp(arguments[i], "conf=", 5)) {
			plugin->conf = arguments[i] + 5;
			plugin->conf_given = true;
		} else {
			return error_set(err, -EINVAL,
				"plugstack.conf: stage.so: '%s' is not known: expected tool=PATH "
				"or conf=PATH",
				arguments[i]);
		}
	}
	if (plugin->tool[0] != '/' || plugin->conf[0] != '/')
		return error_set(err, -EINVAL,
			"plugstack.conf: stage.so: '%s': expected an absolute path",
			plugin->tool[0] != '/' ? plugin->tool : plugin->conf);
	return 0;
}

int plugin_check_tool(const struct plugin *plugin, struct error *err)
{
	struct stat st;

	if (stat(plugin->tool, &st) < 0)
		return error_errno(err, "tool %s", plugin->tool);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "tool %s: not a regular file", plugin->tool);
	if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return error_set(err, -EPERM,
			"tool %s: expected a file of root's that no group and no others may write",
			plugin->tool);
	if (!(st.st_mode & S_IXUSR))
		return error_set(err, -EACCES, "tool %s: not executable", plugin->tool);
	return 0;
}
