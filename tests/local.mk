EXTRA_DIST += tests/cases.md tests/lib tests/lint tests/cli packaging/debian-packages

include tests/unit/local.mk
include tests/slurm/local.mk
include tests/fault/local.mk
include tests/fuzz/local.mk
