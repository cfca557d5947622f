#include "job/job.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int tb_shared_bytes_put(const void *bytes, size_t length, int *descriptor)
{
    const char *from = bytes;
    if (length == 0 || length > TB_SHARED_BYTES_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%zu bytes are too many for agents to pass on: the limit is %u", length,
                        TB_SHARED_BYTES_LIMIT);
    int fd = memfd_create("tombolo-bytes", MFD_CLOEXEC);
    if (fd < 0)
        return tb_error_errno("cannot make memory for %zu bytes", length);
    for (size_t done = 0; done < length;) {
        ssize_t n = write(fd, from + done, length - done);
        if (n < 0) {
            int rc = tb_error_errno("cannot write %zu bytes to memory", length);
            close(fd);
            return rc;
        }
        done += (size_t)n;
    }
    *descriptor = fd;
    return TB_OK;
}

int tb_shared_bytes_get(int descriptor, void **bytes, size_t *length)
{
    struct stat about;
    if (fstat(descriptor, &about) < 0 || !S_ISREG(about.st_mode) || about.st_size <= 0 ||
        about.st_size > (off_t)TB_SHARED_BYTES_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "what came along with a packet is no memory, or too much");
    size_t wanted = (size_t)about.st_size, done = 0;
    char *into = malloc(wanted);
    if (into == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %zu bytes", wanted);
    while (done < wanted) {
        ssize_t n = pread(descriptor, into + done, wanted - done, (off_t)done);
        if (n <= 0) {
            free(into);
            return tb_error(TB_ERR_PROTOCOL, "what came along with a packet has become shorter");
        }
        done += (size_t)n;
    }
    *bytes = into;
    *length = wanted;
    return TB_OK;
}
