#include "transport/pair/shared.h"

#include "transport/pair/pair_param.h"
#include "transport/shm/doorbell.h"
#include "transport/shm/ring.h"
#include "transport/transport.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

_Static_assert(2 * sizeof(struct tb_pair_side) <= PAGE, "both have room on the first page");

size_t tb_pair_bulk(void)
{
    return tb_ring_bulk(tb_pair_param.ring);
}

size_t tb_pair_bytes(void)
{
    return PAGE + 2 * tb_ring_bytes(tb_pair_bulk());
}

void tb_pair_shared_init(struct tb_pair_shared *shared)
{
    *shared = (struct tb_pair_shared){.socket = -1};
}

int tb_pair_shared_map(struct tb_pair_shared *shared, int descriptor, bool first)
{
    struct stat file;
    size_t bytes = tb_pair_bytes();
    if (fstat(descriptor, &file) < 0 || (size_t)file.st_size != bytes)
        return tb_error(TB_ERR_PROTOCOL,
                        "memory for two processes of this host should have %zu bytes; do all run the same version with "
                        "the same pair_ring?",
                        bytes);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
        return tb_error(TB_ERR_MEMORY, "no memory to share with a process of this host: %s", strerror(errno));
    tb_pair_shared_close(shared, false);
    struct tb_pair_side *sides = (struct tb_pair_side *)memory;
    char *rings[2] = {memory + PAGE, memory + PAGE + tb_ring_bytes(tb_pair_bulk())};
    shared->memory = memory;
    shared->bytes = bytes;
    shared->own = &sides[first ? 0 : 1];
    shared->other = &sides[first ? 1 : 0];
    shared->out = rings[first ? 0 : 1];
    shared->in = rings[first ? 1 : 0];
    return TB_OK;
}

/* The socket is shut down, and not only closed: a copy of it may live on in a process that the program has forked. */
void tb_pair_shared_close(struct tb_pair_shared *shared, bool left)
{
    if (shared->memory != NULL && left)
        atomic_store_explicit(&shared->own->left, 1, memory_order_seq_cst);
    if (shared->socket >= 0) {
        shutdown(shared->socket, SHUT_RDWR);
        close(shared->socket);
    }
    if (shared->memory != NULL)
        munmap(shared->memory, shared->bytes);
    tb_pair_shared_init(shared);
}

void tb_pair_shared_wake(struct tb_pair_shared *shared)
{
    if (!tb_doorbell_sleeps(&shared->other->state) || !tb_doorbell_claim(&shared->other->state))
        return;
    while (send(shared->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
        ;
}

void tb_pair_shared_hush(struct tb_pair_shared *shared)
{
    char rings[16];
    ssize_t n;
    do {
        n = recv(shared->socket, rings, sizeof rings, MSG_DONTWAIT);
    } while (n == (ssize_t)sizeof rings || (n < 0 && errno == EINTR));
}
