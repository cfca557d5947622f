/* The environment (MPI-5.0, chapter 9): versions, names, clocks, memory. Most of it works at any time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/comm.h"
#include "mpi/binding_decls.h"
#include "mpi/info.h"

#define CACHE_LINE 64u

/* A null pointer in a call that is allowed at any time. */
static int null_pointer(const char *call, int position, const char *name)
{
    return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, name, "the pointer is null");
}

int tb_mpi_Get_version(int *version, int *subversion)
{
    if (version == NULL || subversion == NULL)
        return null_pointer("MPI_Get_version", version == NULL ? 1 : 2, version == NULL ? "version" : "subversion");
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int tb_mpi_Get_library_version(char *version, int *resultlen)
{
    if (version == NULL || resultlen == NULL)
        return null_pointer("MPI_Get_library_version", version == NULL ? 1 : 2,
                            version == NULL ? "version" : "resultlen");
    *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Tombolo %s, MPI %d.%d, ABI %d.%d", TB_VERSION,
                          MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    return MPI_SUCCESS;
}

int tb_mpi_Get_processor_name(char *name, int *resultlen)
{
    static const char call[] = "MPI_Get_processor_name";
    tb_require_active(call);
    if (name == NULL || resultlen == NULL)
        return tb_raise_null(NULL, call, name == NULL ? 1 : 2, name == NULL ? "name" : "resultlen");
    if (gethostname(name, MPI_MAX_PROCESSOR_NAME) != 0)
        snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", tb_self.job.host);
    name[MPI_MAX_PROCESSOR_NAME - 1] = 0;
    *resultlen = (int)strlen(name);
    return MPI_SUCCESS;
}

double tb_mpi_Wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double tb_mpi_Wtick(void)
{
    struct timespec tick;
    return clock_getres(CLOCK_MONOTONIC, &tick) == 0 ? (double)tick.tv_sec + (double)tick.tv_nsec * 1e-9 : 1e-9;
}

int tb_mpi_Pcontrol(const int level)
{
    return MPI_SUCCESS;
}

/* The alignment of allocated memory: what the program asks for, where that is a power of two and more than a cache
 * line. */
static size_t alignment_of(const struct tb_info *info)
{
    const char *value = info != NULL ? tb_info_value(info, "mpi_minimum_memory_alignment") : NULL;
    char *end = NULL;
    errno = 0;
    unsigned long long wanted = value != NULL ? strtoull(value, &end, 10) : 0;
    bool valid =
        value != NULL && *value >= '1' && *value <= '9' && *end == 0 && errno == 0 && (wanted & (wanted - 1)) == 0;
    return valid && wanted > CACHE_LINE ? (size_t)wanted : CACHE_LINE;
}

int tb_mpi_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    static const char call[] = "MPI_Alloc_mem";
    tb_require_active(call);
    if (size < 0)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "size", "%lld is negative", (long long)size);
    if (baseptr == NULL)
        return tb_raise_null(NULL, call, 3, "baseptr");
    const struct tb_info *i = info == MPI_INFO_NULL ? NULL : tb_info_find(info);
    if (info != MPI_INFO_NULL && i == NULL)
        return tb_raise_info(NULL, call, 2, info);
    void *memory = NULL;
    if (posix_memalign(&memory, alignment_of(i), size > 0 ? (size_t)size : 1) != 0)
        return tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for %lld bytes", (long long)size);
    *(void **)baseptr = memory;
    return MPI_SUCCESS;
}

int tb_mpi_Free_mem(void *base)
{
    tb_require_active("MPI_Free_mem");
    free(base);
    return MPI_SUCCESS;
}
