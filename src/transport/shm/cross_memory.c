#include "transport/shm/cross_memory.h"

#include <errno.h>
#include <sys/uio.h>

#include "transport/shm/shm_param.h"

#define PIECES 64 /* spans that one call is given */

enum direction { READ, WRITE };

static int cross_memory_explain(enum direction direction, pid_t pid, uint64_t address)
{
    const char *verb = direction == READ ? "read" : "write to";
    switch (errno) {
    case ESRCH:
        return tb_error(TB_ERR_PEER, "cannot %s the memory of process %ld: there is no such process", verb, (long)pid);
    case EFAULT:
        return tb_error(TB_ERR_ARGUMENT, "cannot %s the memory of process %ld at 0x%llx: nothing is mapped there", verb,
                        (long)pid, (unsigned long long)address);
    default:
        return tb_error(TB_ERR_FORBIDDEN, "cannot %s the memory of process %ld: %s", verb, (long)pid, strerror(errno));
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

static int cross_memory_copy(enum direction direction, pid_t pid, uint64_t address, struct tb_spans *spans,
                             uint64_t length)
{
    TB_ASSERT(length <= spans->left);
    while (length > 0) {
        struct iovec pieces[PIECES];
        int count, first = 0;
        uint64_t bytes = cross_memory_collect(spans, length, pieces, &count);
        length -= bytes;
        while (bytes > 0) {
            struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
            unsigned long left = (unsigned long)(count - first);
            ssize_t moved = direction == READ ? process_vm_readv(pid, &pieces[first], left, &there, 1, 0)
                                              : process_vm_writev(pid, &pieces[first], left, &there, 1, 0);
            if (moved < 0)
                return cross_memory_explain(direction, pid, address);
            if (moved == 0)
                return tb_error(TB_ERR_ARGUMENT, "no byte was copied from or to the memory of process %ld at 0x%llx",
                                (long)pid, (unsigned long long)address);
            address += (uint64_t)moved;
            bytes -= (uint64_t)moved;
            while (first < count && (size_t)moved >= pieces[first].iov_len)
                moved -= (ssize_t)pieces[first++].iov_len;
            if (moved > 0 && first < count) {
                pieces[first].iov_base = (char *)pieces[first].iov_base + moved;
                pieces[first].iov_len -= (size_t)moved;
            }
        }
    }
    return TB_OK;
}

int tb_cross_memory_read(pid_t pid, uint64_t address, struct tb_spans *into, uint64_t length)
{
    return cross_memory_copy(READ, pid, address, into, length);
}

int tb_cross_memory_write(pid_t pid, uint64_t address, struct tb_spans *from, uint64_t length)
{
    return cross_memory_copy(WRITE, pid, address, from, length);
}

bool tb_cross_memory_is_allowed(void)
{
    return tb_shm_param.cross_memory;
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
