#include "remote/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCEPT_MOST 64         /* at a time, so that a flood does not keep us from other work */
#define PAUSE_NS    100000000u /* without descriptors and nobody to take one from */

int tb_caller_end(struct tb_caller *caller)
{
    struct tb_callers *callers = caller->callers;
    int socket = caller->watch.descriptor;
    tb_loop_unwatch(callers->loop, &caller->watch);
    tb_list_remove(&caller->node);
    callers->count--;
    explicit_bzero(caller, callers->events.bytes);
    free(caller);
    return socket;
}

void tb_caller_heard(struct tb_caller *caller)
{
    tb_list_remove(&caller->node);
    tb_list_append(&caller->callers->heard, &caller->node);
}

/* Whoever goes unheard is reset: of 20,000 connections a second the kernel is to remember nothing. */
static void send_away(struct tb_caller *caller)
{
    struct tb_callers *callers = caller->callers;
    struct linger at_once = {.l_onoff = 1};
    if (callers->events.leaves != NULL)
        callers->events.leaves(callers->events.context, caller);
    int socket = tb_caller_end(caller);
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(socket);
}

/* False: nobody is here. */
static bool send_one_away(struct tb_callers *callers)
{
    struct tb_list *from = !tb_list_empty(&callers->silent) ? &callers->silent : &callers->heard;
    if (tb_list_empty(from))
        return false;
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a caller that was freed is in no list
    send_away(TB_CONTAINER(from->next, struct tb_caller, node));
    return true;
}

static void caller_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_caller *caller = TB_CONTAINER(watch, struct tb_caller, watch);
    caller->callers->events.ready(caller->callers->events.context, caller);
}

/* Takes the socket. */
static void let_in(struct tb_callers *callers, int socket, const struct sockaddr_storage *name)
{
    if (callers->count == callers->most)
        send_one_away(callers);
    struct tb_caller *caller = calloc(1, callers->events.bytes);
    if (caller == NULL || tb_loop_watch(callers->loop, &caller->watch, socket, EPOLLIN, caller_ready) != TB_OK) {
        free(caller);
        close(socket);
        return;
    }
    caller->callers = callers;
    caller->since = tb_loop_now(callers->loop);
    caller->name = *name;
    tb_list_append(&callers->silent, &caller->node);
    callers->count++;
    if (!tb_timer_is_set(&callers->overdue))
        tb_timer_set(callers->loop, &callers->overdue, callers->patience);
    if (callers->events.came(callers->events.context, caller))
        callers->events.ready(callers->events.context, caller);
    else
        close(tb_caller_end(caller));
}

static void open_doors(struct tb_callers *callers, bool open)
{
    for (uint32_t i = 0; i < callers->door_count; i++)
        tb_loop_change(callers->loop, &callers->doors[i].watch, open ? EPOLLIN : 0);
}

static void pause_over(struct tb_timer *timer)
{
    open_doors(TB_CONTAINER(timer, struct tb_callers, pause), true);
}

static bool lacks_something(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void door_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_callers *callers = TB_CONTAINER(watch, struct tb_door, watch)->callers;
    for (int i = 0; i < ACCEPT_MOST; i++) {
        struct sockaddr_storage name = {0};
        socklen_t length = sizeof name;
        int socket = accept4(watch->descriptor, (struct sockaddr *)&name, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket >= 0) {
            let_in(callers, socket, &name);
            if (callers->loop == NULL)
                return; /* the one who came was the last who was awaited */
        } else if (errno == EAGAIN) {
            return;
        } else if (lacks_something(errno) && !send_one_away(callers)) {
            /* The caller stays in the queue and would wake us again and again. */
            open_doors(callers, false);
            tb_timer_set(callers->loop, &callers->pause, PAUSE_NS);
            return;
        }
    }
}

static void patience_over(struct tb_timer *timer)
{
    struct tb_callers *callers = TB_CONTAINER(timer, struct tb_callers, overdue);
    uint64_t now = tb_loop_now(callers->loop), oldest = now;
    struct tb_list *const lists[] = {&callers->silent, &callers->heard};
    struct tb_caller *caller;
    for (int i = 0; i < 2; i++)
        TB_LIST_EACH (caller, lists[i], struct tb_caller, node) {
            if (now - caller->since >= callers->patience)
                send_away(caller);
            else if (caller->since < oldest)
                oldest = caller->since;
        }
    if (callers->count > 0)
        tb_timer_set(callers->loop, timer, callers->patience - (now - oldest));
}

void tb_callers_open(struct tb_callers *callers, struct tb_loop *loop, uint32_t most, uint64_t patience,
                     const struct tb_callers_events *events)
{
    *callers = (struct tb_callers){.loop = loop, .events = *events, .most = most, .patience = patience};
    tb_list_init(&callers->silent);
    tb_list_init(&callers->heard);
    tb_timer_init(&callers->overdue, patience_over);
    tb_timer_init(&callers->pause, pause_over);
}

int tb_callers_listen(struct tb_callers *callers, int socket)
{
    TB_ASSERT(callers->door_count < TB_CALLERS_DOORS);
    struct tb_door *door = &callers->doors[callers->door_count];
    door->callers = callers;
    int rc = tb_loop_watch(callers->loop, &door->watch, socket, EPOLLIN, door_ready);
    if (rc == TB_OK)
        callers->door_count++;
    return rc;
}

void tb_callers_clear(struct tb_callers *callers)
{
    while (callers->loop != NULL && send_one_away(callers))
        ;
}

void tb_callers_close(struct tb_callers *callers)
{
    tb_callers_clear(callers);
    if (callers->loop == NULL)
        return;
    for (uint32_t i = 0; i < callers->door_count; i++) {
        int socket = callers->doors[i].watch.descriptor;
        tb_loop_unwatch(callers->loop, &callers->doors[i].watch);
        close(socket);
    }
    tb_timer_clear(&callers->overdue);
    tb_timer_clear(&callers->pause);
    *callers = (struct tb_callers){0};
}
