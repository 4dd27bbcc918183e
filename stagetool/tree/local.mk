noinst_LTLIBRARIES += libtree.la
libtree_la_SOURCES = \
	stagetool/tree/filter.h \
	stagetool/tree/glob.h \
	stagetool/tree/meta.h \
	stagetool/tree/remove.c stagetool/tree/remove.h \
	stagetool/tree/walk.h
