#include "transport/shm/cross_memory.h"

#include <errno.h>
#include <sys/uio.h>

#include "transport/shm/shm_param.h"

#define PIECES 64         /* of each side, that one call is given */
#define MOST   (1u << 30) /* bytes that one call copies: the kernel cuts what is longer than twice that */

static int cross_memory_explain(enum tb_cross_memory_direction direction, pid_t pid, uint64_t address)
{
    const char *verb = direction == TB_CROSS_MEMORY_READ ? "read" : "write to";
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

/* Takes the next pieces of the spans, seen from `base`, at most `length` bytes; returns the bytes. */
static uint64_t cross_memory_collect(struct tb_spans *spans, uint64_t base, uint64_t length, struct iovec *pieces,
                                     unsigned long *count)
{
    uint64_t bytes = 0;
    *count = 0;
    while (bytes < length && *count < PIECES) {
        size_t n = spans->length < length - bytes ? spans->length : length - bytes;
        pieces[(*count)++] = (struct iovec){.iov_base = (void *)(base + (uintptr_t)spans->base), .iov_len = n};
        bytes += n;
        tb_spans_skip(spans, n);
    }
    return bytes;
}

/* The next pieces of both sides, which are of as many bytes; returns those. */
static uint64_t cross_memory_pair(uint64_t base, struct tb_spans *there, struct tb_spans *here, uint64_t length,
                                  struct iovec *far, unsigned long *far_count, struct iovec *near,
                                  unsigned long *near_count)
{
    struct tb_spans ahead = *there;
    uint64_t most = cross_memory_collect(&ahead, base, length < MOST ? length : MOST, far, far_count);
    uint64_t bytes = cross_memory_collect(here, 0, most, near, near_count);
    if (bytes == most)
        *there = ahead;
    else
        cross_memory_collect(there, base, bytes, far, far_count);
    return bytes;
}

int tb_cross_memory_move(enum tb_cross_memory_direction direction, pid_t pid, uint64_t base, struct tb_spans *there,
                         struct tb_spans *here, uint64_t length)
{
    TB_ASSERT(length <= there->left && length <= here->left);
    while (length > 0) {
        struct iovec far[PIECES], near[PIECES];
        unsigned long far_count, near_count;
        uint64_t bytes = cross_memory_pair(base, there, here, length, far, &far_count, near, &near_count);
        ssize_t moved = direction == TB_CROSS_MEMORY_READ ? process_vm_readv(pid, near, near_count, far, far_count, 0)
                                                          : process_vm_writev(pid, near, near_count, far, far_count, 0);
        if (moved >= 0 && (uint64_t)moved < bytes)
            errno = EFAULT; /* it came to where nothing is mapped */
        if (moved < 0 || (uint64_t)moved < bytes)
            return cross_memory_explain(direction, pid, (uintptr_t)far[0].iov_base);
        length -= bytes;
    }
    return TB_OK;
}

int tb_cross_memory_read(pid_t pid, uint64_t address, struct tb_spans *into, uint64_t length)
{
    struct tb_spans there = tb_spans_of(NULL, length);
    return tb_cross_memory_move(TB_CROSS_MEMORY_READ, pid, address, &there, into, length);
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
