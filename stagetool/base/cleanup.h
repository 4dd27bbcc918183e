/*
 * Scope-bound release of what a function owns, so that an early return leaks nothing.
 *
 *   autofree char *text = strdup(s);
 *   autoclose int fd = openat(...);
 *   autodir DIR *dir = fdopendir(...);
 *   return take_ptr(text);        hands the ownership to the caller
 *   return take_fd(fd);
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup_with(f) __attribute__((cleanup(f)))

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

/* Keeps errno: an error is often being returned while the descriptor goes. For a file that was
 * written, close() is called and checked by hand first. */
static inline void cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define autofree cleanup_with(cleanup_free)
#define autoclose cleanup_with(cleanup_close)
#define autodir cleanup_with(cleanup_closedir)
#define autofile cleanup_with(cleanup_fclose)

static inline void *cleanup_take_ptr(void *pointer)
{
	void *taken = *(void **)pointer;

	*(void **)pointer = NULL;
	return taken;
}

static inline int cleanup_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define take_ptr(variable) ((__typeof__(variable))cleanup_take_ptr(&(variable)))
#define take_fd(variable) cleanup_take_fd(&(variable))

#endif
