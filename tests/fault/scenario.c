#include "fault/scenario.h"

const struct scenario *scenario_get(size_t index)
{
	static const struct scenario *const groups[] = { scenarios_copy, scenarios_stage,
		scenarios_job };

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		for (const struct scenario *scenario = groups[i]; scenario->name; scenario++) {
			if (index-- == 0)
				return scenario;
		}
	}
	return NULL;
}
