/* Waiting for descriptors, timers and signals. */
#include "remote/remote.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORT_NS 5000000u /* sleeps below this are kept exactly, where the kernel can; others to the millisecond */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* the same on every machine, but not in every header */
#endif

int tb_loop_open(struct tb_loop *loop, const struct tb_clock *clock)
{
    *loop = (struct tb_loop){.clock = clock, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    tb_list_init(&loop->timers);
    if (loop->epoll < 0)
        return tb_error_errno("cannot make an epoll descriptor");
    return TB_OK;
}

void tb_loop_close(struct tb_loop *loop)
{
    if (loop->epoll >= 0)
        close(loop->epoll);
    loop->epoll = -1;
}

int tb_loop_watch(struct tb_loop *loop, struct tb_watch *watch, int descriptor, uint32_t events,
                  void (*ready)(struct tb_watch *watch, uint32_t events))
{
    *watch = (struct tb_watch){.descriptor = descriptor, .events = events, .ready = ready};
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0)
        return TB_OK;
    watch->descriptor = -1;
    if (errno == EPERM)
        return TB_ERR_UNSUPPORTED;
    return tb_error_errno("cannot wait for descriptor %d", descriptor);
}

void tb_loop_change(struct tb_loop *loop, struct tb_watch *watch, uint32_t events)
{
    if (watch->descriptor < 0 || watch->events == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, watch->descriptor, &event) == 0)
        watch->events = events;
    else
        tb_log(TB_LOG_WARN, "loop", "cannot change what is waited for: %s",
               strerror(errno)); /* no memory; tried again */
}

void tb_loop_unwatch(struct tb_loop *loop, struct tb_watch *watch)
{
    if (watch->descriptor < 0)
        return;
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->descriptor, NULL);
    watch->descriptor = -1;
    for (int i = loop->batch_at; i < loop->batch_count; i++)
        if (loop->batch[i].data.ptr == watch)
            loop->batch[i].data.ptr = NULL;
}

void tb_timer_init(struct tb_timer *timer, void (*fire)(struct tb_timer *timer))
{
    tb_list_init(&timer->node);
    timer->due = TB_NEVER;
    timer->fire = fire;
}

void tb_timer_set(struct tb_loop *loop, struct tb_timer *timer, uint64_t after)
{
    tb_list_remove(&timer->node);
    uint64_t now = tb_loop_now(loop);
    timer->due = after < TB_NEVER - now ? now + after : TB_NEVER;
    tb_list_append(&loop->timers, &timer->node);
}

void tb_timer_clear(struct tb_timer *timer)
{
    tb_list_remove(&timer->node);
    timer->due = TB_NEVER;
}

bool tb_timer_is_set(const struct tb_timer *timer)
{
    return !tb_list_empty(&timer->node);
}

/* Nanoseconds until the first timer; TB_NEVER: there is none. */
static uint64_t time_to_sleep(const struct tb_loop *loop)
{
    uint64_t first = TB_NEVER;
    struct tb_timer *timer;
    TB_LIST_EACH (timer, &loop->timers, struct tb_timer, node)
        first = timer->due < first ? timer->due : first;
    if (first == TB_NEVER)
        return TB_NEVER;
    uint64_t now = tb_loop_now(loop);
    return first <= now ? 0 : first - now;
}

/* Fills the batch, as epoll_wait does. */
static int wait_for_events(struct tb_loop *loop)
{
    static bool inexact; /* the kernel, or who stands before it, does not know the call */
    uint64_t ns = time_to_sleep(loop);
    if (ns == TB_NEVER)
        return epoll_wait(loop->epoll, loop->batch, TB_LOOP_BATCH, -1);
    if (ns > 0 && ns < SHORT_NS && !inexact) {
        const struct {
            int64_t seconds, nanoseconds;
        } limit = {0, (int64_t)ns};
        long n = syscall(SYS_epoll_pwait2, loop->epoll, loop->batch, TB_LOOP_BATCH, &limit, NULL, 0);
        if (n >= 0 || errno == EINTR)
            return (int)n;
        inexact = true;
    }
    uint64_t ms = (ns + 999999) / 1000000;
    return epoll_wait(loop->epoll, loop->batch, TB_LOOP_BATCH, ms < 1000000 ? (int)ms : 1000000);
}

/* One at a time, from the front again, since a callback may set and clear any timer. */
static void fire_due(struct tb_loop *loop)
{
    uint64_t now = tb_loop_now(loop);
    for (bool again = true; again;) {
        again = false;
        struct tb_timer *timer;
        TB_LIST_EACH (timer, &loop->timers, struct tb_timer, node) {
            if (timer->due <= now) {
                tb_timer_clear(timer);
                timer->fire(timer);
                again = true;
                break;
            }
        }
    }
}

int tb_loop_run(struct tb_loop *loop)
{
    while (!loop->stop) {
        if (loop->settle != NULL)
            loop->settle(loop);
        if (loop->stop)
            break;
        int n = wait_for_events(loop);
        if (n < 0 && errno != EINTR)
            return tb_error_errno("cannot wait for events");
        loop->batch_count = n > 0 ? n : 0;
        for (loop->batch_at = 0; loop->batch_at < loop->batch_count;) {
            struct epoll_event *event = &loop->batch[loop->batch_at++];
            struct tb_watch *watch = event->data.ptr;
            if (watch != NULL)
                watch->ready(watch, event->events);
        }
        loop->batch_count = 0;
        if (!tb_list_empty(&loop->timers))
            fire_due(loop);
    }
    return TB_OK;
}

int tb_signals_open(const sigset_t *set, sigset_t *before, int *descriptor)
{
    sigset_t heard = *set;
    struct sigaction action;
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&heard, number) == 1 && sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            sigdelset(&heard, number);
    if (sigprocmask(SIG_BLOCK, &heard, before) < 0)
        return tb_error_errno("cannot block signals");
    *descriptor = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*descriptor < 0)
        return tb_error_errno("cannot make a signal descriptor");
    return TB_OK;
}
