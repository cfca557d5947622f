/* Handles of objects that cannot be made in this version: files. There are only the null ones, and programs and
 * bindings of other languages convert those at any time. */
#include "mpi/binding_decls.h"
#include "mpi/handle.h"

/* A value of the standard stands for itself; nothing else was ever given out. */
static void *fixed(int value, void *null)
{
    return value >= 0 && (uint32_t)value < TB_HANDLE_FIRST ? (void *)(uintptr_t)value : null;
}

int tb_mpi_File_toint(MPI_File file)
{
    return tb_handle_to_int(file);
}

MPI_File tb_mpi_File_fromint(int file)
{
    return fixed(file, MPI_FILE_NULL);
}
