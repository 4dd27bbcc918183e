#include "stage/stage_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "stage/inside.h"

void stage_in_target_free(struct stage_in_target *target)
{
	if (target->fd >= 0)
		close(target->fd);
	free(target->dir);
	free(target->root);
}

/* A directory that is to go to where a symlink to a directory is: into that, and the symlink stays.
 */
static int follow_link(
	struct transfer_item *item, struct stage_in_target *target, struct error *err)
{
	int stagefd = item->transfer->context->stagefd;
	char *real = NULL;
	int fd = inside_open(stagefd, item->plan->local, O_RDONLY | O_DIRECTORY, &real, err);

	if (fd < 0)
		return fd;
	close(target->fd);
	free(target->root);
	target->fd = fd;
	target->root = real;
	target->name = ".";
	return 0;
}

int stage_in_target(struct transfer_item *item, struct stage_in_target *target, struct error *err)
{
	autofree char *dir = NULL;
	struct stat st;

	target->name = inside_split(item->plan->local, &dir);
	if (!target->name)
		return error_sys(err, -ENOMEM, "%s", item->plan->local);
	target->fd = inside_make_dirs(item->transfer->context->stagefd, dir, &target->dir, err);
	if (target->fd < 0)
		return target->fd;
	target->root = strcmp(target->dir, ".") == 0 ? strdup(target->name)
						     : path_join(target->dir, target->name);
	if (!target->root)
		return error_sys(err, -ENOMEM, "%s", item->plan->local);
	target->exists = fstatat(target->fd, target->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!target->exists && errno != ENOENT)
		return error_errno(err, "%s", item->plan->local);
	return target->exists && S_ISLNK(st.st_mode) && plan_brings_dir(item->plan)
		       ? follow_link(item, target, err)
		       : 0;
}
