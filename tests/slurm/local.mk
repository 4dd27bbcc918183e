EXTRA_DIST += tests/slurm/cluster
