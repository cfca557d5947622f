/* For tests of the simulator: messages by hand, on the ways of a network. */
#ifndef TB_PLANNER_HAND_TEST_H
#define TB_PLANNER_HAND_TEST_H

#include "planner/network_test.h"
#include "planner/simulator.h"

#define US (1000000ull)
#define MS (1000 * US)

static struct tb_simulator *simulator;

static inline int simulator_setup(void **state)
{
    return tb_simulator_open(&simulator);
}

static inline int simulator_teardown(void **state)
{
    tb_simulator_close(simulator);
    return 0;
}

/* Messages of one block each, all at once. */
struct hand {
    struct tb_builder builders[16];
    struct tb_program *programs[16];
    struct tb_simulation run;
    uint64_t ends[16];
    uint64_t wire_bytes[256];
};

static inline void hand_open(struct hand *h, struct network *n)
{
    *h = (struct hand){0};
    assert_true(n->size <= 16);
    for (uint32_t i = 0; i < n->size; i++)
        tb_builder_open(&h->builders[i], 1);
    h->run = (struct tb_simulation){.programs = h->programs,
                                    .ways = &n->ways,
                                    .blocks = true,
                                    .limit = 100000,
                                    .ends = h->ends,
                                    .wire_bytes = h->wire_bytes,
                                    .wire_room = 256};
}

static inline void hand_message(struct hand *h, uint32_t from, uint32_t to)
{
    struct tb_slice slice = {.symbol = TB_SYMBOL_OUT, .stride = 0, .count = 1};
    tb_builder_receive(&h->builders[to], from, 0, slice);
    tb_builder_send(&h->builders[from], to, 0, slice);
}

static inline void hand_run(struct hand *h, struct network *n, uint64_t bytes)
{
    for (uint32_t i = 0; i < n->size; i++)
        assert_int_equal(tb_builder_finish(&h->builders[i], &h->programs[i]), TB_OK);
    h->run.bytes = bytes;
    assert_int_equal(tb_simulate(simulator, &h->run), TB_OK);
    for (uint32_t i = 0; i < n->size; i++)
        tb_program_free(h->programs[i]);
}

/* One message alone. */
static inline uint64_t alone(struct network *n, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct hand h;
    hand_open(&h, n);
    hand_message(&h, from, to);
    hand_run(&h, n, bytes);
    return h.ends[to];
}

static inline uint64_t wire_time(const struct network *n, uint32_t wire, uint64_t bytes)
{
    return tb_wire_time(&n->table, n->ways.wires[wire].wire, bytes);
}

static inline void assert_between(uint64_t value, uint64_t low, uint64_t high)
{
    if (value < low || value > high)
        fail_msg("%.3f us is not between %.3f and %.3f", (double)value / US, (double)low / US, (double)high / US);
}

#define FAST "ethernet: {bandwidth: 1000, latency: 0.1}"

#define NEAR_AND_FAR                                                                                                   \
    "clusters:\n- {name: a, hosts: [a1, a2, a3], " FAST "}\n- {name: b, hosts: [b1, b2, b3], " FAST "}\n"              \
    "- {name: c, hosts: [c1, c2, c3], " FAST "}\nlinks:\n"

#define PIECES 8 /* as many as a long message has parts */

#endif
