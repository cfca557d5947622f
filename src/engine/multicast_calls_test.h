/* Broadcasts by multicast between engines of several hosts in one process: messages take the simulated network, and
 * datagrams a switch that is made up, on which multicast can be cut. RANKS is defined by whoever includes it. */
#ifndef TB_ENGINE_MULTICAST_CALLS_TEST_H
#define TB_ENGINE_MULTICAST_CALLS_TEST_H

#include <stdlib.h>

#include "engine/hosts_test.h"
#include "engine/multicast_switch_test.h"

#define PATIENCE UINT64_C(60000000000)

/* ---- what is known of it ----------------------------------------------------------------------------------------- */

static bool works[RANKS]; /* as each process has been told */
static uint16_t address[RANKS];
static uint32_t unheard, others; /* how often trouble was told */

static inline bool near(void *context, struct tb_proc proc)
{
    return true;
}

static inline bool group_of(void *context, struct tb_engine_group *group)
{
    const struct self *self = context;
    memset(group, 0, sizeof *group);
    group->works = works[self->rank];
    if (!group->works)
        return true;
    group->config.group.in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = address[self->rank]};
    group->piece = PIECE;
    return true;
}

static inline void trouble(void *context, enum tb_engine_trouble what)
{
    unheard += what == TB_TROUBLE_UNHEARD;
    others += what == TB_TROUBLE_OTHERS;
}

static inline void adapt(struct hosts *h, struct tb_engine_config *config)
{
    h->sim.max_payload = 64u << 10;
    config->in_cluster = near;
    config->multicast = group_of;
    config->multicast_trouble = trouble;
}

/* Everyone is told. */
static inline void verdict(struct hosts *h, bool good, uint16_t where)
{
    for (uint32_t i = 0; i < h->ranks; i++) {
        works[i] = good;
        address[i] = where;
        tb_engine_regroup(h->engines[i]);
    }
}

static inline void world_open(struct hosts *h, bool good)
{
    uint32_t of[RANKS]; /* each rank has a host of its own */
    cut = forbidden = full = false;
    multicasts = unheard = others = 0;
    for (uint32_t i = 0; i < RANKS; i++) {
        of[i] = i;
        works[i] = good;
        address[i] = 1;
    }
    hosts_adapt = adapt;
    hosts_open(h, of, RANKS);
}

/* What is sent before they do has to be sent again. */
static inline void all_listen(struct hosts *h)
{
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_engine_listen(h->engines[i]);
}

/* ---- broadcasts -------------------------------------------------------------------------------------------------- */

struct call {
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
    unsigned char *bytes;
};

static inline unsigned char given(uint32_t root, uint64_t i)
{
    return (unsigned char)(root * 31 + i * 7 + (i >> 9));
}

/* Of `pieces` pieces, each an item of its own. */
static inline void call_make(struct call *c, const struct hosts *h, uint32_t rank, uint32_t root, uint64_t piece,
                             uint32_t pieces)
{
    static const struct tb_contract contract = {TB_COMPOSITE_BCAST, TB_DRIVER_MULTICAST, 1, 1};
    const struct tb_slice data = {TB_SYMBOL_OUT, 0, 1, pieces}, nothing = {.symbol = TB_SYMBOL_OUT};
    uint32_t ranks[RANKS];
    uint64_t bytes = piece * pieces;
    struct tb_builder b;
    for (uint32_t i = 0; i < h->ranks; i++)
        ranks[i] = i;
    tb_builder_open(&b, pieces);
    tb_builder_composite(&b, &contract, root, rank == root ? data : nothing, rank == root ? nothing : data);
    tb_builder_place(&b, 0);
    tb_builder_members(&b, ranks, h->ranks);
    if (pieces > 1)
        tb_builder_cut(&b, 1);
    tb_builder_places(&b, 1);
    *c = (struct call){.bytes = malloc(bytes + 1)};
    assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
    assert_non_null(c->bytes);
    for (uint64_t i = 0; i < bytes; i++)
        c->bytes[i] = rank == root ? given(root, i) : 0;
    c->binding =
        (struct tb_binding){.operation = TB_OPERATION_BCAST, .elements = bytes, .element_bytes = 1, .piece = piece};
    c->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){c->bytes, bytes, tb_type_match_size(TB_CLASS_INTEGER, 1)};
}

static inline void call_post(struct call *c, struct hosts *h, uint32_t rank)
{
    tb_program_post(h->channels[rank], &c->request, c->program, &c->binding);
}

static inline void progress(struct hosts *h)
{
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_engine_progress(h->engines[i]);
}

static inline void calls_await(struct hosts *h, struct call *calls, uint32_t count)
{
    uint64_t end = tb_clock_now_real() + PATIENCE;
    for (uint32_t i = 0; i < count;) {
        if (tb_request_done(&calls[i].request)) {
            i++;
            continue;
        }
        progress(h);
        if (tb_clock_now_real() > end)
            fail_msg("call %u does not end", i);
    }
}

static inline void call_free(const struct call *c)
{
    tb_program_free(c->program);
    free(c->bytes);
}

static inline void call_end(const struct call *c, uint32_t root)
{
    assert_int_equal(c->request.status.error, TB_OK);
    for (uint64_t i = 0; i < c->binding.elements; i++)
        if (c->bytes[i] != given(root, i))
            fail_msg("root %u: byte %llu is wrong", root, (unsigned long long)i);
    call_free(c);
}

static inline void broadcast(struct hosts *h, uint32_t root, uint64_t piece, uint32_t pieces)
{
    struct call calls[RANKS];
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        call_make(&calls[rank], h, rank, root, piece, pieces);
        call_post(&calls[rank], h, rank);
    }
    calls_await(h, calls, h->ranks);
    for (uint32_t rank = 0; rank < h->ranks; rank++)
        call_end(&calls[rank], root);
}

/* Nobody keeps anything that is not needed, once it is asked for. */
static inline void world_close(struct hosts *h)
{
    uint64_t end = tb_clock_now_real() + PATIENCE;
    for (bool all = false; !all;) {
        all = true;
        progress(h);
        for (uint32_t i = 0; i < h->ranks; i++)
            all = (h->engines[i]->multicast == NULL || tb_multicast_port_flush(h->engines[i]->multicast)) && all;
        assert_true(tb_clock_now_real() < end);
    }
    hosts_close(h);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_null(members[i]);
    hosts_adapt = NULL;
}

static inline uint64_t by_connections(const struct hosts *h)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < h->ranks; i++) {
        struct tb_counters c = {.eager = 0};
        tb_engine_count(h->engines[i], &c);
        bytes += c.multicast_control;
    }
    return bytes;
}

#endif
