#include "job/sealed_map.h"

#include <sys/mman.h>
#include <sys/stat.h>

int tb_sealed_map(int descriptor, uint64_t most, const char *what, void **bytes, size_t *length)
{
    struct stat about;
    if (fstat(descriptor, &about) < 0 || about.st_size <= 0 || (uint64_t)about.st_size > most)
        return tb_error(TB_ERR_PROTOCOL, "what the agent gave is no %s", what);
    void *mapped = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED)
        return tb_error_errno("cannot map the %s", what);
    madvise(mapped, (size_t)about.st_size, MADV_DONTDUMP);
    *bytes = mapped;
    *length = (size_t)about.st_size;
    return TB_OK;
}

void tb_sealed_unmap(void *bytes, size_t length)
{
    if (bytes != NULL)
        munmap(bytes, length);
}
