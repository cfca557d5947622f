#include "remote/remote.h"

#include <errno.h>
#include <sys/socket.h>

int tb_receive_exactly(int socket, void *to, size_t size, size_t *have)
{
    while (*have < size) {
        ssize_t n = recv(socket, (char *)to + *have, size - *have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? TB_AGAIN : TB_ERR_SYSTEM;
        if (n == 0)
            return TB_ERR_CLOSED;
        *have += (size_t)n;
    }
    return TB_OK;
}
