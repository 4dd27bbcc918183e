/*
 * System calls by name, and what a tracer must know of their arguments.
 */
#ifndef FAULT_CALLS_H
#define FAULT_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#define CALLS_MAX 1024 /* numbers are below this */
#define CALL_ANY (-2)

struct call {
	const char *name;
	int number;
	/* Letters and argument numbers: fN a descriptor, pN a path, aN a descriptor and a path
	 * relative to it, lN the length of what is to be moved. */
	const char *arguments;
	/* Errnos that make sense, separated by blanks; NULL: the call is not made to fail. */
	const char *errnos;
	/* Does nothing that another process could see: no point in dying there. */
	bool idle;
};

/* The row of a number; NULL where there is none. */
const struct call *calls_find(int number);

/* The number of a name ("any" gives CALL_ANY; a decimal number itself), or -1. */
int calls_number(const char *name);

/* The name of a number, or the number as text in buffer. */
const char *calls_name(int number, char *buffer, size_t size);

/* The argument that holds the length, or -1. */
int calls_length_argument(const struct call *call);

/* Errnos by name ("ENOSPC"); 0 for one that is not known, and NULL for a number that is not. */
int errnos_number(const char *name);
const char *errnos_name(int number);

#endif
