#include "spec/handoff.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The file: a line "stagetool-steps 1", then "dir PATH" and "tier NAME", or "failed TEXT"; "notice
 * TEXT" if there is one; "view LOCAL" (or "view-optional LOCAL") and "at PATH" for each view. It ends with "end", so that a part of it is not taken for the whole.
 */
#define HEADER "stagetool-steps 1"
#define STEPS "steps"
#define JOB_ID_MAX 20
#define FILE_MAX (256 * 1024)
/* Of a text for people, as it is written: both of them leave room for the paths. */
#define TEXT_MAX 16384

static int check_job_id(const char *job_id, struct error *err)
{
	size_t length = strspn(job_id, "0123456789");

	if (!length || job_id[length] || length > JOB_ID_MAX)
		return error_set(err, -EINVAL, "\"%s\" is not a job id", job_id);
	return 0;
}

static bool is_one_line(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	}
	return true;
}

/* Only root, or who this process is (for tests), may have written what is believed. */
static int check_owner(int fd, mode_t type, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, "fstat");
	if ((st.st_mode & S_IFMT) != type)
		return error_set(err, -EPERM, "is of another type than expected (mode %o)",
			(unsigned)st.st_mode);
	if (st.st_uid && st.st_uid != geteuid())
		return error_set(
			err, -EPERM, "belongs to uid %u: expected root", (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, -EPERM,
			"others can write to it (mode %04o): expected 0711 or 0644",
			(unsigned)st.st_mode & 07777);
	return 0;
}

/* Opens STATE_DIR/steps. -ENOENT (err filled) where it is missing. */
static int open_steps(const char *state_dir, int flags, struct error *err)
{
	autoclose int state = path_open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, err);
	autoclose int steps = -1;
	int rc;

	if (state < 0)
		return state;
	steps = openat(state, STEPS, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (steps < 0)
		return error_errno(err, "%s/" STEPS, state_dir);
	rc = check_owner(steps, S_IFDIR, err);
	if (rc)
		return error_prefix(err, rc, "%s/" STEPS, state_dir);
	return take_fd(steps);
}

/* Opens STATE_DIR; where it is missing it is made, 0711 whatever the umask is. */
static int make_state_dir(const char *state_dir, struct error *err)
{
	struct error missing = ERROR_INIT;
	autoclose int made = path_open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, &missing);

	if (made >= 0)
		return take_fd(made);
	if (made != -ENOENT)
		return error_set(err, made, "%s", missing.text);
	made = path_make_dirs(AT_FDCWD, state_dir, 0711, err);
	if (made < 0)
		return made;
	if (fchmod(made, 0711))
		return error_errno(err, "%s", state_dir);
	return take_fd(made);
}

/* Opens STATE_DIR/steps, made as well where it is missing. */
static int make_steps(const char *state_dir, struct error *err)
{
	autoclose int state = make_state_dir(state_dir, err);
	autoclose int made = -1;

	if (state < 0)
		return state;
	if (mkdirat(state, STEPS, 0700)) {
		if (errno != EEXIST)
			return error_errno(err, "%s/" STEPS, state_dir);
		return open_steps(state_dir, O_RDONLY, err);
	}
	made = openat(state, STEPS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (made < 0 || fchmod(made, 0711) || fsync(state))
		return error_errno(err, "%s/" STEPS, state_dir);
	return take_fd(made);
}

static int write_all(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

/* key and text, which may hold anything, as one line; what is too long loses its end. */
static int print_line(FILE *out, const char *key, const char *text)
{
	size_t length = strlen(text);
	size_t size = length < TEXT_MAX / 4 ? 4 * length + 1 : TEXT_MAX;
	autofree char *line = malloc(size);

	return line && fprintf(out, "%s %s\n", key, log_escape(text, line, size)) >= 0 ? 0 : -1;
}

/* The text of the file. Caller frees; NULL on ENOMEM. */
static char *handoff_format(const struct handoff *handoff)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool bad;

	if (!out)
		return NULL;
	bad = fputs(HEADER "\n", out) < 0;
	if (handoff->failed)
		bad |= print_line(out, "failed", handoff->failed) < 0;
	else
		bad |= fprintf(out, "dir %s\ntier %s\n", handoff->dir, handoff->tier) < 0;
	if (handoff->notice)
		bad |= print_line(out, "notice", handoff->notice) < 0;
	for (size_t i = 0; i < handoff->n_views; i++)
		bad |= fprintf(out, "%s %s\nat %s\n",
			       handoff->views[i].optional ? "view-optional" : "view",
			       handoff->views[i].local, handoff->views[i].place) < 0;
	bad |= fputs("end\n", out) < 0;
	bad |= fclose(out) != 0;
	if (bad) {
		free(text);
		return NULL;
	}
	return text;
}

/* A new file called name, durable. */
static int write_file(int steps, const char *name, const char *text)
{
	int fd = openat(steps, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, text, strlen(text)) || fchmod(fd, 0644) || fsync(fd) ? -errno : 0;
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

static bool views_are_lines(const struct handoff *handoff)
{
	for (size_t i = 0; i < handoff->n_views; i++) {
		const struct handoff_view *view = &handoff->views[i];

		if (!is_one_line(view->local) || !is_one_line(view->place) || *view->place != '/')
			return false;
	}
	return true;
}

int handoff_write(
	const char *state_dir, const char *job_id, const struct handoff *handoff, struct error *err)
{
	autofree char *text = NULL;
	autoclose int steps = -1;
	char temp[JOB_ID_MAX + 8];
	int rc = check_job_id(job_id, err);

	if (rc)
		return rc;
	if (!handoff->failed && (!handoff->dir || !handoff->tier || *handoff->dir != '/' ||
					!is_one_line(handoff->dir) || !is_one_line(handoff->tier)))
		return error_set(err, -EINVAL,
			"job %s: a stage has an absolute directory and a tier, without control "
			"bytes",
			job_id);
	if (!views_are_lines(handoff))
		return error_set(err, -EINVAL, "job %s: a path of at= holds a control byte", job_id);
	text = handoff_format(handoff);
	if (!text)
		return error_sys(err, -ENOMEM, "job %s", job_id);
	if (strlen(text) > FILE_MAX)
		return error_set(err, -E2BIG, "job %s: the paths are longer than %d bytes together",
			job_id, FILE_MAX);
	steps = make_steps(state_dir, err);
	if (steps < 0)
		return steps;
	snprintf(temp, sizeof(temp), "%s.tmp", job_id);
	if (unlinkat(steps, temp, 0) && errno != ENOENT)
		return error_errno(err, "%s/" STEPS "/%s", state_dir, temp);
	rc = write_file(steps, temp, text);
	if (!rc && renameat(steps, temp, steps, job_id))
		rc = -errno;
	if (!rc && fsync(steps))
		rc = -errno;
	if (rc) {
		unlinkat(steps, temp, 0);
		return error_sys(err, rc, "%s/" STEPS "/%s", state_dir, job_id);
	}
	return 0;
}

static int read_text(int fd, char **text, size_t *length, struct error *err)
{
	autofree char *buffer = malloc(FILE_MAX + 1);
	size_t used = 0;

	if (!buffer)
		return error_sys(err, -ENOMEM, "read");
	while (used < FILE_MAX) {
		ssize_t got = read(fd, buffer + used, FILE_MAX - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno(err, "read");
		if (!got)
			break;
		used += (size_t)got;
	}
	buffer[used] = '\0';
	*length = used;
	*text = take_ptr(buffer);
	return 0;
}

/* The rest of the next line of *text if it begins with key, else NULL. Cuts the line off. */
static char *take_line(char **text, const char *key)
{
	size_t length = strlen(key);
	char *line = *text, *end = strchr(line, '\n');

	if (!end || strncmp(line, key, length))
		return NULL;
	*end = '\0';
	*text = end + 1;
	return line + length;
}

/* What was never written: a control byte in a line. */
static bool is_foreign(const char *line)
{
	return line && !is_one_line(line);
}

static int take_view(
	struct handoff *handoff, const char *local, const char *place, bool optional, struct error *err)
{
	struct handoff_view *views =
		reallocarray(handoff->views, handoff->n_views + 1, sizeof(*views));

	if (!views)
		return error_sys(err, -ENOMEM, "read");
	handoff->views = views;
	views += handoff->n_views++;
	*views = (struct handoff_view){ strdup(local), strdup(place), optional };
	return views->local && views->place ? 0 : error_sys(err, -ENOMEM, "read");
}

/* Those that come next in *text. */
static int take_views(char **text, struct handoff *handoff, struct error *err)
{
	for (;;) {
		const char *local = take_line(text, "view "), *optional = NULL, *place;
		int rc;

		if (!local)
			local = optional = take_line(text, "view-optional ");
		if (!local)
			return 0;
		place = take_line(text, "at ");
		if (!place || *place != '/' || !*local || is_foreign(local) || is_foreign(place))
			return error_set(err, -EBADMSG, "is damaged");
		rc = take_view(handoff, local, place, optional, err);
		if (rc)
			return rc;
	}
}

static int handoff_parse(char *text, size_t length, struct handoff *handoff, struct error *err)
{
	const char *stop = text + length;
	const char *header = take_line(&text, HEADER);
	const char *failed = header && !*header ? take_line(&text, "failed ") : NULL;
	const char *dir = header && !*header && !failed ? take_line(&text, "dir ") : NULL;
	const char *tier = dir ? take_line(&text, "tier ") : NULL;
	const char *notice = take_line(&text, "notice ");
	struct handoff read = { .failed = NULL };
	int rc = dir ? take_views(&text, &read, err) : 0;

	if (rc) {
		handoff_free(&read);
		return rc;
	}
	if ((!failed && !tier) || (dir && *dir != '/') || strcmp(text, "end\n") ||
		text + strlen(text) != stop || is_foreign(failed) || is_foreign(dir) ||
		is_foreign(tier) || is_foreign(notice)) {
		handoff_free(&read);
		return error_set(err, -EBADMSG, "is damaged, or of another version of stagetool");
	}
	read.failed = failed ? strdup(failed) : NULL;
	read.dir = dir ? strdup(dir) : NULL;
	read.tier = tier ? strdup(tier) : NULL;
	read.notice = notice ? strdup(notice) : NULL;
	if ((failed && !read.failed) || (dir && !read.dir) || (tier && !read.tier) ||
		(notice && !read.notice)) {
		handoff_free(&read);
		return error_sys(err, -ENOMEM, "read");
	}
	*handoff = read;
	return 0;
}

int handoff_read(
	const char *state_dir, const char *job_id, struct handoff *handoff, struct error *err)
{
	autofree char *text = NULL;
	autoclose int steps = -1, fd = -1;
	size_t length = 0;
	int rc = check_job_id(job_id, err);

	if (rc)
		return rc;
	steps = open_steps(state_dir, O_PATH, err);
	if (steps < 0)
		return steps;
	fd = openat(steps, job_id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, "%s/" STEPS "/%s", state_dir, job_id);
	rc = check_owner(fd, S_IFREG, err);
	if (!rc)
		rc = read_text(fd, &text, &length, err);
	if (!rc)
		rc = handoff_parse(text, length, handoff, err);
	return rc ? error_prefix(err, rc, "%s/" STEPS "/%s", state_dir, job_id) : 0;
}

int handoff_remove(const char *state_dir, const char *job_id, struct error *err)
{
	struct error missing = ERROR_INIT;
	autoclose int steps = -1;
	int rc = check_job_id(job_id, err);

	if (rc)
		return rc;
	steps = open_steps(state_dir, O_RDONLY, &missing);
	if (steps == -ENOENT)
		return 0;
	if (steps < 0)
		return error_set(err, steps, "%s", missing.text);
	if (unlinkat(steps, job_id, 0) && errno != ENOENT)
		return error_errno(err, "%s/" STEPS "/%s", state_dir, job_id);
	return 0;
}

void handoff_free_views(struct handoff *handoff)
{
	for (size_t i = 0; i < handoff->n_views; i++) {
		free(handoff->views[i].local);
		free(handoff->views[i].place);
	}
	free(handoff->views);
	handoff->views = NULL;
	handoff->n_views = 0;
}

void handoff_free(struct handoff *handoff)
{
	if (!handoff)
		return;
	free(handoff->dir);
	free(handoff->tier);
	free(handoff->failed);
	free(handoff->notice);
	handoff_free_views(handoff);
	*handoff = (struct handoff){ .dir = NULL };
}
