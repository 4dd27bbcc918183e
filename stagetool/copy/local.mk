noinst_LTLIBRARIES += libcopy.la
libcopy_la_SOURCES = \
	stagetool/copy/granularity.c stagetool/copy/granularity.h \
	stagetool/copy/publish.c stagetool/copy/publish.h stagetool/copy/publish_internal.h \
	stagetool/copy/directory.c \
	stagetool/copy/engine.c stagetool/copy/engine.h \
	stagetool/copy/feed.c stagetool/copy/feed.h stagetool/copy/feed_internal.h \
	stagetool/copy/feed_big.c \
	stagetool/copy/feed_buffer.c \
	stagetool/copy/feed_dir.c \
	stagetool/copy/feed_entry.c \
	stagetool/copy/feed_group.c \
	stagetool/copy/feed_item.c \
	stagetool/copy/feed_link.c \
	stagetool/copy/feed_set.c \
	stagetool/copy/file.c stagetool/copy/file.h \
	stagetool/copy/finish.c \
	stagetool/copy/group.c stagetool/copy/group.h \
	stagetool/copy/hardlink.c \
	stagetool/copy/inside.c \
	stagetool/copy/internal.h \
	stagetool/copy/open.c \
	stagetool/copy/other.c \
	stagetool/copy/outcome.c \
	stagetool/copy/split.c \
	stagetool/copy/tree.c \
	stagetool/copy/verify.c \
	stagetool/copy/width.c \
	stagetool/copy/range.c stagetool/copy/range.h stagetool/copy/range_backend.h \
	stagetool/copy/range_cfr.c \
	stagetool/copy/range_direct.c \
	stagetool/copy/range_reflink.c \
	stagetool/copy/range_rw.c \
	stagetool/copy/replace.c \
	stagetool/copy/same.c \
	stagetool/copy/temp.c
