/* Whether a program that knows of no agent was started by another launcher: then it is one of several that all take
 * themselves for the only one, and its user should know. */
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>

/* By what they set: the rank, the number of ranks (NULL: it does not say), and one more that no script sets by hand. */
static const struct {
    const char *name, *rank, *size, *needed;
} known[] = {
    {"mpiexec of MPICH or a relative of it", "PMI_RANK", "PMI_SIZE", "PMI_FD"},
    {"mpiexec of MPICH or a relative of it", "PMI_RANK", "PMI_SIZE", "PMI_PORT"},
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_SIZE"},
    {"a launcher that speaks PMIx", "PMIX_RANK", NULL, "PMIX_NAMESPACE"},
};

bool tb_other_launcher_find(struct tb_other_launcher *found)
{
    if (getenv("TOMBOLO_RANK") != NULL)
        return false; /* we or our parents are a rank of ours, which is told those names, too */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *rank = getenv(known[i].rank), *size = known[i].size != NULL ? getenv(known[i].size) : "0";
        if (rank == NULL || size == NULL || getenv(known[i].needed) == NULL)
            continue;
        *found = (struct tb_other_launcher){known[i].name, strtol(rank, NULL, 10), strtol(size, NULL, 10)};
        if (known[i].size == NULL || found->size > 1)
            return true;
    }
    return false;
}

void tb_other_launcher_tell(void)
{
    struct tb_other_launcher found;
    char count[32] = "";
    if (!tb_other_launcher_find(&found) || found.rank != 0)
        return; /* one of them is enough */
    if (found.size > 0)
        snprintf(count, sizeof count, " as one of %ld", found.size);
    fprintf(stderr,
            "tombolo: this program was started by %s%s, but it is built with Tombolo, so %s alone in its "
            "MPI_COMM_WORLD; start it with Tombolo's mpiexec\n",
            found.name, count, found.size > 0 ? "each of them is" : "it is");
}
