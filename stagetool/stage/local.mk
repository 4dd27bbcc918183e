noinst_LTLIBRARIES += libstage.la
libstage_la_SOURCES = \
	stagetool/stage/manifest.c stagetool/stage/manifest.h stagetool/stage/manifest_private.h \
	stagetool/stage/manifest_buffer.c \
	stagetool/stage/manifest_codec.c \
	stagetool/stage/manifest_dirs.c \
	stagetool/stage/manifest_map.c \
	stagetool/stage/manifest_notes.c \
	stagetool/stage/manifest_open.c \
	stagetool/stage/manifest_pairs.c \
	stagetool/stage/manifest_read.c \
	stagetool/stage/plan.h \
	stagetool/stage/transfer.h
libstage_la_CPPFLAGS = $(AM_CPPFLAGS) $(LMDB_CFLAGS) $(XXHASH_CFLAGS)
