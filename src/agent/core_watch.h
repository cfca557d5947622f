/* The core watch notices a rank that has crashed and is writing its core file: for as long as that takes, the kernel
 * does not tell its parent that it has ended, and its sockets stay open. It looks at the ranks in turn, each once a
 * second, and only where there can be core files. Belongs to the local ranks; one thread. */
#ifndef TB_AGENT_CORE_WATCH_H
#define TB_AGENT_CORE_WATCH_H

#include "remote/remote.h"

struct tb_core_watch_events {
    void *context;
    /* The processes of a rank that may crash: at most two, 0 for none. */
    void (*processes)(void *context, uint32_t local, pid_t pids[static 2]);
    void (*dumping)(void *context, uint32_t local); /* called again until the process is gone */
};

struct tb_core_watch {
    struct tb_loop *loop;
    struct tb_core_watch_events events;
    uint32_t count, next; /* ranks; whose turn it is */
    struct tb_timer timer;
};

void tb_core_watch_open(struct tb_core_watch *watch, struct tb_loop *loop, const struct tb_core_watch_events *events);
/* So many ranks have been started. */
void tb_core_watch_start(struct tb_core_watch *watch, uint32_t count);
void tb_core_watch_close(struct tb_core_watch *watch);
/* Whether this process is writing a core file now. */
bool tb_core_watch_sees(pid_t pid);

#endif
