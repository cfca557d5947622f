/* Preloaded under MPICH by bench/peers: whoever polls in vain gives the core away. Debian's build of MPICH (on UCX)
 * polls without ever yielding, so that more ranks than cores would wait for each other's time slices, and its figures
 * would tell of the scheduler alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    static int (*real)(int, struct epoll_event *, int, int);
    if (!real)
        real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
    int found = real(fd, events, most, timeout);
    if (found == 0 && timeout == 0)
        sched_yield();
    return found;
}

/* The heart of that build: moves what can be moved, returns how much that was. */
unsigned ucp_worker_progress(void *worker);
unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*real)(void *);
    if (!real)
        real = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned moved = real(worker);
    if (moved == 0)
        sched_yield();
    return moved;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    static int (*real)(struct pollfd *, nfds_t, int);
    if (!real)
        real = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
    int found = real(fds, count, timeout);
    if (found == 0 && timeout == 0)
        sched_yield();
    return found;
}
