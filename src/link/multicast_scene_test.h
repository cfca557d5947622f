/* A scene: a world and a play of a few steps that a test writes down one after the other, and what it looks at in them.
 */
#ifndef TB_LINK_MULTICAST_SCENE_TEST_H
#define TB_LINK_MULTICAST_SCENE_TEST_H

#include "link/multicast_play_test.h"
#include "link/multicast_state.h"

static struct world w;
static struct play p;
static struct play_step steps[256];
static uint32_t steps_count;

static inline struct play_step *step(enum play_verb verb, uint64_t context, uint64_t number, uint64_t length)
{
    struct play_step *s = &steps[steps_count++];
    *s = (struct play_step){.verb = verb, .context = context, .number = number, .length = length, .late = UINT32_MAX};
    return s;
}

static inline void begin(uint32_t hosts, uint64_t seed)
{
    steps_count = 0;
    world_open(&w, hosts, seed);
    step(PLAY_JOIN, 0, 0, 0);
}

static inline void start(uint32_t contexts)
{
    world_start(&w, contexts);
    play_open(&p, &w, steps, steps_count);
    p.scattered = w.count > 16;
}

static inline void end(void)
{
    world_close(&w); /* objects know operations of the play */
    play_close(&p);
}

static inline struct tb_multicast_counters count(uint32_t host)
{
    struct tb_multicast_counters c;
    tb_multicast_count(w.hosts[host].m, &c);
    return c;
}

static inline void run_until(uint64_t time)
{
    while (w.heap_count > 0 && w.heap[0].at <= time)
        world_step(&w);
    w.now = time;
}

static inline void lose(uint32_t process)
{
    w.hosts[process].computes_until = TB_NEVER - 1;
    w.hosts[process].standby = false;
    for (uint32_t i = 0; i < w.count; i++)
        if (i != process) {
            tb_multicast_lose(w.hosts[i].m, process);
            world_wake(&w.hosts[i], w.now);
        }
}

static int told_error;
static char told_story[256];

static inline void tell_error(struct tb_multicast_operation *o, int error)
{
    told_error = error;
    snprintf(told_story, sizeof told_story, "%s", tb_error_story());
}

static inline struct tb_multicast_operation operation_of(uint64_t number, uint64_t length, uint32_t self, uint32_t root,
                                                         char *buffer)
{
    return (struct tb_multicast_operation){.number = number,
                                           .length = length,
                                           .members = {.count = w.count, .self = self},
                                           .root = root,
                                           .payload.base = buffer,
                                           .done = tell_error};
}

#endif
