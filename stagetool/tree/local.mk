noinst_LTLIBRARIES += libtree.la
libtree_la_SOURCES = \
	stagetool/tree/filter.c stagetool/tree/filter.h \
	stagetool/tree/glob.c stagetool/tree/glob.h \
	stagetool/tree/handle.c stagetool/tree/handle.h \
	stagetool/tree/meta_values.c \
	stagetool/tree/meta.c stagetool/tree/meta.h stagetool/tree/meta_internal.h \
	stagetool/tree/links.c stagetool/tree/links.h \
	stagetool/tree/remove.c stagetool/tree/remove.h \
	stagetool/tree/walk.c stagetool/tree/walk.h \
	stagetool/tree/walk_ahead.c stagetool/tree/walk_ahead.h \
	stagetool/tree/walk_block.c stagetool/tree/walk_block.h \
	stagetool/tree/walk_dir.c stagetool/tree/walk_dir.h \
	stagetool/tree/xattr.c
