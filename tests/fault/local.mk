EXTRA_DIST += tests/fault/failcall.bats

noinst_PROGRAMS += tests/fault/failcall tests/fault/crowd
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
