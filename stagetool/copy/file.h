/*
 * Inside of the engine: one regular file on its way. For open.c, file.c, split.c and finish.c.
 */
#ifndef COPY_FILE_H
#define COPY_FILE_H

#include "copy/internal.h"

struct copy_file {
	struct copy_entry entry;
	struct copy *copy;
	struct meta_source source;
	struct stat made; /* the destination when it was made */
	int src, dst;     /* -1: not open */
	int dirfd;        /* of the destination's directory, pinned; -1: not */
	dev_t dirdev;
	bool have_source;
	bool leads;      /* a group of hard links: */
	struct stat led; /* of this file; the name may be another one by now */
	bool blocking;   /* opened without O_NONBLOCK: somebody said EAGAIN */
	bool of_source;  /* what went wrong, went wrong there */
	bool stream;     /* its size says nothing (/proc): read to the end */
	bool created;
	bool finished; /* it is there */
	bool temporary;
	unsigned attempt, changes;
	uint64_t planned; /* bytes that count against max_bytes */
	uint64_t sent;    /* bytes counted so far, taken back if it comes to nothing */
	char temp[PUBLISH_TEMP_SIZE];
	/* of split.c: */
	atomic_uint parts;
	pthread_mutex_t lock; /* of sent, code and error */
	int code;
	struct error error;
};

/* open.c: opens both sides. COPY_FILE_THROUGH: it is handled otherwise. */
#define COPY_FILE_THROUGH 1
int copy_file_begin(struct copy_file *file, struct error *err, unsigned worker);
/* Makes the destination, with what file->source has. */
int copy_file_make(struct copy_file *file, struct error *err, unsigned worker);
/* Counts size more bytes of it against max_bytes. -ENOSPC: too many, the copy stops. One thread for one
 * file. */
int copy_file_plan(struct copy_file *file, uint64_t size, struct error *err);
/* The other names of the file are not to wait for this one any more. */
void copy_file_end_group(struct copy_file *file);

/* file.c: an entry before anything was done. Borrows what entry borrows. */
void copy_file_init(struct copy_file *file, const struct copy_entry *entry);
/* Writes all of it at offset of the destination. */
int copy_file_write(
	struct copy_file *file, const char *data, size_t size, uint64_t offset, struct error *err);
/* How it ended without success. */
void copy_file_conclude(
	struct copy_file *file, int rc, const struct error *err, unsigned worker);

/* From open to the end, again where that is called for. True: other workers go on with it (or with
 * a copy of it, if it was not on the heap); false: it is through, and the caller's. */
bool copy_file_work(struct copy_file *file, unsigned worker);

/* After the bytes. rc: how they went, err why. Whether to begin again. */
bool copy_file_settle(struct copy_file *file, int rc, struct error *err, unsigned worker);
/* Of one on the heap. */
void copy_file_free(struct copy_file *file, unsigned worker);

/* Copies the bytes of a file that is too large for one read, by all who have time; whoever is last
 * goes on with it. Takes file, which must be owned. */
void copy_split_run(struct copy_file *file, unsigned worker);

/* finish.c: attributes, durability, its name, and what the caller is told. Negative errno: nothing
 * was published, err says why; 0: all was told. */
int copy_file_finish(struct copy_file *file, struct error *err, unsigned worker);
/* Closes the destination and removes it, with the source's handles. */
void copy_file_undo(struct copy_file *file, unsigned worker);

#endif
