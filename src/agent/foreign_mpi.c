#include "agent/foreign_mpi.h"

#include <string.h>

/* Beginnings of names; the first row that fits a library tells. */
static const struct {
    const char *library, *name, *command;
} known[] = {
    {"libmpi.so.40", "Open MPI", "Open MPI's"},
    {"libmpi.so.20", "Open MPI", "Open MPI's"},
    {"libmpi_mpifh.so.", "Open MPI", "Open MPI's"},
    {"libmpi_usempi", "Open MPI", "Open MPI's"},
    {"libmpi_cxx.so.", "Open MPI", "Open MPI's"},
    {"libmpi.so.12", "MPICH or a relative of it", "its"},
    {"libmpich", "MPICH or a relative of it", "its"},
    {"libmpifort.so.", "MPICH or a relative of it", "its"},
    {"libmpicxx.so.", "MPICH or a relative of it", "its"},
    {"libmpi.so.", "another MPI", "that one's"},
};

/* The first library that it needs whose name begins so, or NULL. */
static const char *needs(const struct tb_executable *x, const char *beginning)
{
    for (const char *at = x->needed; *at != 0; at += strlen(at) + 1)
        if (strncmp(at, beginning, strlen(beginning)) == 0)
            return at;
    return NULL;
}

bool tb_foreign_mpi_find(const struct tb_executable *x, struct tb_foreign_mpi *found)
{
    if (needs(x, "libmpi_abi.so.") != NULL)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *library = needs(x, known[i].library);
        if (library == NULL)
            continue;
        *found = (struct tb_foreign_mpi){known[i].name, known[i].command, library};
        /* Numbers of early ones are those of others, too, but this only they have. Alone it means nothing: Open MPI's
         * own launcher needs it. */
        if (needs(x, "libopen-rte.so.") != NULL)
            *found = (struct tb_foreign_mpi){"Open MPI", "Open MPI's", library};
        return true;
    }
    return false;
}

bool tb_foreign_mpi_binds(const char *variable)
{
    static const char *const beginnings[] = {"PMI_FD=",
                                             "PMI_PORT=",
                                             "PMI_ID=",
                                             "PMI_SPAWNED=",
                                             "PMI_KVS",
                                             "PMIX_",
                                             "HYDI_CONTROL_FD=",
                                             "OMPI_MCA_orte_",
                                             "OMPI_MCA_ess",
                                             "OMPI_MCA_pmix=",
                                             "OMPI_UNIVERSE_SIZE=",
                                             "PRTE_LAUNCHED="};
    if (strncmp(variable, "PMIX_MCA_", 9) == 0)
        return false; /* the user's own wishes */
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}
