EXTRA_DIST += tests/slurm/cluster tests/slurm/helpers.bash tests/slurm/fake-tool \
	tests/slurm/cluster.bats tests/slurm/plugin.bats tests/slurm/stage.bats tests/slurm/ends.bats

if WITH_SLURM
check_PROGRAMS += tests/slurm/write-handoff
endif
tests_slurm_write_handoff_SOURCES = tests/slurm/write-handoff.c
tests_slurm_write_handoff_LDADD = libspec.la libbase.la $(INIH_LIBS)
