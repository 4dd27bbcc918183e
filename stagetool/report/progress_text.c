#include "base/parse.h"
#include "report/numbers.h"
#include "report/progress.h"

#include <stdio.h>

/* Seconds until both totals are reached at these rates; 0: not known. */
static double progress_left(const struct progress_now *now, const struct progress_rates *rates)
{
	double left = 0;

	if (now->total_bytes > now->bytes && rates->bytes > 0)
		left = (double)(now->total_bytes - now->bytes) / rates->bytes;
	if (now->total_files > now->files && rates->files > 0) {
		double files = (double)(now->total_files - now->files) / rates->files;

		if (files > left)
			left = files;
	}
	return left;
}

/* What must not be lost in a narrow terminal comes first. */
char *progress_text(const char *label, const struct progress_now *now,
	const struct progress_rates *rates, char *buffer, size_t size)
{
	char files[64], bytes[64], total[100] = "", rate[80] = "", left[80] = "", text[64];
	double seconds = progress_left(now, rates);

	if (now->total_bytes)
		snprintf(total, sizeof(total), " of %s (%.0f %%)",
			parse_format_size(now->total_bytes, text, sizeof(text)),
			now->bytes < now->total_bytes
				? 100.0 * (double)now->bytes / (double)now->total_bytes
				: 100.0);
	if (rates->bytes >= 1)
		snprintf(rate, sizeof(rate), ", %s/s",
			parse_format_size((uint64_t)rates->bytes, text, sizeof(text)));
	else if (rates->files >= 1)
		snprintf(rate, sizeof(rate), ", %s files/s",
			numbers_format((uint64_t)rates->files, text));
	if (seconds > 0)
		snprintf(left, sizeof(left), ", %s left",
			parse_format_duration(seconds, text, sizeof(text)));
	snprintf(buffer, size, "%s: %s, %s%s%s%s", label,
		numbers_count(now->files, "file", "files", files, sizeof(files)),
		parse_format_size(now->bytes, bytes, sizeof(bytes)), total, rate, left);
	return buffer;
}

double progress_next(double seconds)
{
	double distance = seconds < 10 ? 10 : seconds < 20 ? 10 : seconds;

	return seconds < 10 ? 10 : seconds + (distance < 300 ? distance : 300);
}
