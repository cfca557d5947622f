#include "transport/shm/cross_memory.h"

#include <errno.h>
#include <sys/uio.h>

#define PIECES 64 /* spans that one call is given */

static int cross_memory_explain(pid_t pid, uint64_t address)
{
    switch (errno) {
    case ESRCH:
        return tb_error(TB_ERR_PEER, "cannot read the memory of process %ld: there is no such process", (long)pid);
    case EFAULT:
        return tb_error(TB_ERR_ARGUMENT, "cannot read the memory of process %ld at 0x%llx: nothing is mapped there",
                        (long)pid, (unsigned long long)address);
    default:
        return tb_error(TB_ERR_FORBIDDEN, "cannot read the memory of process %ld: %s", (long)pid, strerror(errno));
    }
}

/* Takes the next pieces of the spans, at most `length` bytes; returns the bytes. */
static uint64_t cross_memory_collect(struct tb_spans *into, uint64_t length, struct iovec *pieces, int *count)
{
    uint64_t bytes = 0;
    *count = 0;
    while (bytes < length && *count < PIECES) {
        size_t n = into->length < length - bytes ? into->length : length - bytes;
        pieces[(*count)++] = (struct iovec){.iov_base = into->base, .iov_len = n};
        bytes += n;
        tb_spans_skip(into, n);
    }
    return bytes;
}

int tb_cross_memory_read(pid_t pid, uint64_t address, struct tb_spans *into, uint64_t length)
{
    TB_ASSERT(length <= into->left);
    while (length > 0) {
        struct iovec pieces[PIECES];
        int count, first = 0;
        uint64_t bytes = cross_memory_collect(into, length, pieces, &count);
        length -= bytes;
        while (bytes > 0) {
            struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
            ssize_t got = process_vm_readv(pid, &pieces[first], (unsigned long)(count - first), &there, 1, 0);
            if (got < 0)
                return cross_memory_explain(pid, address);
            if (got == 0)
                return tb_error(TB_ERR_ARGUMENT, "reading the memory of process %ld at 0x%llx gave nothing", (long)pid,
                                (unsigned long long)address);
            address += (uint64_t)got;
            bytes -= (uint64_t)got;
            while (first < count && (size_t)got >= pieces[first].iov_len)
                got -= (ssize_t)pieces[first++].iov_len;
            if (got > 0 && first < count) {
                pieces[first].iov_base = (char *)pieces[first].iov_base + got;
                pieces[first].iov_len -= (size_t)got;
            }
        }
    }
    return TB_OK;
}

int tb_cross_memory_verify(pid_t pid, uint64_t address, uint64_t token)
{
    uint64_t found = 0;
    struct tb_spans into = tb_spans_of(&found, sizeof(found));
    int error = pid > 0 ? tb_cross_memory_read(pid, address, &into, sizeof(found)) : TB_ERR_PEER;
    if (error != TB_OK)
        return TB_ERR_FORBIDDEN;
    if (found != token)
        return tb_error(TB_ERR_FORBIDDEN, "process %ld is not the rank that it should be (another PID namespace?)",
                        (long)pid);
    return TB_OK;
}
