/* A host of engines in one process over real shared memory, for tests of composite steps. RANKS, the most that a host
 * may have, is defined by whoever includes it. */
#ifndef TB_ENGINE_HOST_TEST_H
#define TB_ENGINE_HOST_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <sys/eventfd.h>

#include "engine/common_drive.h"
#include "engine/engine_state.h"

/* A host of ranks, each with a channel on the first board. */
struct host {
    uint32_t ranks;
    size_t bytes;
    void *segment;
    uint32_t procs[RANKS];
    int bells[RANKS];
    struct tb_engine *engines[RANKS];
    struct tb_channel *channels[RANKS];
};

#define FIRST tb_context_make(0, 1, TB_PLANE_POINT)

static bool is_local(void *context, struct tb_proc proc)
{
    return true;
}

static void channel_make(struct host *h, uint32_t rank, uint64_t context, struct tb_channel **channel)
{
    struct tb_channel_config c = {.context = context, .size = h->ranks, .rank = rank, .common = true};
    assert_int_equal(tb_channel_open(h->engines[rank], &c, channel), TB_OK);
}

static void host_open(struct host *h, uint32_t ranks)
{
    assert_int_equal(tb_engine_load_params(), TB_OK);
    *h = (struct host){.ranks = ranks, .bytes = tb_shm_segment_bytes(ranks)};
    h->segment = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(h->segment, MAP_FAILED);
    for (uint32_t i = 0; i < ranks; i++) {
        h->procs[i] = i;
        h->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        struct tb_engine_config config = {.transport = {.self = {7, i},
                                                        .segment = h->segment,
                                                        .segment_bytes = h->bytes,
                                                        .local_index = i,
                                                        .local_count = ranks,
                                                        .local_procs = h->procs,
                                                        .doorbells = h->bells},
                                          .processes = ranks,
                                          .is_local = is_local,
                                          .control = -1};
        assert_int_equal(tb_engine_open(&config, &h->engines[i]), TB_OK);
        tb_engine_claim(h->engines[i], FIRST, true);
        channel_make(h, i, FIRST, &h->channels[i]);
        assert_true(tb_channel_meets(h->channels[i]));
    }
}

/* As if so many places had been taken and finished; none of those that are left out may have renewed counters. */
static __attribute__((unused)) void board_age(const struct host *h, uint32_t rank, uint64_t number)
{
    struct tb_common *c = h->channels[rank]->drivers[TB_DRIVER_COMMON].state;
    c->next = c->board->least = number;
    tb_board_done(c->board, number);
}

/* All columns are passed. */
static __attribute__((unused)) void columns_pass(struct host *h)
{
    for (uint32_t rank = 0; rank < h->ranks; rank++)
        for (uint32_t i = 0; i < TB_BOARD_COLUMNS; i += TB_PROGRAM_PLACES_LIMIT)
            tb_driven_skip(h->channels[rank]->drivers, &(struct tb_binding){.operation = 0}, TB_PROGRAM_PLACES_LIMIT);
}

static void host_close(struct host *h)
{
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_channel_close(h->channels[i]);
    for (uint32_t i = 0; i < h->ranks; i++) {
        tb_engine_close(h->engines[i]);
        close(h->bells[i]);
    }
    munmap(h->segment, h->bytes);
}

static __attribute__((unused)) void host_settle(struct host *h)
{
    for (int quiet = 0; quiet < 70;) { /* whether another has passed by is not looked at each time */
        int n = 0;
        for (uint32_t i = 0; i < h->ranks; i++)
            n += tb_engine_progress(h->engines[i]);
        quiet = n == 0 ? quiet + 1 : 0;
    }
}

#endif
