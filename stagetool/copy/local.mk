noinst_LTLIBRARIES += libcopy.la
libcopy_la_SOURCES = \
	stagetool/copy/engine.h \
	stagetool/copy/granularity.c stagetool/copy/granularity.h \
	stagetool/copy/publish.c stagetool/copy/publish.h stagetool/copy/publish_internal.h \
	stagetool/copy/range.c stagetool/copy/range.h stagetool/copy/range_backend.h \
	stagetool/copy/range_cfr.c \
	stagetool/copy/range_reflink.c \
	stagetool/copy/range_rw.c \
	stagetool/copy/replace.c \
	stagetool/copy/temp.c
