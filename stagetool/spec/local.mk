noinst_LTLIBRARIES += libspec.la
libspec_la_SOURCES = \
	stagetool/spec/conf.c stagetool/spec/conf.h \
	stagetool/spec/conf_file.c stagetool/spec/conf_private.h \
	stagetool/spec/handoff.c stagetool/spec/handoff.h \
	stagetool/spec/protect.c stagetool/spec/protect.h \
	stagetool/spec/spec.c stagetool/spec/spec.h \
	stagetool/spec/spec_at.c \
	stagetool/spec/spec_check.c \
	stagetool/spec/spec_encode.c \
	stagetool/spec/spec_list.c \
	stagetool/spec/spec_memory.c \
	stagetool/spec/spec_message.c \
	stagetool/spec/spec_options.c \
	stagetool/spec/spec_paths.c \
	stagetool/spec/spec_private.h \
	stagetool/spec/symbols.c stagetool/spec/symbols.h \
	stagetool/spec/view.c stagetool/spec/view.h
libspec_la_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS)
libspec_la_LIBADD = $(INIH_LIBS)
