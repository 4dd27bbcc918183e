#include "tree/meta_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERMISSIONS (S_IRWXU | S_IRWXG | S_IRWXO)
#define MODE_BITS (S_ISUID | S_ISGID | S_ISVTX | PERMISSIONS)

int meta_new(const struct meta_options *options, struct meta **meta, struct error *err)
{
	struct meta *new = calloc(1, sizeof(*new));
	int room = getgroups(0, NULL);

	if (!new)
		return error_sys(err, -ENOMEM, "attributes");
	new->options = *options;
	new->uid = geteuid();
	new->gid = getegid();
	new->root = new->uid == 0;
	new->groups = calloc((size_t)(room > 0 ? room : 0) + 1, sizeof(*new->groups));
	if (!new->groups) {
		meta_free(new);
		return error_sys(err, -ENOMEM, "attributes");
	}
	new->n_groups = room > 0 ? getgroups(room, new->groups) : room;
	if (new->n_groups < 0) {
		meta_free(new);
		return error_errno(err, "getgroups");
	}
	*meta = new;
	return 0;
}

void meta_free(struct meta *meta)
{
	if (!meta)
		return;
	free(meta->groups);
	free(meta);
}

static bool is_member(const struct meta *meta, gid_t gid)
{
	if (gid == meta->gid)
		return true;
	for (int i = 0; i < meta->n_groups; i++)
		if (meta->groups[i] == gid)
			return true;
	return false;
}

int meta_place_of(struct meta *meta, int dirfd, const struct stat *st, struct meta_place *place,
	struct error *err)
{
	struct stat own;

	if (!st) {
		if (fstat(dirfd, &own) < 0)
			return error_errno(err, "fstat");
		st = &own;
	}
	*place = (struct meta_place){ .dev = st->st_dev, .gid = st->st_gid,
		.setgid = st->st_mode & S_ISGID };
	xattr_find_acls(meta, dirfd, st->st_dev, &place->access_acl, &place->default_acl);
	return 0;
}

void meta_read(struct meta *meta, int fd, const struct stat *st, struct meta_source *source)
{
	const struct meta_entry from = { .fd = fd };

	*source = (struct meta_source){ .st = *st, .fd = fd, .dirfd = -1 };
	xattr_read(meta, &from, source);
}

/* A symlink can have attributes only of the kinds that are copied on request and by root. */
void meta_read_at(struct meta *meta, int dirfd, const char *name, const struct stat *st,
	struct meta_source *source)
{
	const struct meta_options *options = &meta->options;
	const struct meta_entry from = { .fd = -1, .dirfd = dirfd, .name = name };

	*source = (struct meta_source){ .st = *st, .fd = -1, .dirfd = dirfd, .name = name };
	if (!S_ISLNK(st->st_mode) || options->trusted || options->security ||
		options->any_namespace)
		xattr_read(meta, &from, source);
}

void meta_given(struct meta *meta, const struct stat *st, const struct meta_value *values, size_t n,
	struct meta_source *source)
{
	*source = (struct meta_source){ .st = *st, .fd = -1, .dirfd = -1, .values = values,
		.n_values = n };
	if (n)
		xattr_given(meta, source);
}

void meta_source_free(struct meta_source *source)
{
	free(source->names);
	source->names = NULL;
	source->names_size = 0;
}

/* The group that an entry made in place has in the end. made: the one it has at first; where that is
 * not ours, it is the directory's also without a setgid bit. */
static gid_t final_group(const struct meta *meta, const struct meta_source *source,
	const struct meta_place *place, gid_t made)
{
	bool inherited = place->setgid || made != meta->gid;

	if (!meta->options.keep_owner || (meta->options.inherit_group && inherited))
		return made;
	return meta->root || is_member(meta, source->st.st_gid) ? source->st.st_gid : made;
}

/* Whether those who may do something now are those who may in the end: the group is the same one,
 * or it has no more and no less than all others. Which group an entry gets at first depends on how
 * the filesystem is mounted where the directory's is not ours. */
static bool is_open_to_the_same(const struct meta *meta, const struct meta_source *source,
	const struct meta_place *place)
{
	mode_t mode = source->st.st_mode;
	bool sure = place->setgid || place->gid == meta->gid;

	if (source->has & META_HAS_ACCESS_ACL || source->code || place->default_acl)
		return false;
	return (mode & S_IRWXG) >> 3 == (mode & S_IRWXO) ||
		(sure && final_group(meta, source, place, place->gid) == place->gid);
}

mode_t meta_create_mode(const struct meta *meta, const struct meta_source *source,
	const struct meta_place *place)
{
	mode_t mode = source->st.st_mode & (PERMISSIONS | S_ISVTX);

	if (!is_open_to_the_same(meta, source, place))
		mode &= S_IRWXU;
	if (!S_ISDIR(source->st.st_mode))
		return source->has & META_HAS_XATTRS ? mode | S_IWUSR : mode;
	return (mode & S_IRWXU) == S_IRWXU ? mode : S_IRWXU;
}

void meta_failed(struct meta_work *work, int code, const char *what)
{
	char reason[160];
	const char *why = strerror_r(-code, reason, sizeof(reason));

	if (!work->code) {
		work->code = code;
		error_set(work->err, code, "%s: %s", what, why);
	} else if (work->err) {
		error_set(work->err, work->code, "%s; %s: %s", work->err->text, what, why);
	}
}

static void apply_owner(struct meta_work *work, const struct meta_place *place)
{
	const struct meta_options *options = &work->meta->options;
	const struct meta_source *source = work->source;
	uid_t uid = options->keep_owner && work->meta->root ? source->st.st_uid : work->uid;
	gid_t gid = final_group(work->meta, source, place, work->gid);
	uid_t set_uid = uid == work->uid ? (uid_t)-1 : uid;
	gid_t set_gid = gid == work->gid ? (gid_t)-1 : gid;
	int rc;

	if (uid == work->uid && gid == work->gid)
		return;
	if (work->to.name)
		rc = fchownat(work->to.dirfd, work->to.name, set_uid, set_gid, AT_SYMLINK_NOFOLLOW);
	else
		rc = fchown(work->to.fd, set_uid, set_gid);
	if (rc < 0) {
		meta_failed(work, -errno, uid == work->uid ? "group" : "owner");
		return;
	}
	work->uid = uid;
	work->gid = gid;
}

/* Changes the mode of a name and of nothing that it may lead to: fchmodat2 (6.6), or what the C
 * library does without it. */
static int chmod_at(int dirfd, const char *name, mode_t mode)
{
#ifdef SYS_fchmodat2
	if (syscall(SYS_fchmodat2, dirfd, name, mode, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno != ENOSYS)
		return -1;
#endif
	return fchmodat(dirfd, name, mode, AT_SYMLINK_NOFOLLOW);
}

static void set_mode(struct meta_work *work, mode_t mode)
{
	int rc;

	if (work->mode_known && (work->mode & MODE_BITS) == mode)
		return;
	if (work->to.name)
		rc = chmod_at(work->to.dirfd, work->to.name, mode);
	else
		rc = fchmod(work->to.fd, mode);
	if (rc < 0) {
		meta_failed(work, -errno, "mode");
		return;
	}
	work->mode = mode;
	work->mode_known = true;
}

/* setuid and setgid of a file mean something only together with its owner and group. */
static mode_t special_bits_of_file(const struct meta_work *work, unsigned *dropped)
{
	const struct stat *st = &work->source->st;
	bool keep = work->meta->options.keep_special_bits;
	mode_t bits = 0;

	if (st->st_mode & S_ISUID && keep && work->uid == st->st_uid)
		bits |= S_ISUID;
	else if (st->st_mode & S_ISUID)
		*dropped |= META_DROPPED_SETUID;
	if (st->st_mode & S_ISGID && keep && work->gid == st->st_gid)
		bits |= S_ISGID;
	else if (st->st_mode & S_ISGID)
		*dropped |= META_DROPPED_SETGID;
	return bits;
}

static void apply_mode(struct meta_work *work, unsigned *dropped)
{
	const struct meta *meta = work->meta;
	mode_t mode = work->source->st.st_mode & (S_IRWXU | S_IRWXO | S_ISVTX);

	if (S_ISLNK(work->source->st.st_mode))
		return;
	mode |= (mode_t)work->group_bits << 3;
	if (!S_ISDIR(work->source->st.st_mode)) {
		set_mode(work, mode | special_bits_of_file(work, dropped));
		return;
	}
	mode |= work->source->st.st_mode & (S_ISUID | S_ISGID);
	if (meta->options.inherit_group)
		mode |= work->mode & S_ISGID;
	/* A chmod by somebody outside the group takes the setgid bit away, and says nothing. */
	if (mode & S_ISGID && !meta->root && !is_member(meta, work->gid) &&
		!(work->mode_known && (work->mode & MODE_BITS) == mode))
		*dropped |= META_DROPPED_SETGID;
	set_mode(work, mode);
}

static bool is_ordinary_time(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_sec <= INT32_MAX;
}

/* Filesystems move a time that they can not hold to the nearest that they can, and say nothing. */
static void check_odd_times(struct meta_work *work, const struct stat *want)
{
	const struct meta_entry *to = &work->to;
	struct stat st;
	int rc = to->name ? fstatat(to->dirfd, to->name, &st, AT_SYMLINK_NOFOLLOW) :
		fstat(to->fd, &st);

	if (rc < 0)
		meta_failed(work, -errno, "times");
	else if (st.st_mtim.tv_sec != want->st_mtim.tv_sec)
		meta_failed(work, -ERANGE, "times: the filesystem can not hold this one");
}

static void apply_times(struct meta_work *work)
{
	const struct stat *st = &work->source->st;
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	int rc;

	if (work->meta->options.accessed_now)
		times[0].tv_nsec = UTIME_NOW;
	if (work->to.name)
		rc = utimensat(work->to.dirfd, work->to.name, times, AT_SYMLINK_NOFOLLOW);
	else
		rc = futimens(work->to.fd, times);
	if (rc < 0)
		meta_failed(work, -errno, "times");
	else if (!is_ordinary_time(&st->st_mtim))
		check_odd_times(work, st);
}

/* An attribute of an ordinary user's can be set only while the mode lets them write. */
static void apply_xattrs(struct meta_work *work)
{
	if (!(work->source->has & META_HAS_XATTRS))
		return;
	if (!work->meta->root && !(work->mode & S_IWUSR))
		set_mode(work, (work->mode & MODE_BITS) | S_IWUSR);
	xattr_copy(work);
}

/* What to got from its directory has to go where the source has none of its own. */
static void apply_acls(struct meta_work *work, const struct meta_place *place)
{
	bool directory = S_ISDIR(work->source->st.st_mode);
	bool exact = !work->meta->options.inherit_group && !S_ISLNK(work->source->st.st_mode);

	if (directory)
		xattr_copy_acls(work, exact && place->access_acl, exact && place->default_acl);
	else
		xattr_copy_acls(work, exact && place->default_acl, false);
}

static int apply(struct meta_work *work, const struct stat *made, const struct meta_place *place,
	unsigned *dropped)
{
	const struct meta_source *source = work->source;

	work->dev = made->st_dev;
	work->uid = made->st_uid;
	work->gid = made->st_gid;
	work->mode = made->st_mode;
	work->mode_known = true;
	work->group_bits = (source->st.st_mode & S_IRWXG) >> 3;
	*dropped = source->has & META_HAS_CAPABILITY ? META_DROPPED_CAPABILITY : 0;
	if (source->code) {
		meta_failed(work, source->code, "extended attributes");
		/* They may be the mask of an ACL that is not known. */
		work->group_bits &= source->st.st_mode & S_IRWXO;
	}
	apply_owner(work, place);
	apply_xattrs(work);
	apply_acls(work, place);
	apply_mode(work, dropped);
	apply_times(work);
	return work->code;
}

int meta_apply(struct meta *meta, const struct meta_source *source, int fd, const struct stat *made,
	const struct meta_place *place, unsigned *dropped, struct error *err)
{
	struct meta_work work = { .meta = meta, .source = source, .to = { .fd = fd }, .err = err };
	struct stat st;

	if (!made) {
		if (fstat(fd, &st) < 0)
			return error_errno(err, "fstat");
		made = &st;
	}
	return apply(&work, made, place, dropped);
}

int meta_apply_at(struct meta *meta, const struct meta_source *source, int dirfd, const char *name,
	const struct stat *made, const struct meta_place *place, unsigned *dropped,
	struct error *err)
{
	struct meta_work work = { .meta = meta, .source = source,
		.to = { .fd = -1, .dirfd = dirfd, .name = name }, .err = err };
	struct stat st;

	if (!made) {
		if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return error_errno(err, "stat");
		made = &st;
	}
	return apply(&work, made, place, dropped);
}

char *meta_dropped_text(unsigned dropped, char *buffer, size_t size)
{
	static const char *const names[] = { "setuid", "setgid", "capabilities" };
	size_t used = 0;

	if (size)
		buffer[0] = '\0';
	for (unsigned i = 0; i < 3; i++) {
		bool more = dropped >> (i + 1);
		int n;

		if (!(dropped & 1u << i) || used >= size)
			continue;
		n = snprintf(buffer + used, size - used, "%s%s",
			!used ? "" : more ? ", " : " and ", names[i]);
		used += n > 0 ? (size_t)n : 0;
	}
	return buffer;
}
