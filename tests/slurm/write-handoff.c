/*
 * What the real tool's prolog leaves for the plugin, for the fake one:
 * write-handoff STATE_DIR JOBID DIR TIER NOTICE
 */
#include <stdio.h>

#include "spec/handoff.h"

int main(int argc, char *argv[])
{
	struct error err = ERROR_INIT;

	if (argc != 6) {
		fputs("write-handoff STATE_DIR JOBID DIR TIER NOTICE\n", stderr);
		return 2;
	}
	struct handoff handoff = { .dir = argv[3], .tier = argv[4], .notice = argv[5] };

	if (handoff_write(argv[1], argv[2], &handoff, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return 0;
}
