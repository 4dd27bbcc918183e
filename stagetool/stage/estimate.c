#include "stage/estimate.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

#define FILES_MOST 32
#define FILES_OF_ITEM 8
#define PROBE_SECONDS 1.0
/* A rate is taken from files of at least so many bytes. */
#define LARGE (1024 * 1024)
#define PIECE (1024 * 1024)
/* What the copier keeps in flight at a source that is far away, and what one stream of it gains by
 * others beside it. */
#define WIDTH_FAR 64
#define WIDTH_NEAR 2
#define FAR_SECONDS 100e-6
#define STREAMS 4
/* A file, and bytes in a second, of the storage of a node. */
#define LOCAL_FILE_SECONDS 20e-6
#define LOCAL_BYTES_SECOND 2e9

struct probe {
	double start, file_seconds;
	double read_seconds, read_bytes;
	unsigned files;
	char *piece;
};

static double clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool is_over(const struct probe *probe)
{
	return probe->files >= FILES_MOST || clock_now() - probe->start > PROBE_SECONDS;
}

static void probe_stream(struct probe *probe, int fd)
{
	double start = clock_now();
	ssize_t got = 1;

	while (got > 0 && clock_now() - start < PROBE_SECONDS / 4) {
		got = read(fd, probe->piece, PIECE);
		if (got > 0)
			probe->read_bytes += (double)got;
	}
	probe->read_seconds += clock_now() - start;
}

static void probe_file(struct probe *probe, int dirfd, const char *name)
{
	double start = clock_now();
	autoclose int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		read(fd, probe->piece, 4096) < 0)
		return;
	probe->file_seconds += clock_now() - start;
	probe->files++;
	if (st.st_size >= LARGE)
		probe_stream(probe, fd);
}

/* Some files of a directory, or of the first ones below it that have some. */
static void probe_dir(struct probe *probe, int dirfd, unsigned depth)
{
	unsigned before = probe->files;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && !is_over(probe) && probe->files - before < FILES_OF_ITEM &&
		(entry = readdir(dir))) {
		if (entry->d_type == DT_REG) {
			probe_file(probe, dirfd, entry->d_name);
		} else if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && depth) {
			autoclose int below = openat(dirfd, entry->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (below >= 0)
				probe_dir(probe, below, depth - 1);
		}
	}
}

static void probe_item(struct probe *probe, const struct plan_item *item)
{
	autofree char *path =
		item->is_dir ? strdup(item->resolved)
			     : strndup(item->resolved,
				       (size_t)(path_base(item->resolved) - item->resolved));
	autoclose int fd = path && *path ? path_open(path, O_RDONLY | O_DIRECTORY, NULL) : -1;

	if (fd < 0)
		return;
	if (item->is_dir)
		probe_dir(probe, fd, 4);
	else
		probe_file(probe, fd, path_base(item->resolved));
}

/* Files go side by side, and so do the bytes of large ones; what takes longer decides. */
static double whole(const struct plan *plan, unsigned threads, const struct estimate *estimate)
{
	unsigned width = estimate->file_seconds > FAR_SECONDS ? WIDTH_FAR : WIDTH_NEAR;
	double files, bytes = 0;

	if (threads && threads < width)
		width = threads;
	files = (double)plan->inodes * estimate->file_seconds / width;
	if (estimate->bytes_second > 0)
		bytes = (double)plan->bytes / estimate->bytes_second /
			(width < STREAMS ? width : STREAMS);
	return files > bytes ? files : bytes;
}

void estimate_judge(const struct plan *plan, unsigned threads, struct estimate *estimate)
{
	double files = (double)plan->inodes, bytes = (double)plan->bytes;
	double local = files * LOCAL_FILE_SECONDS + bytes / LOCAL_BYTES_SECOND, gain;

	estimate->seconds = whole(plan, threads, estimate);
	estimate->pass_seconds = files * estimate->file_seconds;
	/* Of small files alone the rate is not known: what they hold came with the first read. */
	if (estimate->bytes_second > 0)
		estimate->pass_seconds += bytes / estimate->bytes_second;
	gain = estimate->pass_seconds - local;
	estimate->passes = gain > 0 ? estimate->seconds / gain : 0;
}

void estimate_make(const struct plan *plan, unsigned threads, struct estimate *estimate)
{
	struct probe probe = { .start = clock_now(), .piece = malloc(PIECE) };

	*estimate = (struct estimate){ 0 };
	for (size_t i = 0; probe.piece && i < plan->count && !is_over(&probe); i++) {
		if (!plan->items[i].missing)
			probe_item(&probe, &plan->items[i]);
	}
	free(probe.piece);
	if (!probe.files)
		return;
	estimate->files = probe.files;
	estimate->file_seconds = probe.file_seconds / probe.files;
	if (probe.read_seconds > 0)
		estimate->bytes_second = probe.read_bytes / probe.read_seconds;
	estimate_judge(plan, threads, estimate);
}
