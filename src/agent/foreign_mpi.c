#include "agent/foreign_mpi.h"

#include <string.h>

/* Beginnings of names, in the order in which they count: a name of the first row that fits tells. libmpi.so.12 is that
 * of MPICH and its relatives, but was Open MPI's, too; then libopen-rte is needed as well. */
static const struct {
    const char *library, *name, *command;
} known[] = {
    {"libopen-rte.so.", "Open MPI", "Open MPI's"},
    {"libopen-pal.so.", "Open MPI", "Open MPI's"},
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

bool tb_foreign_mpi_find(const struct tb_executable *x, struct tb_foreign_mpi *found)
{
    for (const char *at = x->needed; *at != 0; at += strlen(at) + 1)
        if (strncmp(at, "libmpi_abi.so.", 14) == 0)
            return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (const char *at = x->needed; *at != 0; at += strlen(at) + 1)
            if (strncmp(at, known[i].library, strlen(known[i].library)) == 0) {
                *found = (struct tb_foreign_mpi){known[i].name, known[i].command, at};
                return true;
            }
    return false;
}
