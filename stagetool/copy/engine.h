/*
 * The copier: a tree or file goes from one directory fd to another, in parallel.
 *
 * It knows nothing of manifests or jobs: a caller decides entry by entry what is sent and hears of each
 * outcome. One failed entry does not stop the others.
 */
#ifndef COPY_ENGINE_H
#define COPY_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* What the caller keeps with a directory; set in decide, given back with everything in it. */
struct copy_tag {
	uint64_t id;
	uint64_t other;
};

/* One entry, in callbacks. Borrowed until the callback returns. */
struct copy_item {
	const char *name; /* in its directory; of the root: "" */
	const struct copy_tag *parent; /* the tag of its directory; of the root: NULL */
	const struct copy_tag *tag; /* of a directory itself, once decided; else NULL */
	const struct stat *src; /* lstat of the source */
	const void *place; /* for copy_item_path */
};

/* The path below the root of the copy ("" for the root). Caller frees; NULL on ENOMEM. */
char *copy_item_path(const struct copy_item *item);

enum copy_answer {
	COPY_SEND, /* copy it; a directory: make it, and look inside */
	COPY_SKIP, /* count it as unchanged; a directory: look inside, make it only if something in it is
		    * sent, and leave its attributes as they are there */
	COPY_LEAVE, /* as if it were not there (filtered out); a directory: do not look inside */
};

/* What may be at the destination's name for it to be replaced. A directory that is there is gone
 * into in any case; where nothing was expected it is somebody else's, and keeps its attributes. */
struct copy_expect {
	enum {
		COPY_EXPECT_ANY, /* whatever is there (cp's way) */
		COPY_EXPECT_NOTHING, /* only a free name */
		COPY_EXPECT_SAME, /* a free name, or exactly the entry that identity says */
	} kind;
	struct copy_identity {
		uint64_t size, ino;
		struct timespec mtime, ctime;
	} identity;
};

enum copy_outcome {
	COPY_DONE, /* sent and, where asked for, durable under its final name */
	COPY_UNCHANGED, /* skipped */
	COPY_FAILED, /* err says why; nothing of it is under its final name. A directory that can not be
		      * made is told once, without what is in it */
	COPY_VANISHED, /* was listed, and then gone (the file's owner removed it): not an I/O error */
	COPY_CHANGED, /* it changed while being read, twice; what was read was not published */
	COPY_CONFLICT, /* something else was at its name; err says what became of ours */
	COPY_ATTRIBUTE, /* sent, but an attribute could not be set; err says which */
	COPY_DROPPED, /* sent without setuid, setgid or capabilities, as is the rule */
	COPY_SPECIAL, /* a socket or device, not sent */
};

struct copy_hooks {
	void *ctx;
	/* For every entry, before it is read (the root first). dst is an lstat of the destination's name
	 * where options.look is set and there is one, else NULL. Fills expect (preset: options.expect) and,
	 * for a directory, tag. NULL: all is sent. Any worker. */
	enum copy_answer (*decide)(void *ctx, const struct copy_item *item, const struct stat *dst,
		struct copy_expect *expect, struct copy_tag *tag);
	/* An entry is through. dst is what the destination now is (COPY_DONE, _ATTRIBUTE, _DROPPED and
	 * regular files, symlinks, directories: filled; else NULL). err is NULL on success. Several calls for
	 * one entry are possible only for _ATTRIBUTE and _DROPPED, which are followed by one of the others.
	 * NULL: not told. Any worker. */
	void (*outcome)(void *ctx, const struct copy_item *item, enum copy_outcome outcome,
		const struct stat *dst, const struct error *err);
	/* Both save an operation a file. decide would send each regular file of a directory that this copy has
	 * made: it is not asked about them. */
	bool sends_new;
	/* outcome has no use for what the destination of a regular file is: dst may be older than that. */
	bool blind;
};

enum copy_conflict { COPY_CONFLICT_KEEP, COPY_CONFLICT_FAIL, COPY_CONFLICT_OVERWRITE };

struct copy_options {
	unsigned threads; /* 0: the engine chooses */
	const char *engine; /* NULL: the first that works; else the name of a range backend, and no other */
	bool publish; /* write under a temporary name and rename; else under the final name, for a private
		       * destination that nobody believes before the whole is done */
	bool durable; /* fsync files before their rename and directories after it */
	bool look; /* lstat destination names for decide */
	bool verify; /* read back what was written and compare with what was read */
	bool keep_special_bits; /* root asked for setuid, setgid, file capabilities */
	bool keep_owner; /* try to give files their owner and group (as root: exactly) */
	bool inherit_group; /* leave the group to a setgid destination directory, keep its setgid bit */
	bool accessed_now; /* access times are the time of the copy, not the source's */
	struct copy_expect expect; /* where decide says nothing else */
	enum copy_conflict conflict;
	const char *conflict_suffix; /* ours becomes NAME.<suffix>, NAME.<suffix>.2, ... */
	const char *const *leave; /* names at the root that are never copied (".stagetool"), NULL-ended; may
				   * be NULL */
	uint64_t max_bytes; /* stop with -ENOSPC beyond; 0: no limit */
	const atomic_bool *cancel; /* borrowed, may be NULL */
};

struct copy_counts {
	uint64_t files, directories, symlinks, others; /* sent */
	uint64_t bytes; /* of file content sent, holes not counted */
	uint64_t unchanged, failed, vanished, changed, conflicts, attributes, dropped, special;
};

struct copy;

/* A copy of srcname in srcdir to dstname in dstdir; fds are borrowed. srcname "" and "." mean srcdir
 * itself, the same for dst. If srcname is a symlink it is copied as one; resolve before if it should be
 * followed. A destination that is the source or lies inside it is refused (-EINVAL). Options and hooks are
 * copied, what they point to is borrowed. */
int copy_new(int srcdir, const char *srcname, int dstdir, const char *dstname,
	const struct copy_options *options, const struct copy_hooks *hooks, struct copy **copy,
	struct error *err);

/* Runs it to its end. 0: every entry was handled, counts say how; negative: it could not go on
 * (-ECANCELED, -ENOSPC with "bytes" or "inodes" in err, root missing). Once for each copy. */
int copy_run(struct copy *copy, struct error *err);

/* The counts so far, from any thread, also while it runs. */
void copy_counts(const struct copy *copy, struct copy_counts *counts);

void copy_free(struct copy *copy);

/* Temporary names begin with this; an entry called so is never copied, and one that a dead run of ours left
 * in a directory that is written to is removed. */
#define COPY_TEMP_PREFIX ".stagetool-tmp."

#endif
