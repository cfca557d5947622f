#include "agent/rank_memory.h"

#include "transport/transport.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int tb_rank_memory_make(const char *name, uint64_t bytes, int *descriptor)
{
    *descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*descriptor < 0 || ftruncate(*descriptor, (off_t)bytes) < 0 ||
        fcntl(*descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return tb_error_errno("cannot make %llu bytes of shared memory", (unsigned long long)bytes);
    return TB_OK;
}

int tb_rank_memory_pair(const char *host, int memories[2], int sockets[2])
{
    memories[0] = memories[1] = sockets[0] = sockets[1] = -1;
    int rc = tb_rank_memory_make("tombolo-pair", tb_pair_bytes(), &memories[0]);
    if (rc == TB_OK && ((memories[1] = fcntl(memories[0], F_DUPFD_CLOEXEC, 3)) < 0 ||
                        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) < 0))
        rc = tb_error_errno("host %s cannot connect two of its ranks through memory", host);
    for (int k = 0; k < 2 && rc != TB_OK; k++)
        if (memories[k] >= 0)
            close(memories[k]);
    return rc;
}
