noinst_LTLIBRARIES += libarchives.la
libarchives_la_SOURCES = \
	stagetool/archive/acl.c stagetool/archive/acl.h \
	stagetool/archive/attributes.c stagetool/archive/attributes.h \
	stagetool/archive/decoder.c stagetool/archive/decoder.h \
	stagetool/archive/decoder_gzip.c \
	stagetool/archive/decoder_lz4.c \
	stagetool/archive/encoder.h \
	stagetool/archive/encoder_gzip.c \
	stagetool/archive/encoder_zstd.c \
	stagetool/archive/library.c stagetool/archive/library.h \
	stagetool/archive/pack.c stagetool/archive/pack.h stagetool/archive/pack_internal.h \
	stagetool/archive/pack_file.c stagetool/archive/pack_file.h \
	stagetool/archive/pack_read.c \
	stagetool/archive/pack_walk.c \
	stagetool/archive/pack_write.c \
	stagetool/archive/sink.c stagetool/archive/sink.h \
	stagetool/archive/source.c stagetool/archive/source.h \
	stagetool/archive/unpack.c stagetool/archive/unpack.h
libarchives_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBARCHIVE_CFLAGS) $(ZLIB_CFLAGS) $(LZ4_CFLAGS) $(ZSTD_CFLAGS)
