/* Process sets: which of them this process is in, and who else is. mpi://WORLD and mpi://SELF are the standard's;
 * tombolo://host, tombolo://cluster (the innermost one) and tombolo://site are where the process runs, so that each of
 * these names is another set elsewhere, as mpi://SELF is. Every process knows the places of all others, so no message
 * is needed, and nothing changes while the job runs. The process has joined its job. Any thread. */
#ifndef TB_MPI_PSET_H
#define TB_MPI_PSET_H

#include <stdint.h>

enum tb_pset { TB_PSET_WORLD, TB_PSET_SELF, TB_PSET_HOST, TB_PSET_CLUSTER, TB_PSET_SITE, TB_PSET_COUNT };

int tb_pset_count(void);         /* how many of them this process is in */
enum tb_pset tb_pset_nth(int n); /* one of these, from 0 on */
const char *tb_pset_name(enum tb_pset set);
/* One that this process is in, by its name in small or large letters; TB_PSET_COUNT: there is none. */
enum tb_pset tb_pset_find(const char *name);
/* The number of its processes; their job indices, ascending, go to `procs`, which may be NULL. */
uint32_t tb_pset_procs(enum tb_pset set, uint32_t *procs);

#endif
