noinst_LTLIBRARIES += libreport.la
libreport_la_SOURCES = \
	stagetool/report/progress.h \
	stagetool/report/summary.h
