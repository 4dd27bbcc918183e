/*
 * Inside of the engine: what its parts share. For the files of the engine only.
 *
 *   engine.c      a copy as a whole: made, run, stopped
 *   tree.c        the walk's callbacks: directories are entered and left, entries told apart
 *   directory.c   destination directories
 *   open.c        one regular file: both sides are opened
 *   file.c        its bytes, and what is done when it was not to be
 *   finish.c      its attributes and its name
 *   split.c       the bytes of a large file, by several workers
 *   hardlink.c    files with several names: who copies, who waits, who is linked
 *   group.c       what is known of such a file
 *   other.c       symlinks, FIFOs, and what is not sent
 *   outcome.c     counters, and what the caller is told
 *   width.c       how many threads
 *   verify.c      reading back
 *   inside.c      a destination inside the source
 *   feed*.c       entries that come from elsewhere than a tree: copy/feed.h, copy/feed_internal.h
 */
#ifndef COPY_INTERNAL_H
#define COPY_INTERNAL_H

#include <pthread.h>

#include "base/known.h"
#include "base/pool.h"
#include "copy/engine.h"
#include "copy/publish.h"
#include "copy/range.h"
#include "tree/handle.h"
#include "tree/links.h"
#include "tree/meta.h"
#include "tree/walk.h"

#define COPY_DIR_LOCKS 64

/* In the order of struct copy_counts. */
enum copy_counter {
	COPY_COUNT_FILES,
	COPY_COUNT_DIRECTORIES,
	COPY_COUNT_SYMLINKS,
	COPY_COUNT_OTHERS,
	COPY_COUNT_BYTES,
	COPY_COUNT_UNCHANGED,
	COPY_COUNT_FAILED,
	COPY_COUNT_VANISHED,
	COPY_COUNT_CHANGED,
	COPY_COUNT_CONFLICTS,
	COPY_COUNT_ATTRIBUTES,
	COPY_COUNT_DROPPED,
	COPY_COUNT_SPECIAL,
	COPY_COUNTERS,
};

/* What belongs to one thread. Only it writes; counters are read by others too. */
struct copy_worker {
	atomic_ulong counts[COPY_COUNTERS];
	struct range_buffer buffer;
	char *small;      /* COPY_SMALL_SIZE bytes */
	unsigned sample;  /* entries since operations were last timed */
	unsigned samples; /* how often they were */
	unsigned lists;   /* buffers of directories read */
	struct walk_dir *walk; /* whose entries it is at; NULL: it is at something else */
	bool ready;
	char apart[64]; /* keeps the counters of two workers out of one cache line */
};

/* The operations that are timed, each kind apart: what is answered from a cache would hide what is
 * not. */
enum copy_timed {
	COPY_TIMED_LIST,
	COPY_TIMED_STAT,
	COPY_TIMED_OPEN,
	COPY_TIMED_READ,
	COPY_TIMED_CREATE,
	COPY_TIMED_SYNC,
	COPY_TIMED_PIECE, /* a megabyte of a large file */
	COPY_TIMED_KINDS,
};

/* Latency of one side, of the last few samples. */
#define COPY_SAMPLES 9
struct copy_latency {
	unsigned count;
	unsigned microseconds[COPY_SAMPLES];
};

struct copy {
	struct copy_options options;
	struct copy_hooks hooks;
	int srcdir, dstdir; /* borrowed, until run */
	char *srcname, *dstname;
	struct pool *pool;
	struct range *range;
	struct meta *meta;
	struct publish *publish;
	struct links *links;
	struct known known;                        /* of source filesystems */
	struct handle_cache cache;                 /* of destination directories */
	pthread_mutex_t dir_locks[COPY_DIR_LOCKS]; /* making a directory: by its address */
	struct stat src_root, dst_root;            /* dst_root: st_ino 0 until it is known */
	atomic_bool stop;                          /* no more is begun */
	atomic_bool source_waits;                  /* by the samples: it, and not the destination */
	atomic_bool no_noatime;                    /* files of others: O_NOATIME is not for us */
	atomic_ullong planned;                     /* bytes that were begun, for max_bytes */
	pthread_mutex_t lock;                      /* of what follows */
	int stop_code;
	struct error stop_error;
	struct copy_latency latency[COPY_TIMED_KINDS];
	unsigned max_width;
	bool fed;                /* entries are handed to it (copy/feed): there is no source */
	struct copy_worker workers[POOL_MAX_WIDTH + 1]; /* the last one: COPY_FEEDER's */
};

/* The thread that feeds a copy, which is none of the pool's, as a worker. */
#define COPY_FEEDER POOL_MAX_WIDTH

enum copy_dir_state {
	COPY_DIR_UNKNOWN, /* nobody has looked */
	COPY_DIR_ABSENT,  /* is made when something in it is sent */
	COPY_DIR_READY,
	COPY_DIR_FAILED, /* nothing in it can be sent */
};

/* A directory on both sides. Counted apart from the walk's: links may be made to what lies in it
 * after it was left. */
struct copy_dir {
	struct copy *copy;
	struct copy_dir *parent; /* held; NULL for the root */
	struct walk_dir *walk;   /* until it is left; NULL where the root of the copy is a file */
	atomic_uint refs;
	atomic_int state;
	bool base;            /* not of the copy: the directory of a root that is a file */
	bool send;            /* decide said so: its attributes are sent too */
	bool made;            /* by us */
	atomic_bool told;     /* its outcome */
	atomic_bool touched;  /* something in it was sent */
	atomic_bool cleaned;  /* dead temporaries were removed */
	struct copy_usual {   /* what a file is that was made in it with the mode asked for */
		atomic_int state; /* 0: not known; 1: about to be; 2: known */
		mode_t asked, mode;
		uid_t uid;
		gid_t gid;
	} usual;
	atomic_uint naming;   /* workers that make or rename a name in it: they wait for each other */
	mode_t opened_up;     /* its mode before we gave ourselves access; 0: we did not */
	struct handle handle; /* of the destination */
	struct meta_place place;
	struct copy_tag tag;
	struct copy_expect expect;
	struct stat src;
	const struct meta_source *given; /* what src has, where it was given (borrowed); else NULL */
	char *beside; /* its name at the destination, where that is another one */
	char name[];
};

/* An entry on its way. */
struct copy_entry {
	struct copy *copy;
	struct copy_dir *dir;
	const char *src_name, *dst_name;
	struct stat st; /* of the source */
	struct copy_expect expect;
	bool equal; /* it is at the destination already, if not as a link */
	bool owned; /* names are its own, and dir is held */
};

/* engine.c */
/* As copy_new, of a copy that is fed. */
int copy_new_fed(int dstdir, const char *dstname, const struct copy_options *options,
	const struct copy_hooks *hooks, struct copy **copy, struct error *err);
bool copy_stopped(struct copy *copy);
void copy_stop(struct copy *copy, const struct error *err);
/* Adds to err how full the destination is where code is -ENOSPC or -EDQUOT, and stops the copy at
 * -ENOSPC. */
void copy_no_space(struct copy *copy, int dirfd, bool creating, struct error *err);
/* Makes the root's own name durable, where that is asked for. */
int copy_sync(struct copy *copy, struct error *err);
/* What a worker needs before its first entry. */
struct copy_worker *copy_worker_get(struct copy *copy, unsigned worker);
/* Closes fds that nobody uses at the moment and waits a little, if code says that they ran out. */
bool copy_relieve_fds(struct copy *copy, int code, unsigned *attempt);

/* tree.c */
extern const struct walk_ops copy_walk_ops;
/* Handles an entry that is not a directory. type: DT_*. */
void copy_entry_run(struct copy *copy, struct copy_dir *dir, const char *src_name,
	const char *dst_name, unsigned char type, unsigned worker);
/* By the type in entry->st, after decide has said that it is sent. */
void copy_entry_send(struct copy_entry *entry, unsigned worker);
/* Makes names and directory the entry's own (held), for work that goes on later. -ENOMEM. */
int copy_entry_own(struct copy_entry *entry);
void copy_entry_disown(struct copy_entry *entry, unsigned worker);
/* The fd of its source directory. */
int copy_entry_pin_source(const struct copy_entry *entry, struct error *err);
void copy_entry_unpin_source(const struct copy_entry *entry);
/* What the caller does about it. */
enum copy_answer copy_entry_decide(struct copy_entry *entry, struct stat *dst, bool *have_dst);

/* directory.c */
struct copy_dir *copy_dir_new(
	struct copy *copy, struct copy_dir *parent, const char *name, const struct stat *st);
void copy_dir_ref(struct copy_dir *dir);
void copy_dir_unref(struct copy_dir *dir);
/* Uses fd (taken) as its destination. */
int copy_dir_adopt(struct copy_dir *dir, int fd, const struct stat *st, struct error *err);
/* Sees to it that the destination is there. Negative errno: nothing can be sent into it. */
int copy_dir_make(struct copy_dir *dir, unsigned worker, struct error *err);
/* The destination's fd, for something that is sent; made if it is not there. */
int copy_dir_pin(struct copy_dir *dir, unsigned worker, struct error *err);
/* The destination's fd, for what was there before us: negative where that can not be. */
int copy_dir_look(struct copy_dir *dir);
/* Pins the destination if it is ready, whatever for. */
bool copy_dir_hold_open(struct copy_dir *dir);
void copy_dir_unpin(struct copy_dir *dir);
/* Its attributes, and its outcome. */
void copy_dir_finish(struct copy_dir *dir, unsigned worker);

/* file.c */
struct copy_file;
void copy_file_send(struct copy_entry *entry, unsigned worker);
/* The same for a name that was claimed before and leads now. */
void copy_file_lead(struct copy_entry *entry, unsigned worker);

/* hardlink.c */
enum copy_claim { COPY_CLAIM_LEAD, COPY_CLAIM_THROUGH };
/* For an entry that is to be sent and whose inode has several names: LEAD: the caller copies it,
 * and says copy_group_end; THROUGH: it is linked, or will be once the first name is copied, or
 * failed: the caller is done. again: not its first claim. */
enum copy_claim copy_group_claim(struct copy_entry *entry, bool again, unsigned worker);
/* The leader's end. dst_name: where it is now; NULL: it was not copied. sent: its outcome was
 * COPY_DONE. */
void copy_group_end(struct copy_entry *entry, const char *dst_name, bool sent);
/* A name that is not sent. dst (may be NULL): an equal file of its destination. False: that is
 * another file than the one that has the other names, and may be replaced by a link: it is to be
 * sent after all (entry->equal set). */
bool copy_group_pass(struct copy_entry *entry, const struct stat *dst);
/* Tells what was kept back of files whose names were not all met. */
void copy_group_flush(struct copy *copy);

/* other.c */
void copy_other_send(struct copy_entry *entry, unsigned worker);
/* A symlink to target (NULL: a FIFO) whose source was given. It is told. */
void copy_other_given(struct copy_entry *entry, const struct meta_source *source,
	const char *target, unsigned worker);
void copy_other_lead(struct copy_entry *entry, unsigned worker);

/* outcome.c */
void copy_entry_tell(const struct copy_entry *entry, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err, unsigned worker);
void copy_entry_count(const struct copy_entry *entry, enum copy_outcome outcome, unsigned worker);
/* The caller's callback alone. */
void copy_entry_call(const struct copy_entry *entry, enum copy_outcome outcome,
	const struct stat *dst, const struct error *err);
/* Nothing is told after the last word. */
void copy_dir_tell(struct copy_dir *dir, enum copy_outcome outcome, const struct stat *dst,
	const struct error *err, unsigned worker);
/* Of an entry of dir (NULL: the root) of which nothing else is known. */
void copy_name_tell(struct copy *copy, struct copy_dir *dir, const char *name,
	enum copy_outcome outcome, const struct error *err, unsigned worker);
void copy_count(struct copy *copy, enum copy_counter counter, long add, unsigned worker);
/* A failed entry: -ENOENT of the source is COPY_VANISHED. */
void copy_entry_fail(
	const struct copy_entry *entry, bool of_source, const struct error *err, unsigned worker);
/* An item for a callback, with place (on the caller's stack). */
struct copy_place {
	const struct copy_dir *dir;
	const char *name;
};
void copy_item_of(struct copy_item *item, struct copy_place *place, const struct copy_dir *dir,
	const char *name, const struct stat *src, const struct copy_tag *tag);

/* width.c */
unsigned copy_width_begin(const struct copy_options *options, unsigned *max);
/* Counts an entry of this worker, once for each: the operations of every few are timed. */
void copy_width_count(struct copy *copy, unsigned worker);
/* Whether those of the present entry are: then microseconds, to be given to copy_width_note; else
 * 0. */
uint64_t copy_width_start(const struct copy *copy, unsigned worker);
/* An operation that began at start (0: not timed) is over. crowd: how many of our own, it included,
 * were waiting for each other. In a crowd its time says nothing of the filesystem: with more
 * threads the crowd would be larger, and nothing faster. */
void copy_width_note(struct copy *copy, enum copy_timed what, uint64_t start, unsigned crowd);
/* The same for a buffer of a directory; the first ones of each worker are timed, and then every few. */
uint64_t copy_width_start_list(struct copy *copy, unsigned worker);
/* The same for a piece of a large file, of so many bytes: each of them is timed, as they are few. */
uint64_t copy_width_start_piece(const struct copy *copy);
void copy_width_note_piece(struct copy *copy, uint64_t start, uint64_t bytes);

/* verify.c: reads dst back, from the disk where that can be had, and compares with src. -EBADMSG
 * where they differ. */
int copy_verify(int src, int dst, uint64_t size, const atomic_bool *stop, struct error *err);

/* inside.c: -EINVAL where dstdir/dstname is the source or lies in it. */
int copy_check_inside(const struct copy *copy, struct error *err);

#define COPY_SMALL_SIZE (256u << 10)

#endif
