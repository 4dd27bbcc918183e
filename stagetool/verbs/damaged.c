#include "verbs/damaged.h"

#include "stage/manifest_guard.h"
#include "verbs/verbs.h"

#include <unistd.h>

static void damaged_end(void)
{
	static const char text[] = "stagetool: error: manifest: damaged; "
				   "remove .stagetool/manifest to begin anew\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(VERB_FAILED);
}

void damaged_guard(void)
{
	manifest_guard(damaged_end);
}
