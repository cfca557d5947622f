/* Windows of a few engines on a simulated network, for their tests. */
#ifndef TB_ENGINE_WINDOW_TEST_H
#define TB_ENGINE_WINDOW_TEST_H

#include "engine/message_test.h"

#define RANKS 3u
#define BYTES 400000u

#define INT64_TYPE 0x258u

static struct loop_net net;
static struct tb_window *windows[RANKS];
static char *memory[RANKS];
static bool dynamic;

struct variant {
    bool remote, tight; /* other hosts; there is no room every third time */
};
static const struct variant variants[] = {{false, false}, {false, true}, {true, false}, {true, true}};
#define VARIANTS (sizeof variants / sizeof *variants)

static inline void begin(struct variant v)
{
    loop_net_init(&net, RANKS);
    net.remote = v.remote;
    net.sim.again = v.tight ? 30 * LOOP_PERCENT : 0;
    loop_net_open(&net, false);
    for (uint32_t i = 0; i < RANKS; i++) {
        memory[i] = calloc(1, BYTES);
        const struct tb_window_config config = {.channel = net.channels[i],
                                                .base = dynamic ? NULL : memory[i],
                                                .size = dynamic ? 0 : BYTES,
                                                .dynamic = dynamic};
        assert_int_equal(tb_window_open(net.engines[i], &config, &windows[i]), TB_OK);
    }
}

static inline void end(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        tb_window_close(windows[i]);
        free(memory[i]);
    }
    loop_net_close(&net);
}

static inline struct tb_access_target target_of(uint32_t rank, uint64_t at, uint64_t count, const struct tb_type *type)
{
    return (struct tb_access_target){rank, {(void *)(uintptr_t)at, count, type}};
}

static inline const struct tb_type *int64_type(void)
{
    return tb_type_predefined(INT64_TYPE);
}

static inline int64_t *number_at(uint32_t rank, uint64_t at)
{
    return (int64_t *)(void *)(memory[rank] + at);
}

#endif
