/* Signals that the launcher is sent, told in the loop. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_LAUNCH_SIGNALS_H
#define TB_LAUNCH_LAUNCH_SIGNALS_H

#include "remote/remote.h"

struct tb_launch_signals {
    struct tb_watch watch;
    sigset_t before; /* what was blocked before */
    void *context;
    void (*take)(void *context, int number);
};

int tb_launch_signals_open(struct tb_launch_signals *signals, struct tb_loop *loop, void *context,
                           void (*take)(void *context, int number));

#endif
