/* Processes of another job: what they send reaches communicators that they are in, and no others, whether it comes
 * before or after these are known here. */
#include "engine/channel.h"
#include "engine/loopback_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define JOB      7u
#define STRANGER 9u /* and whoever has a higher index */
#define NUMBER   5u /* of a collective */

struct world {
    struct loop_net net;
    struct tb_engine *engine;
    uint32_t contexts;
};

static uint32_t processes = 2; /* with which the job has begun */

static bool knows(void *context, uint32_t index)
{
    return index < 3000;
}

static bool is_stranger(void *context, uint32_t index)
{
    return index >= STRANGER;
}

static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    loop_net_init(&w->net, 1);
    w->net.table = tb_transport_sim;
    w->net.transports[0] = &w->net.table;
    const struct tb_engine_config config = {.transport = {.self = {JOB, 0}, .local_count = 1, .sim = &w->net.sim},
                                            .processes = processes,
                                            .transports = w->net.transports,
                                            .knows = knows,
                                            .is_stranger = is_stranger,
                                            .context = &w->net,
                                            .control = -1};
    assert_int_equal(tb_engine_open(&config, &w->engine), TB_OK);
}

static void unmake(struct world *w)
{
    tb_engine_close(w->engine);
    tb_sim_destroy(&w->net.sim);
}

/* One that no channel has had. */
static uint64_t context(struct world *w)
{
    return tb_context_make(tb_context_tag(JOB), TB_CONTEXT_FIRST + w->contexts++, TB_PLANE_POINT);
}

static struct tb_channel *open_with(struct world *w, uint64_t context, uint32_t index)
{
    struct tb_channel *channel;
    const uint32_t procs[] = {0, index};
    const struct tb_channel_config config = {.context = context, .size = 2, .procs = procs};
    assert_int_equal(tb_channel_open(w->engine, &config, &channel), TB_OK);
    tb_channel_screen(channel);
    return channel;
}

/* What comes of the frame of a process. */
static int give(struct world *w, uint32_t index, const struct tb_message *m)
{
    const struct tb_upcalls *up = tb_sim_upcalls(&w->net.sim, 0);
    assert_int_equal(tb_peers_grow(&w->engine->peers, index), TB_OK);
    struct tb_peer *p = tb_peer_of(w->engine, index);
    struct tb_endpoint from = {.proc = {JOB, index}, .user = p};
    up->frame(up->context, &from, NULL, m, "", 0);
    return p->error;
}

static int send_as(struct world *w, uint32_t index, uint64_t context, uint32_t rank)
{
    return give(w, index, &(struct tb_message){.kind = TB_KIND_EAGER, .context = context, .source_rank = rank});
}

static int give_up_as(struct world *w, uint32_t index, uint64_t context, uint32_t rank)
{
    return give(w, index,
                &(struct tb_message){.kind = TB_KIND_FAILED,
                                     .context = tb_context_plane(context, TB_PLANE_COLLECTIVE),
                                     .match = tb_match_collective(NUMBER, TB_OPERATION_BARRIER, 0),
                                     .source_rank = rank});
}

static bool has_arrived(const struct tb_channel *channel)
{
    return !tb_list_empty(&channel->point->arrivals);
}

static bool was_given_up(const struct tb_channel *channel)
{
    return tb_failure_find(channel->collective, tb_match_collective(NUMBER, TB_OPERATION_BARRIER, 0)) != NULL;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void where_they_are_members(void **state)
{
    struct world w;
    make(&w);
    struct tb_channel *with = open_with(&w, context(&w), STRANGER);
    assert_int_equal(send_as(&w, STRANGER, with->point->id, 1), TB_OK);
    assert_true(has_arrived(with));
    assert_int_equal(give_up_as(&w, STRANGER, with->point->id, 1), TB_OK);
    assert_true(was_given_up(with));
    tb_channel_close(with);
    unmake(&w);
}

static void as_somebody_else(void **state)
{
    static const struct {
        uint32_t index, rank;
    } bad[] = {{STRANGER, 0}, {STRANGER, 2}, {STRANGER, UINT32_MAX}, {STRANGER + 1, 1}}; /* that of yet another job */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct world w;
        make(&w);
        struct tb_channel *with = open_with(&w, context(&w), STRANGER);
        assert_int_equal(send_as(&w, bad[i].index, with->point->id, bad[i].rank), TB_ERR_PROTOCOL);
        assert_false(has_arrived(with));
        tb_channel_close(with);
        unmake(&w);
    }
}

static void where_they_are_not(void **state)
{
    struct world w;
    make(&w);
    struct tb_channel *own = open_with(&w, context(&w), 1);
    assert_int_equal(send_as(&w, STRANGER, own->point->id, 1), TB_ERR_PROTOCOL);
    assert_int_equal(give_up_as(&w, STRANGER + 1, own->point->id, 1), TB_ERR_PROTOCOL);
    assert_true(!has_arrived(own) && !was_given_up(own));
    assert_int_equal(send_as(&w, 1, own->point->id, 1), TB_OK); /* who is, is heard */
    assert_true(has_arrived(own));
    tb_channel_close(own);
    unmake(&w);
}

/* MPI_COMM_WORLD and the like, also if they are not known yet. */
static void where_no_stranger_can_be(void **state)
{
    struct world w;
    make(&w);
    assert_int_equal(send_as(&w, STRANGER, tb_context_make(0, TB_CONTEXT_WORLD, TB_PLANE_POINT), 1), TB_ERR_PROTOCOL);
    assert_int_equal(send_as(&w, STRANGER + 1, tb_context_make(TB_CONTEXT_TAG_LEAST - 1, 3, TB_PLANE_POINT), 1),
                     TB_ERR_PROTOCOL);
    unmake(&w);
}

static void before_it_is_known(void **state)
{
    struct world w;
    make(&w);
    for (uint32_t other = 1; other <= STRANGER; other += STRANGER - 1) {
        uint64_t early = context(&w);
        assert_int_equal(send_as(&w, STRANGER, early, 1), TB_OK);
        assert_int_equal(give_up_as(&w, STRANGER, early, 1), TB_OK);
        struct tb_channel *channel = open_with(&w, early, other);
        assert_int_equal(has_arrived(channel), other == STRANGER);
        assert_int_equal(was_given_up(channel), other == STRANGER);
        tb_channel_close(channel);
    }
    unmake(&w);
}

/* As many contexts as one may name, and then it is given up; of all that have done so nothing is left. */
static void contexts_without_end(void **state)
{
    struct world w;
    make(&w);
    for (uint32_t i = 0; i < TB_STRANGER_CONTEXTS; i++)
        assert_int_equal(send_as(&w, STRANGER, context(&w), 1), TB_OK);
    uint32_t used = w.engine->contexts.used;
    uint64_t both = context(&w);
    assert_int_equal(send_as(&w, STRANGER + 1, both, 1), TB_OK); /* another one still may */
    assert_int_equal(send_as(&w, 1, context(&w), 1), TB_OK);     /* and so may ours */
    assert_int_equal(send_as(&w, STRANGER, context(&w), 1), TB_ERR_PROTOCOL);
    tb_engine_progress(w.engine);
    assert_int_equal(w.engine->contexts.used, used + 2 - TB_STRANGER_CONTEXTS);
    assert_true(w.engine->peers.unknown == 1 && w.engine->peers.early == 1);
    struct tb_channel *with = open_with(&w, both, STRANGER + 1);
    assert_true(has_arrived(with));
    assert_int_equal(w.engine->peers.unknown + w.engine->peers.early, 0);
    tb_channel_close(with);
    unmake(&w);
}

/* Nor are there more messages in one of them, or collectives that are given up. */
static void messages_without_end(void **state)
{
    struct world w;
    for (uint32_t failures = 0; failures < 2; failures++) {
        make(&w);
        uint64_t early = context(&w);
        int error = TB_OK;
        uint32_t count = 0, most = failures ? TB_STRANGER_GIVEN_UP : TB_STRANGER_EARLY;
        for (; error == TB_OK && count <= most; count++)
            error = failures ? give_up_as(&w, STRANGER, early, 1) : send_as(&w, STRANGER, early, 1);
        assert_int_equal(error, TB_ERR_PROTOCOL);
        assert_int_equal(count, most + 1);
        tb_engine_progress(w.engine);
        assert_null(tb_contexts_find(&w.engine->contexts, early));
        assert_int_equal(w.engine->peers.early, 0);
        unmake(&w);
    }
}

/* Many strangers together name no more than is left for our own. */
static void contexts_of_all_strangers(void **state)
{
    struct world w;
    make(&w);
    uint32_t last = STRANGER;
    for (uint32_t i = 0; i < TB_STRANGERS_CONTEXTS; i++) {
        last = STRANGER + i / TB_STRANGER_CONTEXTS;
        assert_int_equal(send_as(&w, last, context(&w), 1), TB_OK);
    }
    assert_int_equal(send_as(&w, last + 1, context(&w), 1), TB_ERR_PROTOCOL);
    assert_int_equal(send_as(&w, 1, context(&w), 1), TB_OK);
    tb_engine_lost_all(w.engine, (struct tb_proc){JOB, STRANGER}, last + 1 - STRANGER, TB_ERR_PEER);
    tb_engine_progress(w.engine);
    assert_int_equal(w.engine->peers.unknown + w.engine->peers.early, 0);
    assert_int_equal(send_as(&w, last + 2, context(&w), 1), TB_OK); /* a third job */
    unmake(&w);
}

/* Where ours have sent something as well, that stays. */
static void contexts_of_both(void **state)
{
    struct world w;
    make(&w);
    uint64_t early = context(&w);
    assert_int_equal(send_as(&w, STRANGER, early, 1), TB_OK);
    assert_int_equal(send_as(&w, 1, early, 1), TB_OK);
    tb_engine_lost(w.engine, (struct tb_proc){JOB, STRANGER}, TB_ERR_PEER);
    tb_engine_progress(w.engine);
    struct tb_channel *own = open_with(&w, early, 1);
    assert_true(has_arrived(own));
    assert_ptr_equal(own->point->arrivals.next, own->point->arrivals.prev);
    tb_channel_close(own);
    unmake(&w);
}

/* What one may send at first does not depend on how many processes its job or ours has. */
static void jobs_of_unlike_size(void **state)
{
    uint64_t granted[2];
    for (int large = 0; large < 2; large++) {
        struct world w;
        processes = large ? 1000 : 2;
        make(&w);
        struct tb_channel *with = open_with(&w, context(&w), 2000);
        const struct tb_peer *p = tb_channel_peer(with, 1), *own = tb_peer_of(w.engine, 1);
        assert_true(p->stranger && p->granted == p->allowed);
        assert_true(own == NULL || own->granted == w.engine->peers.grant);
        granted[large] = p->granted;
        tb_channel_close(with);
        unmake(&w);
    }
    processes = 2;
    assert_int_equal(granted[0], granted[1]);
}

/* What comes of a message to rank 1 of a channel. */
static int send_in(struct tb_channel *channel, size_t bytes)
{
    static const char data[100000];
    const struct tb_buffer buffer = {.base = (void *)data, .count = bytes, .type = &tb_type_byte};
    struct tb_request r = {.complete = NULL};
    if (tb_send_now(channel, &buffer, 1, 5, TB_MODE_STANDARD) == TB_OK)
        return TB_OK;
    tb_send_post(channel, &r, &buffer, 1, 5, TB_MODE_STANDARD);
    for (int i = 0; i < 100 && !tb_request_done(&r); i++)
        tb_engine_progress(channel->engine);
    assert_true(tb_request_done(&r));
    tb_request_wait(&r);
    return r.status.error;
}

/* One that reaches it would end the connection of both jobs; whether it was reached before does not matter. */
static void messages_that_are_not_for_them(void **state)
{
    struct world w;
    make(&w);
    struct tb_channel *all = open_with(&w, tb_context_make(0xffffff, 7, TB_PLANE_POINT), STRANGER);
    struct tb_peer *p = tb_channel_peer(all, 1);
    for (int reached = 0; reached < 2; reached++) {
        if (reached) {
            p->endpoint = tb_sim_endpoint(&w.net.sim, 0, STRANGER);
            p->endpoint->user = p;
            tb_peer_settle(p);
        }
        for (size_t bytes = 0; bytes < 100000; bytes += 49999) {
            assert_int_equal(send_in(all, bytes), TB_ERR_ARGUMENT);
            assert_non_null(strstr(tb_error_story(), "another job"));
        }
        assert_int_equal(w.engine->counters.eager + w.engine->counters.rendezvous, 0);
        assert_true((p->endpoint != NULL) == reached && p->error == TB_OK && w.engine->sends == 0);
    }
    tb_channel_close(all);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_they_are_members),
        cmocka_unit_test(as_somebody_else),
        cmocka_unit_test(where_they_are_not),
        cmocka_unit_test(where_no_stranger_can_be),
        cmocka_unit_test(before_it_is_known),
        cmocka_unit_test(contexts_without_end),
        cmocka_unit_test(messages_without_end),
        cmocka_unit_test(contexts_of_all_strangers),
        cmocka_unit_test(contexts_of_both),
        cmocka_unit_test(jobs_of_unlike_size),
        cmocka_unit_test(messages_that_are_not_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
