#include "archive/pack_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static int file_pack(int rootfd, int fd, const struct pack_file *to,
	const struct pack_options *options, struct copy_counts *counts, struct error *err)
{
	struct pack *pack;
	int rc = pack_new(rootfd, fd, options, &pack, err);

	if (rc)
		return rc;
	if (to->at_work)
		to->at_work(to->ctx, pack);
	rc = pack_run(pack, err);
	pack_counts(pack, counts);
	if (to->at_work)
		to->at_work(to->ctx, NULL);
	pack_free(pack);
	return rc;
}

/* From the bytes on a disk to the name. The temporary is gone afterwards. */
static int file_publish(struct publish *publish, int *fd, const struct pack_file *to, dev_t dev,
	const char *temp, struct publish_result *result, struct error *err)
{
	struct publish_request request = { to->dirfd, dev, temp, to->name, &to->expect,
		to->conflict, to->suffix, 0 };
	struct stat st;
	int rc = publish_sync(*fd, err);

	if (!rc && fstat(*fd, &st) < 0)
		rc = error_errno(err, "stat");
	if (!rc && close(take_fd(*fd)) < 0 && errno != EINTR)
		rc = error_errno(err, "close");
	if (rc) {
		unlinkat(to->dirfd, temp, 0);
		return rc;
	}
	request.ino = st.st_ino;
	rc = publish_entry(publish, &request, result, err);
	return rc ? rc : publish_sync(to->dirfd, err);
}

static int file_write(struct publish *publish, int rootfd, const struct pack_file *to,
	const struct pack_options *options, struct publish_result *result,
	struct copy_counts *counts, struct error *err)
{
	char temp[PUBLISH_TEMP_SIZE];
	autoclose int fd = publish_create(publish, to->dirfd, 0666, temp, err);
	int rc;

	if (fd < 0)
		return fd;
	rc = file_pack(rootfd, fd, to, options, counts, err);
	if (rc) {
		unlinkat(to->dirfd, temp, 0);
		return rc;
	}
	return file_publish(publish, &fd, to, options->target_dir->st_dev, temp, result, err);
}

int pack_file(int rootfd, const struct pack_file *to, const struct pack_options *options,
	struct publish_result *result, struct copy_counts *counts, struct error *err)
{
	struct pack_options own = *options;
	struct publish *publish;
	struct stat dir;
	int rc;

	if (fstat(to->dirfd, &dir) < 0)
		return error_errno(err, "stat");
	own.target_dir = &dir;
	own.target_name = to->name;
	rc = publish_new(&publish, err);
	if (rc)
		return rc;
	publish_remove_dead(publish, to->dirfd, NULL, NULL);
	rc = file_write(publish, rootfd, to, &own, result, counts, err);
	publish_free(publish);
	return rc;
}
