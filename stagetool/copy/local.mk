noinst_LTLIBRARIES += libcopy.la
libcopy_la_SOURCES = \
	stagetool/copy/engine.h \
	stagetool/copy/publish.h \
	stagetool/copy/range.h
