EXTRA_DIST += tests/fault/failcall.bats tests/fault/power.bats

noinst_PROGRAMS += tests/fault/failcall tests/fault/sweep tests/fault/crowd
tests_fault_trace = \
	tests/fault/arch.c tests/fault/arch.h \
	tests/fault/calls.c tests/fault/calls.h \
	tests/fault/errnos.c \
	tests/fault/filter.c tests/fault/filter.h \
	tests/fault/launch.c tests/fault/launch.h \
	tests/fault/touch.c tests/fault/touch.h \
	tests/fault/trace.c tests/fault/trace.h

tests_fault_failcall_SOURCES = tests/fault/failcall.c $(tests_fault_trace)
tests_fault_failcall_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_fault_crowd_SOURCES = tests/fault/crowd.c

tests_fault_sweep_SOURCES = $(tests_fault_trace) \
	tests/fault/crew.c tests/fault/crew.h \
	tests/fault/judge.c tests/fault/judge.h \
	tests/fault/point.c tests/fault/point.h \
	tests/fault/scenario.c tests/fault/scenario.h \
	tests/fault/scenario_copy.c tests/fault/scenario_job.c tests/fault/scenario_stage.c \
	tests/fault/snapshot.c tests/fault/snapshot.h \
	tests/fault/sweep.c \
	tests/fault/world.c tests/fault/world.h
tests_fault_sweep_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(XXHASH_CFLAGS)
tests_fault_sweep_LDADD = $(XXHASH_LIBS)
