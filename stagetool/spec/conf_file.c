#include "spec/conf_private.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <string.h>
#include <sys/stat.h>

#define BLANKS " \t"

/*
 * inih splits lines; it cuts long names and lines without a word, says nothing of an empty section,
 * and takes a ':' as '=' and an indented line as the rest of the one before. So every line is
 * looked at here before inih sees it.
 */
struct reading {
	FILE *file;
	const struct conf_events *events;
	struct conf_place place;
	char *line;
	size_t size;
	int rc; /* of the first error; err is filled */
	struct error *err;
};

int conf_fail(const struct conf_place *place, struct error *err, const char *format, ...)
{
	char reason[ERROR_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	error_set(err, -EINVAL, "%s", reason);
	return error_prefix(err, -EINVAL, "%s:%u", place->path, place->line);
}

/* A comment begins with '#' or ';' at the beginning of the line or after a blank. */
static void cut_comment(char *line)
{
	for (char *at = line; *at; at++) {
		if ((*at == '#' || *at == ';') && (at == line || strchr(BLANKS, at[-1]))) {
			*at = '\0';
			return;
		}
	}
}

static void cut_blanks(char *line)
{
	size_t skip = strspn(line, BLANKS), length;

	memmove(line, line + skip, strlen(line + skip) + 1);
	length = strlen(line);
	while (length && strchr(BLANKS, line[length - 1]))
		line[--length] = '\0';
}

static int check_bytes(const struct reading *reading, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)reading->line[i];

		if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
			return conf_fail(&reading->place, reading->err,
				"control byte 0x%02x in column %zu: expected text%s", byte, i + 1,
				byte == '\r' ? " with Unix line ends" : "");
	}
	return 0;
}

/* A line that begins with '['. */
static int read_section(const struct reading *reading)
{
	char *line = reading->line;
	size_t length = strlen(line);

	if (line[length - 1] != ']')
		return conf_fail(&reading->place, reading->err,
			"%s: expected a section in brackets, [stagetool] or [tier NAME]", line);
	line[length - 1] = '\0';
	return reading->events->section(
		reading->events->ctx, &reading->place, line + 1, reading->err);
}

/* The next line, without comment and blanks around it. 1: there is one, 0: the file is over. */
static int read_line(struct reading *reading)
{
	ssize_t length;
	int rc;

	reading->place.line++;
	errno = 0;
	length = getline(&reading->line, &reading->size, reading->file);
	if (length < 0)
		return errno ? error_errno(reading->err, "%s", reading->place.path) : 0;
	if (length && reading->line[length - 1] == '\n')
		reading->line[--length] = '\0';
	rc = check_bytes(reading, (size_t)length);
	if (rc)
		return rc;
	cut_comment(reading->line);
	cut_blanks(reading->line);
	return 1;
}

/* inih's fgets. */
static char *reading_next(char *buffer, int size, void *stream)
{
	struct reading *reading = stream;
	int rc = reading->rc ? reading->rc : read_line(reading);

	if (rc > 0) {
		rc = 0;
		if (strlen(reading->line) + 3 > (size_t)size)
			rc = conf_fail(&reading->place, reading->err,
				"the line is too long: expected at most %d bytes (sources and "
				"protect may be given in several lines)",
				size - 3);
		else if (*reading->line == '[')
			rc = read_section(reading);
		else if (*reading->line && reading->line[strcspn(reading->line, "=:")] != '=')
			rc = conf_fail(&reading->place, reading->err, "%s: expected KEY = VALUE",
				reading->line);
		reading->rc = rc;
		if (rc)
			return NULL;
		snprintf(buffer, (size_t)size, "%s\n", *reading->line == '[' ? "" : reading->line);
		return buffer;
	}
	reading->rc = rc;
	return NULL;
}

static int reading_value(void *user, const char *section, const char *key, const char *value)
{
	struct reading *reading = user;

	(void)section;
	if (!reading->rc)
		reading->rc = reading->events->value(
			reading->events->ctx, &reading->place, key, value, reading->err);
	return !reading->rc;
}

/* What root obeys, only root may have written. */
static int check_owner(int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, "%s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s: expected a regular file", path);
	if (geteuid())
		return 0;
	if (st.st_uid)
		return error_set(err, -EPERM, "%s: belongs to uid %u: expected a file of root's",
			path, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, -EPERM,
			"%s: others than root can write to it (mode %04o): expected 0644", path,
			(unsigned)st.st_mode & 07777);
	return 0;
}

int conf_file_read(const char *path, const struct conf_events *events, struct error *err)
{
	struct reading reading = { .events = events, .place = { path, 0 }, .err = err };
	autoclose int fd = path_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, err);
	autofile FILE *file = NULL;
	int rc;

	if (fd < 0)
		return fd;
	rc = check_owner(fd, path, err);
	if (rc)
		return rc;
	file = fdopen(fd, "r");
	if (!file)
		return error_errno(err, "%s", path);
	fd = -1;
	reading.file = file;
	rc = ini_parse_stream(reading_next, &reading, reading_value, &reading);
	free(reading.line);
	if (reading.rc)
		return reading.rc;
	if (rc) {
		reading.place.line = rc > 0 ? (unsigned)rc : 0;
		return conf_fail(&reading.place, err, "expected KEY = VALUE");
	}
	return 0;
}
