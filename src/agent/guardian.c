#include "agent/guardian.h"

#include "agent/descendants.h"
#include "remote/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS       500000000
#define STOPPED_TICKS 24u /* an agent may be stopped for so long when its stream has ended */
#define ENDING_TICKS  6u  /* what it gets to end in good order when we are told to end */
#define END_NS        2000000000u

struct guard {
    pid_t agent;
    int stream;
    int launcher; /* an epoll that tells whether it is gone */
    sigset_t heard;
    bool stopped;           /* the agent is, */
    unsigned stopped_ticks; /* for so long without a launcher */
    bool ending;            /* we were told to end, */
    unsigned ending_ticks;  /* so long ago */
};

/* Those that are ignored (nohup) stay so. */
static void choose_signals(sigset_t *set)
{
    static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++) {
        struct sigaction action;
        if (sigaction(passed_on[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, passed_on[i]);
    }
}

/* The control stream has to end with the agent, even while we are stopped; so we hold no descriptor of it. But an epoll
 * remembers what it was told to watch as long as somebody has that open, which the agent does. -1: there is none. */
static int watch_launcher(void)
{
    int watcher = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLRDHUP};
    if (watcher >= 0)
        epoll_ctl(watcher, EPOLL_CTL_ADD, 0, &event);
    close(0);
    return watcher;
}

static bool launcher_is_gone(const struct guard *guard)
{
    struct epoll_event event;
    return epoll_wait(guard->launcher, &event, 1, 0) > 0;
}

static void tick(struct guard *guard)
{
    guard->stopped_ticks = guard->stopped && launcher_is_gone(guard) ? guard->stopped_ticks + 1 : 0;
    guard->ending_ticks += guard->ending;
    if (guard->stopped_ticks >= STOPPED_TICKS || guard->ending_ticks >= ENDING_TICKS)
        kill(guard->agent, SIGKILL);
}

static void take_signal(struct guard *guard, int signal)
{
    if (signal == SIGCHLD)
        return;
    kill(guard->agent, guard->ending ? SIGKILL : signal);
    guard->ending = true;
}

/* While the agent lives it is our only child: orphans come to it. Returns its status. */
static int wait_for_agent(struct guard *guard)
{
    const struct timespec pause = {.tv_nsec = TICK_NS};
    for (;;) {
        bool ticking = guard->stopped || guard->ending;
        int status, signal = sigtimedwait(&guard->heard, NULL, ticking ? &pause : NULL);
        if (signal > 0)
            take_signal(guard, signal);
        else if (errno == EAGAIN)
            tick(guard);
        while (waitpid(guard->agent, &status, WNOHANG | WUNTRACED | WCONTINUED) == guard->agent) {
            if (WIFEXITED(status) || WIFSIGNALED(status))
                return status;
            guard->stopped = WIFSTOPPED(status);
        }
    }
}

static _Noreturn void end_as(int status)
{
    if (WIFSIGNALED(status)) {
        const struct rlimit none = {0, 0};
        int number = WTERMSIG(status);
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, number);
        setrlimit(RLIMIT_CORE, &none);
        signal(number, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        raise(number);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static _Noreturn void stand_guard(struct guard *guard)
{
    char word;
    guard->launcher = watch_launcher();
    close(1);
    close(2);
    int status = wait_for_agent(guard);
    if (recv(guard->stream, &word, 1, MSG_DONTWAIT) != 1)
        tb_descendants_end(END_NS);
    end_as(status);
}

void tb_guardian_start(struct tb_guardian *guardian, char *title)
{
    struct guard guard = {0};
    sigset_t before;
    int streams[2];
    *guardian = (struct tb_guardian){.stream = -1, .watch.descriptor = -1};
    unsetenv(TB_SHELL_MARK_NAME); /* from here on down everything is the agent's own */
    prctl(PR_SET_PDEATHSIG, 0);   /* a shell of a launcher may have it; we see the end of the stream */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    tb_core_forbid();         /* the agent remembers what its ranks may */
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit code away */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams) < 0) {
        guardian->error = errno;
        return;
    }
    choose_signals(&guard.heard);
    sigprocmask(SIG_BLOCK, &guard.heard, &before);
    guard.stream = streams[1];
    guard.agent = fork();
    if (guard.agent > 0) {
        close(streams[0]);
        if (strlen(title) == strlen("guard"))
            memcpy(title, "guard", sizeof "guard");
        stand_guard(&guard);
    }
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(streams[1]);
    if (guard.agent < 0) {
        guardian->error = error;
        close(streams[0]);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* so that a stopped agent too notices */
    setpgid(0, 0);                    /* who kills the group of what it has started leaves one of us to end the rest */
    guardian->stream = streams[0];
}

/* ---- the agent's side -------------------------------------------------------------------------------------------- */

static void stream_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_guardian *guardian = TB_CONTAINER(watch, struct tb_guardian, watch);
    tb_loop_unwatch(guardian->loop, watch);
    close(guardian->stream);
    guardian->stream = -1;
    guardian->lost(guardian->context);
}

bool tb_guardian_missing(const struct tb_guardian *guardian, const char *host, char *text, size_t size)
{
    char limit[64];
    if (guardian->stream >= 0)
        return false;
    snprintf(text, size, "no guardian on host %s: %s%s", host, strerror(guardian->error),
             tb_error_limit(guardian->error, limit, sizeof limit));
    return true;
}

int tb_guardian_watch(struct tb_guardian *guardian, struct tb_loop *loop, void (*lost)(void *context), void *context)
{
    guardian->loop = loop;
    guardian->lost = lost;
    guardian->context = context;
    return guardian->stream >= 0 ? tb_loop_watch(loop, &guardian->watch, guardian->stream, EPOLLIN, stream_ready)
                                 : TB_OK;
}

void tb_guardian_leave(struct tb_guardian *guardian, bool orderly)
{
    if (orderly && guardian->stream >= 0)
        send(guardian->stream, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (!orderly && guardian->stream < 0)
        tb_descendants_end(END_NS);
}
