/* Several hosts of engines in one process, for tests of composite steps: within each of them real shared memory,
 * between them the simulated network without delay. RANKS, the most that there are in all, is defined by whoever
 * includes it. */
#ifndef TB_ENGINE_HOSTS_TEST_H
#define TB_ENGINE_HOSTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/common_drive.h"
#include "engine/engine_state.h"
#include "transport/sim/sim.h"

#define WORLD tb_context_make(0, TB_CONTEXT_WORLD, TB_PLANE_POINT)

struct hosts {
    uint32_t ranks, count;
    uint32_t of[RANKS]; /* the host of each rank */
    struct place {
        uint32_t ranks;
        uint32_t procs[RANKS];
        int bells[RANKS];
        void *segment;
        size_t bytes;
        uint32_t boards; /* that are free at first */
    } place[RANKS];
    struct self {
        const struct hosts *all;
        uint32_t rank;
    } self[RANKS];
    struct tb_sim sim;
    struct tb_transport_table far;
    const struct tb_transport_table *transports[3];
    struct tb_engine *engines[RANKS];
    struct tb_channel *channels[RANKS]; /* of all ranks, agreed on */
};

/* What a test wants of engines and of the network besides; NULL: nothing. */
static void (*hosts_adapt)(struct hosts *h, struct tb_engine_config *config);

static bool is_here(void *context, struct tb_proc proc)
{
    const struct self *self = context;
    return self->all->of[proc.index] == self->all->of[self->rank];
}

static struct tb_channel_config config_of(uint64_t context, uint32_t size, uint32_t rank, const uint32_t *procs)
{
    return (struct tb_channel_config){.context = context, .size = size, .rank = rank, .procs = procs, .common = true};
}

/* What everyone's words have in common is told to everyone. */
static void channels_agree(struct tb_channel *const *channels, uint32_t count)
{
    uint64_t word = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        word &= tb_channel_provides(channels[i]);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tb_channel_agree(channels[i], word), TB_OK);
}

static void place_open(struct place *p)
{
    p->bytes = tb_shm_segment_bytes(p->ranks);
    p->segment = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(p->segment, MAP_FAILED);
    for (uint32_t i = 0; i < p->ranks; i++)
        p->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void rank_open(struct hosts *h, uint32_t rank, uint32_t index)
{
    struct place *p = &h->place[h->of[rank]];
    struct tb_transport *far;
    h->self[rank] = (struct self){h, rank};
    struct tb_engine_config config = {.transport = {.self = {7, rank},
                                                    .segment = p->segment,
                                                    .segment_bytes = p->bytes,
                                                    .local_index = index,
                                                    .local_count = p->ranks,
                                                    .local_procs = p->procs,
                                                    .doorbells = p->bells,
                                                    .sim = &h->sim},
                                      .processes = h->ranks,
                                      .transports = h->transports,
                                      .is_local = is_here,
                                      .context = &h->self[rank],
                                      .control = -1};
    struct tb_channel_config channel = config_of(WORLD, h->ranks, rank, NULL);
    if (hosts_adapt != NULL)
        hosts_adapt(h, &config);
    assert_int_equal(tb_engine_open(&config, &h->engines[rank]), TB_OK);
    assert_int_equal(tb_engine_transport(h->engines[rank], &h->far, &far), TB_OK);
    tb_engine_claim(h->engines[rank], WORLD, true);
    assert_int_equal(tb_channel_open(h->engines[rank], &channel, &h->channels[rank]), TB_OK);
}

/* How many boards of a host are free, and how many of them have been taken since the beginning. */
static uint32_t boards_free(const struct hosts *h, uint32_t host)
{
    struct tb_transport *memory = h->engines[h->place[host].procs[0]]->local;
    uint32_t free = 0;
    for (uint32_t i = 0; i < 600 && memory != NULL; i++) {
        const struct tb_board_key key = {tb_context_make(0, 200000 + i % 300, TB_PLANE_POINT), 0};
        if (i < 300) {
            tb_board_claim(memory, &key, false);
            free += tb_board_claimed(memory, &key);
        } else {
            tb_board_unclaim(memory, &key);
        }
    }
    return free;
}

static __attribute__((unused)) uint32_t boards_taken(const struct hosts *h, uint32_t host)
{
    return h->place[host].boards - boards_free(h, host);
}

/* Ranks are on the hosts that `of` says; hosts are numbered from 0 on. */
static void hosts_open(struct hosts *h, const uint32_t *of, uint32_t ranks)
{
    uint32_t index[RANKS];
    assert_int_equal(tb_engine_load_params(), TB_OK);
    memset(h, 0, sizeof *h);
    h->ranks = ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct place *p = &h->place[of[rank]];
        h->of[rank] = of[rank];
        h->count = of[rank] + 1 > h->count ? of[rank] + 1 : h->count;
        index[rank] = p->ranks;
        p->procs[p->ranks++] = rank;
    }
    for (uint32_t i = 0; i < h->count; i++)
        place_open(&h->place[i]);
    tb_sim_init(&h->sim, 1);
    h->sim.max_payload = 4096;
    h->sim.eager_limit = 1024;
    h->far = tb_transport_sim;
    h->far.scope = TB_SCOPE_DIRECT;
    h->far.capabilities = h->sim.capabilities;
    h->transports[0] = &tb_transport_shm;
    h->transports[1] = &h->far;
    for (uint32_t rank = 0; rank < ranks; rank++)
        rank_open(h, rank, index[rank]);
    channels_agree(h->channels, ranks);
    for (uint32_t i = 0; i < h->count; i++)
        h->place[i].boards = boards_free(h, i);
}

static __attribute__((unused)) void hosts_settle(struct hosts *h)
{
    for (int quiet = 0; quiet < 70;) { /* whether another has passed by is not looked at each time */
        int n = 0;
        for (uint32_t i = 0; i < h->ranks; i++)
            n += tb_engine_progress(h->engines[i]);
        quiet = n == 0 ? quiet + 1 : 0;
    }
}

static void hosts_close(struct hosts *h)
{
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_channel_close(h->channels[i]);
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_engine_close(h->engines[i]);
    for (uint32_t i = 0; i < h->count; i++) {
        for (uint32_t k = 0; k < h->place[i].ranks; k++)
            close(h->place[i].bells[k]);
        munmap(h->place[i].segment, h->place[i].bytes);
    }
    tb_sim_destroy(&h->sim);
}

/* As many of a host are claimed as there are. */
static __attribute__((unused)) void boards_exhaust(struct hosts *h, uint32_t rank)
{
    for (uint32_t i = 0; i < 300; i++)
        tb_engine_claim(h->engines[rank], tb_context_make(rank, 100000 + i, TB_PLANE_POINT), false);
}

static __attribute__((unused)) void boards_return(struct hosts *h, uint32_t rank)
{
    for (uint32_t i = 0; i < 300; i++)
        tb_engine_unclaim(h->engines[rank], tb_context_make(rank, 100000 + i, TB_PLANE_POINT));
}

#endif
