#include "tree/meta_internal.h"

#include "base/cleanup.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

/* What a device turned out to lack. */
#define LACKS_LIST 1u
#define LACKS_USER 2u
#define LACKS_ACL 4u
#define LACKS_TRUSTED 8u
#define LACKS_SECURITY 16u

/* The most a name list or a value can have in Linux. */
#define XATTR_MAX (64u << 10)

/* Most lists and values are shorter. */
#define XATTR_SHORT 1024

/* One system call on an entry. */
struct xattr_call {
	enum { CALL_LIST, CALL_GET, CALL_SET, CALL_REMOVE } what;
	const struct meta_entry *entry;
	const char *name;
	void *data;
	size_t size;
	ssize_t answer; /* or a negative errno */
};

static void call_open(struct xattr_call *call)
{
	int fd = call->entry->fd;

	switch (call->what) {
	case CALL_LIST:
		call->answer = flistxattr(fd, call->data, call->size);
		break;
	case CALL_GET:
		call->answer = fgetxattr(fd, call->name, call->data, call->size);
		break;
	case CALL_SET:
		call->answer = fsetxattr(fd, call->name, call->data, call->size, 0);
		break;
	case CALL_REMOVE:
		call->answer = fremovexattr(fd, call->name);
		break;
	}
	if (call->answer < 0)
		call->answer = -errno;
}

/* Symlinks and FIFOs can not be opened for this, the calls that take a directory fd are too new
 * (6.13), and /proc/self/fd is closed to a process that dropped root. A thread may have a working
 * directory of its own. */
static void *call_in_directory(void *argument)
{
	struct xattr_call *call = argument;
	const char *file = call->entry->name;

	call->answer = -1;
	if (unshare(CLONE_FS) == 0 && fchdir(call->entry->dirfd) == 0) {
		switch (call->what) {
		case CALL_LIST:
			call->answer = llistxattr(file, call->data, call->size);
			break;
		case CALL_GET:
			call->answer = lgetxattr(file, call->name, call->data, call->size);
			break;
		case CALL_SET:
			call->answer = lsetxattr(file, call->name, call->data, call->size, 0);
			break;
		case CALL_REMOVE:
			call->answer = lremovexattr(file, call->name);
			break;
		}
	}
	if (call->answer < 0)
		call->answer = -errno;
	return NULL;
}

static ssize_t xattr_do(struct xattr_call call)
{
	pthread_t thread;
	int code;

	if (!call.entry->name) {
		call_open(&call);
		return call.answer;
	}
	code = pthread_create(&thread, NULL, call_in_directory, &call);
	if (code)
		return -code;
	pthread_join(thread, NULL);
	return call.answer;
}

/* The list of names or (name not NULL) a value: in room of XATTR_SHORT bytes where that is enough,
 * else in memory that the caller frees (*longer). The size, or a negative errno. */
static ssize_t xattr_fetch(const struct meta_entry *entry, const char *name, char *room,
	char **longer)
{
	struct xattr_call call = { .what = name ? CALL_GET : CALL_LIST, .entry = entry,
		.name = name, .data = room, .size = XATTR_SHORT };
	ssize_t size = xattr_do(call);

	*longer = NULL;
	if (size != -ERANGE)
		return size;
	*longer = call.data = malloc(XATTR_MAX);
	call.size = XATTR_MAX;
	return *longer ? xattr_do(call) : -ENOMEM;
}

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static unsigned lack_of(const char *name)
{
	if (begins(name, "user."))
		return LACKS_USER;
	if (strcmp(name, META_ACCESS_ACL) == 0 || strcmp(name, META_DEFAULT_ACL) == 0)
		return LACKS_ACL;
	if (begins(name, "trusted."))
		return LACKS_TRUSTED;
	return begins(name, "security.") ? LACKS_SECURITY : 0;
}

static bool is_wanted(const struct meta *meta, const char *name, struct meta_source *source)
{
	const struct meta_options *options = &meta->options;

	if (strcmp(name, META_ACCESS_ACL) == 0) {
		source->has |= META_HAS_ACCESS_ACL;
		return false;
	}
	if (strcmp(name, META_DEFAULT_ACL) == 0) {
		source->has |= META_HAS_DEFAULT_ACL;
		return false;
	}
	if (strcmp(name, "security.capability") == 0) {
		if (!options->keep_special_bits)
			source->has |= META_HAS_CAPABILITY;
		return options->keep_special_bits;
	}
	if (begins(name, "user."))
		return true;
	if (begins(name, "trusted."))
		return options->trusted;
	if (begins(name, "security."))
		return options->security;
	return options->any_namespace;
}

/* Keeps a name of length bytes if it is wanted. room: for all of them. */
static bool keep_name(const struct meta *meta, const char *name, size_t length, size_t room,
	struct meta_source *source)
{
	if (!is_wanted(meta, name, source))
		return true;
	if (!source->names)
		source->names = malloc(room);
	if (!source->names) {
		source->code = -ENOMEM;
		return false;
	}
	memcpy(source->names + source->names_size, name, length);
	source->names[source->names_size + length] = '\0';
	source->names_size += length + 1;
	source->has |= META_HAS_XATTRS;
	return true;
}

/* Keeps the wanted ones of a list of names. */
static void keep_wanted(const struct meta *meta, const char *list, size_t size,
	struct meta_source *source)
{
	size_t length;

	for (size_t at = 0; at < size; at += length + 1) {
		length = strnlen(list + at, size - at);
		if (!keep_name(meta, list + at, length, size + 1, source))
			return;
	}
}

void xattr_given(struct meta *meta, struct meta_source *source)
{
	size_t room = 0;

	for (size_t i = 0; i < source->n_values; i++)
		room += strlen(source->values[i].name) + 1;
	for (size_t i = 0; i < source->n_values; i++) {
		const char *name = source->values[i].name;

		if (!keep_name(meta, name, strlen(name), room, source))
			return;
	}
}

static bool is_lack(ssize_t code)
{
	return code == -EOPNOTSUPP || code == -ENOSYS;
}

/* The names of an entry's attributes. 0 also where its filesystem has none at all. */
static ssize_t xattr_list(struct meta *meta, const struct meta_entry *entry, dev_t dev, char *room,
	char **longer)
{
	ssize_t size;

	*longer = NULL;
	if (known_flags(&meta->known, dev, dev) & LACKS_LIST)
		return 0;
	size = xattr_fetch(entry, NULL, room, longer);
	if (!is_lack(size))
		return size;
	known_note(&meta->known, dev, dev, LACKS_LIST);
	return 0;
}

void xattr_read(struct meta *meta, const struct meta_entry *from, struct meta_source *source)
{
	char room[XATTR_SHORT];
	char *longer;
	ssize_t size = xattr_list(meta, from, source->st.st_dev, room, &longer);

	if (size < 0)
		source->code = (int)size;
	else if (size > 0)
		keep_wanted(meta, longer ? longer : room, (size_t)size, source);
	free(longer);
}

void xattr_find_acls(struct meta *meta, int fd, dev_t dev, bool *access, bool *defaults)
{
	const struct meta_entry entry = { .fd = fd };
	struct meta_source source = { .has = 0 };
	char room[XATTR_SHORT];
	char *longer;
	ssize_t size = xattr_list(meta, &entry, dev, room, &longer);

	if (size > 0)
		keep_wanted(meta, longer ? longer : room, (size_t)size, &source);
	free(longer);
	free(source.names);
	*access = size < 0 || source.has & META_HAS_ACCESS_ACL;
	*defaults = size < 0 || source.has & META_HAS_DEFAULT_ACL;
}

/* Sets one attribute. What the filesystem does not have is tried once, and missed every time. */
static int xattr_set(struct meta_work *work, const char *name, const void *value, size_t size)
{
	unsigned lack = lack_of(name);
	struct known *known = &work->meta->known;
	ssize_t answer = -EOPNOTSUPP;

	if (!(known_flags(known, work->dev, work->dev) & lack)) {
		answer = xattr_do((struct xattr_call){ .what = CALL_SET, .entry = &work->to,
			.name = name, .data = (void *)value, .size = size });
		if (is_lack(answer) && lack)
			known_note(known, work->dev, work->dev, lack);
	}
	return (int)answer;
}

/* A value of the source's, which *value then is: in room, in memory that the caller frees (*longer), or
 * given. Its size, or a negative errno. */
static ssize_t source_value(const struct meta_source *source, const char *name, char *room,
	char **longer, const void **value)
{
	const struct meta_entry from = { source->fd, source->dirfd, source->name };
	ssize_t size;

	*longer = NULL;
	for (size_t i = 0; i < source->n_values; i++) {
		if (strcmp(source->values[i].name, name))
			continue;
		*value = source->values[i].value;
		return (ssize_t)source->values[i].size;
	}
	size = source->values ? -ENODATA : xattr_fetch(&from, name, room, longer);
	*value = *longer ? *longer : room;
	return size;
}

ssize_t xattr_value(const struct meta_source *source, const char *name, void **value)
{
	char room[XATTR_SHORT];
	autofree char *longer = NULL;
	const void *found;
	ssize_t size = source_value(source, name, room, &longer, &found);

	if (size < 0)
		return size;
	*value = malloc((size_t)size + 1);
	if (!*value)
		return -ENOMEM;
	memcpy(*value, found, (size_t)size);
	return size;
}

/* Copies one attribute. One that is gone since the list was made is no failure. */
static int xattr_copy_one(struct meta_work *work, const char *name)
{
	char room[XATTR_SHORT];
	autofree char *longer = NULL;
	const void *value;
	ssize_t size = source_value(work->source, name, room, &longer, &value);
	int rc = 0;

	if (size >= 0)
		rc = xattr_set(work, name, value, (size_t)size);
	else if (size != -ENODATA)
		rc = (int)size;
	if (rc < 0)
		meta_failed(work, rc, name);
	return rc;
}

void xattr_copy(struct meta_work *work)
{
	const struct meta_source *source = work->source;

	for (size_t at = 0; at < source->names_size; at += strlen(source->names + at) + 1)
		xattr_copy_one(work, source->names + at);
}

/* The group's own permissions in an access ACL as the kernel gives it: a version, then entries of
 * tag, permissions and id, all little-endian. 0 where it is not understood. */
static unsigned acl_group_bits(const unsigned char *acl, size_t size)
{
	const unsigned tag_group = 0x04, tag_mask = 0x10;
	unsigned group = 0, mask = 7;
	uint16_t words[2];

	for (size_t at = 4; at + 8 <= size; at += 8) {
		memcpy(words, acl + at, sizeof(words));
		if (le16toh(words[0]) == tag_group)
			group = le16toh(words[1]) & 7u;
		if (le16toh(words[0]) == tag_mask)
			mask = le16toh(words[1]) & 7u;
	}
	return group & mask;
}

/* With an ACL the group bits of the mode are its mask. Where the ACL could not be set they would
 * give the group what only some had: it gets its own. */
static void fall_back_on_group_bits(struct meta_work *work)
{
	char room[XATTR_SHORT];
	autofree char *longer = NULL;
	const void *value;
	ssize_t size = source_value(work->source, META_ACCESS_ACL, room, &longer, &value);

	work->group_bits = size < 0 ? 0 : acl_group_bits(value, (size_t)size);
}

static void acl_remove(struct meta_work *work, const char *name)
{
	ssize_t answer = xattr_do((struct xattr_call){ .what = CALL_REMOVE, .entry = &work->to,
		.name = name });

	if (answer < 0 && answer != -ENODATA && !is_lack(answer))
		meta_failed(work, (int)answer, name);
}

void xattr_copy_acls(struct meta_work *work, bool drop_access, bool drop_default)
{
	unsigned has = work->source->has;

	if (has & META_HAS_ACCESS_ACL) {
		work->mode_known = false;
		if (xattr_copy_one(work, META_ACCESS_ACL) < 0)
			fall_back_on_group_bits(work);
	} else if (drop_access) {
		acl_remove(work, META_ACCESS_ACL);
	}
	if (has & META_HAS_DEFAULT_ACL)
		xattr_copy_one(work, META_DEFAULT_ACL);
	else if (drop_default)
		acl_remove(work, META_DEFAULT_ACL);
}
