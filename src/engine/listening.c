#include "engine/listening.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SELDOM     UINT64_C(5000000)  /* ns, where nobody is in a hurry */
#define LOOK_AGAIN UINT64_C(1000000)  /* ns, where there is something already, or a descriptor cannot be listened to */
#define BELL_SLOT  TB_LISTENING_LIMIT /* behind those of `descriptors`, in events */
#define TIMER_SLOT (TB_LISTENING_LIMIT + 1u)
#define SLOTS      (TB_LISTENING_LIMIT + 2u)

_Static_assert(TB_LISTENING_LIMIT <= 32, "there is a bit for each of them");

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int epoll_set(const struct tb_listening *l, int operation, int descriptor, uint32_t events, uint32_t slot)
{
    struct epoll_event event = {.events = events, .data.u32 = slot};
    return epoll_ctl(l->epoll, operation, descriptor, &event);
}

int tb_listening_open(struct tb_listening *l, const struct tb_transport_set *transports,
                      const struct tb_driving *driving, const int *control, const struct tb_clock *clock)
{
    l->transports = transports;
    l->driving = driving;
    l->control = control;
    l->clock = clock;
    atomic_store(&l->until, TB_NEVER);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    for (uint32_t i = 0; i < TB_LISTENING_LIMIT; i++)
        l->descriptors[i] = -1;
    if (l->epoll >= 0 && l->bell >= 0 && l->timer >= 0 &&
        epoll_set(l, EPOLL_CTL_ADD, l->bell, EPOLLIN, BELL_SLOT) == 0 &&
        epoll_set(l, EPOLL_CTL_ADD, l->timer, EPOLLIN, TIMER_SLOT) == 0)
        return TB_OK;
    int error = tb_error_errno("no descriptors for progress while the program computes");
    tb_listening_close(l);
    return error;
}

void tb_listening_close(struct tb_listening *l)
{
    const int descriptors[] = {l->epoll, l->bell, l->timer};
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

void tb_listening_wish(struct tb_listening *l, bool wished, bool host, bool seldom)
{
    l->host = host;
    l->seldom = seldom;
    tb_listening_outdate(l);
    atomic_store(&l->wished, wished);
}

/* ---- listening anew ---------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct tb_listening *l, int descriptor)
{
    uint32_t slot = 0;
    while (slot < TB_LISTENING_LIMIT && l->descriptors[slot] != descriptor)
        slot++;
    return slot;
}

/* Lets it wake the standby once. False: that is not possible. */
static bool slot_arm(struct tb_listening *l, int descriptor, uint32_t woke, uint32_t *heard)
{
    if (descriptor < 0)
        return true;
    uint32_t slot = slot_of(l, descriptor), events = EPOLLIN | EPOLLONESHOT;
    bool known = slot < TB_LISTENING_LIMIT;
    if (!known)
        slot = slot_of(l, -1);
    TB_ASSERT(slot < TB_LISTENING_LIMIT);
    *heard |= 1u << slot;
    if (known && (woke & 1u << slot) == 0)
        return true;
    if ((!known || epoll_set(l, EPOLL_CTL_MOD, descriptor, events, slot) != 0) &&
        epoll_set(l, EPOLL_CTL_ADD, descriptor, events, slot) != 0)
        return false;
    l->descriptors[slot] = descriptor;
    return true;
}

/* Whether the standby was woken by it. */
static bool slot_woke(const struct tb_listening *l, int descriptor, uint32_t woke)
{
    uint32_t slot = descriptor >= 0 ? slot_of(l, descriptor) : TB_LISTENING_LIMIT;
    return slot < TB_LISTENING_LIMIT && (woke & 1u << slot) != 0;
}

/* First whoever sends is told to ring, then the bell is listened to. */
static bool transports_arm(struct tb_listening *l, uint32_t woke, uint32_t *heard, bool *quiet)
{
    bool able = true;
    for (uint32_t i = 0; i < l->transports->open_count; i++) {
        struct tb_transport *t = l->transports->open[i].transport;
        if (l->transports->open[i].table->scope == TB_SCOPE_HOST && !l->host)
            continue;
        int descriptor = t->table->descriptor(t);
        if (slot_woke(l, descriptor, woke))
            t->table->disarm(t); /* which empties the bell */
        *quiet = t->table->arm(t) && *quiet;
        able = slot_arm(l, descriptor, woke, heard) && able;
    }
    return able;
}

static void slots_forget(struct tb_listening *l, uint32_t heard)
{
    for (uint32_t slot = 0; slot < TB_LISTENING_LIMIT; slot++)
        if (l->descriptors[slot] >= 0 && (heard & 1u << slot) == 0) {
            epoll_set(l, EPOLL_CTL_DEL, l->descriptors[slot], 0, slot);
            l->descriptors[slot] = -1;
        }
}

/* It is only ever set for earlier: who wakes too early sets it again. */
static void timer_set(struct tb_listening *l, uint64_t deadline, uint64_t now)
{
    if (deadline >= atomic_load(&l->until))
        return;
    uint64_t left = deadline - now;
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)}};
    atomic_store(&l->until, deadline);
    TB_ASSERT(timerfd_settime(l->timer, 0, &at, NULL) == 0);
}

uint64_t tb_listening_deadline(const struct tb_listening *l)
{
    uint64_t frames = tb_transport_set_deadline(l->transports), steps = tb_driving_deadline(l->driving, true);
    return frames < steps ? frames : steps;
}

bool tb_listening_renew(struct tb_listening *l)
{
    /* In this order: the standby notes what has woken it, and then that somebody has to listen anew. */
    atomic_exchange(&l->stale, false);
    uint32_t woke = atomic_exchange(&l->woke, 0), heard = 0;
    bool quiet = true;
    if (l->seldom) {
        uint64_t then = tb_clock_now(l->clock);
        slots_forget(l, 0);
        timer_set(l, then + SELDOM, then);
        return true;
    }
    bool able = transports_arm(l, woke, &heard, &quiet);
    for (uint32_t i = 0; i < l->driving->count; i++)
        if (l->driving->tables[i]->standby)
            able = slot_arm(l, tb_driving_descriptor(l->driving, i), woke, &heard) && able;
    able = slot_arm(l, *l->control, woke, &heard) && able;
    slots_forget(l, heard);
    uint64_t deadline = tb_listening_deadline(l), now = tb_clock_now(l->clock);
    quiet = quiet && deadline > now;
    if (!able || !quiet)
        deadline = deadline <= now || deadline > now + LOOK_AGAIN ? now + LOOK_AGAIN : deadline;
    timer_set(l, deadline, now);
    return quiet;
}

/* ---- the standby's side ------------------------------------------------------------------------------------------ */

/* True: there was something in it. */
static bool drain(int descriptor)
{
    uint64_t count;
    ssize_t n;
    do {
        n = read(descriptor, &count, sizeof count);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Sleeps once, and notes what has woken it. False: nothing can be listened to any more. */
static bool sleep_once(struct tb_listening *l, int ms)
{
    struct epoll_event events[SLOTS];
    int count = epoll_wait(l->epoll, events, SLOTS, ms);
    for (int i = 0; i < count; i++) {
        uint32_t slot = events[i].data.u32;
        if (slot == BELL_SLOT)
            drain(l->bell);
        else if (slot == TIMER_SLOT && drain(l->timer))
            atomic_store(&l->until, TB_NEVER);
        else if (slot < TB_LISTENING_LIMIT)
            atomic_fetch_or(&l->woke, 1u << slot);
    }
    return count >= 0 || errno == EINTR;
}

bool tb_listening_sleep(struct tb_listening *l, int ms)
{
    bool ending, wished;
    do {
        if (!sleep_once(l, ms))
            return false;
        /* It sees the wish, or whoever wishes sees what has woken it. */
        ending = atomic_load(&l->ending);
        wished = atomic_load(&l->wished);
    } while (ms < 0 && !wished && !ending);
    return !ending;
}

void tb_listening_ring(struct tb_listening *l)
{
    uint64_t one = 1;
    while (write(l->bell, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void tb_listening_end(struct tb_listening *l)
{
    atomic_store(&l->ending, true);
    tb_listening_ring(l);
}
