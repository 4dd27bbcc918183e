EXTRA_DIST += bench/run bench/table bench/peers.bash bench/places.bash bench/rows.bash bench/workloads.bash \
	bench/README.md

EXTRA_PROGRAMS = bench/stopwatch bench/slowfs
bench_stopwatch_SOURCES = bench/stopwatch.c
bench_slowfs_SOURCES = bench/slowfs.c bench/slowfs_node.c bench/slowfs_node.h
bench_slowfs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) $(FUSE3_CFLAGS)
bench_slowfs_LDADD = $(FUSE3_LIBS)
CLEANFILES += bench/stopwatch bench/slowfs
