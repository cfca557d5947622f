/* Allocation: the nodes that a batch system (Slurm, PBS, LSF, Grid Engine) has given to us, known by its variables.
 * They are not used by themselves yet, so whoever starts a job there without naming hosts is told how. */
#ifndef TB_LAUNCH_ALLOCATION_H
#define TB_LAUNCH_ALLOCATION_H

#include "base/base.h"

struct tb_allocation {
    const char *system; /* its name */
    const char *job;    /* what it calls the job; points into the environment */
    const char *hint;   /* the words of a command line that name the nodes */
    uint32_t nodes;
};

/* False: there is none of more than one node. */
bool tb_allocation_find(struct tb_allocation *found);

#endif
