EXTRA_DIST += tests/cases.md tests/lib tests/lint tests/cli packaging/debian-packages

check_PROGRAMS += tests/cli/exchange
tests_cli_exchange_SOURCES = tests/cli/exchange.c

include tests/unit/local.mk
include tests/slurm/local.mk
include tests/fault/local.mk
include tests/fuzz/local.mk
