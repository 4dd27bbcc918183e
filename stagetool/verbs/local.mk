bin_PROGRAMS += stagetool/stagetool
stagetool_stagetool_SOURCES = \
	stagetool/main.c \
	stagetool/verbs/copy.c \
	stagetool/verbs/copy_equal.c stagetool/verbs/copy_equal.h \
	stagetool/verbs/copy_place.c stagetool/verbs/copy_place.h \
	stagetool/verbs/copy_work.c stagetool/verbs/copy_work.h \
	stagetool/verbs/damaged.c stagetool/verbs/damaged.h \
	stagetool/verbs/epilog.c \
	stagetool/verbs/help.c \
	stagetool/verbs/hook.c stagetool/verbs/hook.h \
	stagetool/verbs/interrupt.c stagetool/verbs/interrupt.h \
	stagetool/verbs/options.c stagetool/verbs/options.h \
	stagetool/verbs/output.c stagetool/verbs/output.h \
	stagetool/verbs/problem.c stagetool/verbs/problem.h \
	stagetool/verbs/prolog.c \
	stagetool/verbs/reap.c stagetool/verbs/reap.h \
	stagetool/verbs/resume.c \
	stagetool/verbs/status.c \
	stagetool/verbs/verbs.h
stagetool_stagetool_SOURCES += \
	stagetool/verbs/hand.c stagetool/verbs/hand.h \
	stagetool/verbs/hand_run.c \
	stagetool/verbs/hand_space.c stagetool/verbs/hand_space.h \
	stagetool/verbs/in.c \
	stagetool/verbs/out.c \
	stagetool/verbs/pack.c \
	stagetool/verbs/plan.c \
	stagetool/verbs/unpack.c \
	stagetool/verbs/unpack_run.c stagetool/verbs/unpack_run.h \
	stagetool/verbs/verify.c
stagetool_stagetool_CPPFLAGS = $(AM_CPPFLAGS) $(LMDB_CFLAGS) $(JANSSON_CFLAGS) $(INIH_CFLAGS) $(XXHASH_CFLAGS)
stagetool_stagetool_LDADD = libstage.la libreport.la libarchives.la libcopy.la libtree.la libspec.la libbase.la \
	$(LMDB_LIBS) $(JANSSON_LIBS) $(INIH_LIBS) $(XXHASH_LIBS) \
	$(ZLIB_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS)
