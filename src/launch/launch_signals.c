#include "launch/launch_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

static void signals_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_launch_signals *signals = TB_CONTAINER(watch, struct tb_launch_signals, watch);
    struct signalfd_siginfo info;
    while (read(watch->descriptor, &info, sizeof info) == (ssize_t)sizeof info)
        signals->take(signals->context, (int)info.ssi_signo);
}

int tb_launch_signals_open(struct tb_launch_signals *signals, struct tb_loop *loop, void *context,
                           void (*take)(void *context, int number))
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGCHLD, SIGUSR1,
                                  SIGUSR2, SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU};
    sigset_t set;
    int descriptor;
    *signals = (struct tb_launch_signals){.context = context, .take = take};
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit codes away */
    int rc = tb_signals_open(&set, &signals->before, &descriptor);
    if (rc != TB_OK)
        return rc;
    return tb_loop_watch(loop, &signals->watch, descriptor, EPOLLIN, signals_ready);
}
