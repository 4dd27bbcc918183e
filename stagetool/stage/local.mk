noinst_LTLIBRARIES += libstage.la
libstage_la_SOURCES = \
	stagetool/stage/manifest.h \
	stagetool/stage/plan.h \
	stagetool/stage/transfer.h
