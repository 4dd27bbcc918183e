noinst_LTLIBRARIES += libspec.la
libspec_la_SOURCES = \
	stagetool/spec/conf.h \
	stagetool/spec/handoff.h \
	stagetool/spec/spec.h \
	stagetool/spec/symbols.h
