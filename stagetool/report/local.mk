noinst_LTLIBRARIES += libreport.la
libreport_la_SOURCES = \
	stagetool/report/json.c \
	stagetool/report/numbers.c stagetool/report/numbers.h \
	stagetool/report/progress.c stagetool/report/progress.h \
	stagetool/report/progress_text.c \
	stagetool/report/summary.c stagetool/report/summary.h
libreport_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
