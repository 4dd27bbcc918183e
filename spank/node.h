/*
 * The prolog and the epilog of a job on one node: the tool is run, and Slurm hears of it.
 */
#ifndef SPANK_NODE_H
#define SPANK_NODE_H

/* What slurm_spank_job_prolog and slurm_spank_job_epilog return: nonzero drains the node, which is
 * right only where the verdict can not be told to slurmctld. count and arguments are of
 * plugstack.conf. */
int node_prolog(int count, char *arguments[]);
int node_epilog(int count, char *arguments[]);

#endif
