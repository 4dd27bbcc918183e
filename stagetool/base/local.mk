noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	stagetool/base/cleanup.h \
	stagetool/base/error.c stagetool/base/error.h \
	stagetool/base/known.c stagetool/base/known.h \
	stagetool/base/log.c stagetool/base/log.h \
	stagetool/base/parse.c stagetool/base/parse.h \
	stagetool/base/path.c stagetool/base/path.h \
	stagetool/base/pool.c stagetool/base/pool.h \
	stagetool/base/priv.c stagetool/base/priv.h \
	stagetool/base/retry.c stagetool/base/retry.h
