/* One message to several ranks, on the simulated network, with a multicast group that is made of memory: who gets it
 * together, and what becomes of it when one of them comes late, hears nothing, has no group, or dies. */
#include "engine/message_test.h"
#include "engine/standby.h"

#define ENGINES  4u
#define LENGTH   200000u
#define PIECE    1400u
#define QUEUE    4096u
#define TAG      5u
#define PATIENCE UINT64_C(20000000000)

/* ---- the group --------------------------------------------------------------------------------------------------- */

struct sound {
    struct tb_datagram head;
    uint32_t from;
    size_t length;
    uint8_t payload[PIECE + 64];
};

static struct ear {
    struct tb_mcast_config config;
    bool open, deaf;
    uint32_t first, last; /* of the ring */
    struct sound sounds[QUEUE];
} ears[ENGINES];

static union tb_mcast_address address_of(uint32_t index)
{
    union tb_mcast_address address;
    memset(&address, 0, sizeof address);
    address.in4.sin_family = AF_INET;
    address.in4.sin_port = (in_port_t)(index + 1);
    return address;
}

/* What stands in front of the group's functions has their types. */
__typeof__(tb_mcast_group_open) __wrap_tb_mcast_group_open;
__typeof__(tb_mcast_group_close) __wrap_tb_mcast_group_close;
__typeof__(tb_mcast_group_send) __wrap_tb_mcast_group_send;
__typeof__(tb_mcast_group_poll) __wrap_tb_mcast_group_poll;
__typeof__(tb_mcast_group_descriptor) __wrap_tb_mcast_group_descriptor;
__typeof__(tb_mcast_group_deadline) __wrap_tb_mcast_group_deadline;
__typeof__(tb_mcast_group_counters) __wrap_tb_mcast_group_counters;
__typeof__(tb_mcast_group_own) __wrap_tb_mcast_group_own;
__typeof__(tb_mcast_group_overflowed) __wrap_tb_mcast_group_overflowed;

int __wrap_tb_mcast_group_open(struct tb_mcast_group **group, const struct tb_mcast_config *config)
{
    struct ear *ear = &ears[config->self];
    ear->config = *config;
    ear->open = true;
    *group = (struct tb_mcast_group *)ear;
    return TB_OK;
}

void __wrap_tb_mcast_group_close(struct tb_mcast_group *g)
{
    ((struct ear *)g)->open = false;
}

int __wrap_tb_mcast_group_send(struct tb_mcast_group *g, const union tb_mcast_address *to,
                               const struct tb_mcast_datagram *datagrams, uint32_t count)
{
    uint32_t self = ((struct ear *)g)->config.self;
    for (uint32_t i = 0; i < ENGINES; i++) {
        struct ear *ear = &ears[i];
        if (i == self || !ear->open || ear->deaf || (to != NULL && to->in4.sin_port != i + 1))
            continue;
        for (uint32_t k = 0; k < count && ear->last - ear->first < QUEUE; k++) {
            struct sound *s = &ear->sounds[ear->last++ % QUEUE];
            assert_true(datagrams[k].length <= sizeof s->payload);
            s->head = datagrams[k].head;
            s->head.job = ear->config.job;
            s->head.sender = self;
            s->from = self;
            s->length = datagrams[k].length;
            if (s->length > 0)
                memcpy(s->payload, datagrams[k].payload, s->length);
        }
    }
    return (int)count;
}

int __wrap_tb_mcast_group_poll(struct tb_mcast_group *g)
{
    struct ear *ear = (struct ear *)g;
    int n = 0;
    for (; n < 32 && ear->first != ear->last; n++) {
        const struct sound *s = &ear->sounds[ear->first++ % QUEUE];
        const union tb_mcast_address from = address_of(s->from);
        const struct tb_mcast_arrival arrival = {
            .head = s->head, .payload = s->payload, .length = s->length, .from = &from};
        ear->config.upcalls.datagram(ear->config.upcalls.context, &arrival);
    }
    return n;
}

int __wrap_tb_mcast_group_descriptor(const struct tb_mcast_group *g)
{
    return -1;
}

uint64_t __wrap_tb_mcast_group_deadline(const struct tb_mcast_group *g)
{
    const struct ear *ear = (const struct ear *)g;
    return ear->first != ear->last ? 0 : TB_NEVER;
}

const struct tb_mcast_counters *__wrap_tb_mcast_group_counters(struct tb_mcast_group *g)
{
    static const struct tb_mcast_counters none;
    return &none;
}

uint64_t __wrap_tb_mcast_group_overflowed(const struct tb_mcast_group *g)
{
    return 0;
}

const union tb_mcast_address *__wrap_tb_mcast_group_own(const struct tb_mcast_group *g)
{
    static union tb_mcast_address own;
    own = address_of(((const struct ear *)g)->config.self);
    return &own;
}

/* ---- engines that have it ---------------------------------------------------------------------------------------- */

static struct loop_net net;
static char message[LENGTH], rooms[ENGINES][LENGTH];
static struct tb_request receives[ENGINES];

static bool in_cluster(void *context, struct tb_proc proc)
{
    return true;
}

static bool in_first_world(void *context, struct tb_proc proc)
{
    return proc.index < ENGINES - 1;
}

static bool group_of(void *context, struct tb_engine_group *group)
{
    memset(group, 0, sizeof *group);
    group->works = true;
    group->piece = PIECE;
    return true;
}

static void begin(void)
{
    loop_net_init(&net, ENGINES);
    net.remote = true;
    net.sim.max_payload = TB_MULTICAST_CONTROL_BYTES;
    loop_net_open(&net, false);
    for (uint32_t i = 0; i < ENGINES; i++) {
        ears[i].deaf = false;
        ears[i].first = ears[i].last = 0;
        net.engines[i]->config.in_cluster = in_cluster;
        net.engines[i]->config.multicast = group_of;
    }
    fill(message, LENGTH, 3);
    memset(rooms, 0, sizeof rooms);
}

static void receive(uint32_t at, uint64_t room)
{
    struct tb_buffer b = bytes_of(rooms[at], room);
    receives[at].complete = NULL;
    tb_receive_post(net.channels[at], &receives[at], &b, 0, TAG, EXACT);
}

static struct tb_cast *cast(const uint32_t *ranks, uint32_t count)
{
    struct tb_buffer b = bytes_of(message, LENGTH);
    struct tb_cast *made;
    assert_int_equal(tb_cast_post(net.channels[0], &b, ranks, count, TAG, &made), TB_OK);
    return made;
}

static bool is_done(uint32_t at)
{
    return tb_request_done(&receives[at]);
}

/* Progress everywhere, but for one, until so many sends of the first engine are left, and receives of all in `at` are
 * done. */
static void run_without(uint32_t asleep, uint64_t sends, uint32_t at)
{
    uint64_t end = tb_clock_now_real() + PATIENCE;
    bool over = false;
    while (!over) {
        assert_true(tb_clock_now_real() < end);
        for (uint32_t i = 0; i < ENGINES; i++)
            if (i != asleep)
                tb_engine_progress(net.engines[i]);
        over = net.engines[0]->sends == sends;
        for (uint32_t i = 0; i < ENGINES; i++)
            over = over && ((at & (1u << i)) == 0 || is_done(i));
    }
}

static void run_until(uint64_t sends, uint32_t at)
{
    run_without(ENGINES, sends, at);
}

static void check_got(uint32_t at)
{
    assert_int_equal(receives[at].status.error, TB_OK);
    assert_int_equal(receives[at].status.bytes, LENGTH);
    assert_memory_equal(rooms[at], message, LENGTH);
}

static void end(struct tb_cast *made)
{
    assert_null(tb_cast_wait(made, NULL));
    tb_cast_free(made);
    loop_net_close(&net);
}

static const uint32_t others[] = {2, 1, 3};

static struct tb_cast *cast_to_all(void)
{
    for (uint32_t i = 1; i < ENGINES; i++)
        receive(i, LENGTH);
    return cast(others, 3);
}

static void all_get_it(void)
{
    run_until(0, 14);
    for (uint32_t i = 1; i < ENGINES; i++)
        check_got(i);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void all_get_it_together(void **state)
{
    begin();
    struct tb_cast *made = cast_to_all();
    all_get_it();
    for (uint32_t i = 1; i < ENGINES; i++)
        assert_true(count_of(&net, i).multicast_used > 0); /* where all is slow, some of it comes otherwise */
    assert_int_equal(count_of(&net, 0).rendezvous, 3);
    assert_true(count_of(&net, 0).multicast_sent > 0);
    end(made);
}

/* One gets two of them, of which only one together with the others. */
static void a_rank_may_stand_there_twice(void **state)
{
    static const uint32_t ranks[] = {1, 2, 1};
    static char second[LENGTH];
    struct tb_request again = {.complete = NULL};
    begin();
    struct tb_cast *made = cast(ranks, 3);
    receive(1, LENGTH);
    receive(2, LENGTH);
    struct tb_buffer b = bytes_of(second, LENGTH);
    tb_receive_post(net.channels[1], &again, &b, 0, TAG, EXACT);
    run_until(0, 6);
    check_got(1);
    check_got(2);
    run_until(0, 0);
    while (!tb_request_done(&again))
        loop_net_settle(&net);
    assert_memory_equal(second, message, LENGTH);
    end(made);
}

static void one_hears_nothing(void **state)
{
    begin();
    ears[2].deaf = true;
    struct tb_cast *made = cast_to_all();
    all_get_it();
    assert_true(count_of(&net, 0).multicast_control > LENGTH / 2);
    end(made);
}

/* Who has a receive gets it, though one has none for long. */
static void who_is_late_holds_up_nobody(void **state)
{
    begin();
    receive(1, LENGTH);
    receive(2, LENGTH);
    struct tb_cast *made = cast(others, 3);
    run_until(1, 6);
    check_got(1);
    check_got(2);
    assert_true(count_of(&net, 0).multicast_sent > 0);
    receive(3, LENGTH);
    run_until(0, 8);
    check_got(3);
    end(made);
}

static void one_has_too_little_room(void **state)
{
    begin();
    receive(1, LENGTH);
    receive(2, 1000);
    receive(3, LENGTH);
    struct tb_cast *made = cast(others, 3);
    run_until(0, 14);
    check_got(1);
    check_got(3);
    assert_int_equal(receives[2].status.error, TB_ERR_TRUNCATE);
    assert_memory_equal(rooms[2], message, 1000);
    assert_int_equal(rooms[2][1000], 0);
    assert_true(count_of(&net, 1).multicast_used > 0);
    assert_int_equal(count_of(&net, 2).multicast_used, 0);
    end(made);
}

/* It refuses; then all are sent the data one by one. */
static void one_has_no_group(void **state)
{
    begin();
    net.engines[2]->config.multicast = NULL;
    struct tb_cast *made = cast_to_all();
    all_get_it();
    end(made);
}

/* In the middle of it: the others get all, and the error names the one that is gone. */
static void one_dies(void **state)
{
    begin();
    struct tb_cast *made = cast_to_all();
    for (int i = 0; i < 20; i++) /* it has asked, and does nothing any more */
        for (uint32_t k = 0; k < ENGINES; k++)
            if (k != 2 || i < 1)
                tb_engine_progress(net.engines[k]);
    assert_int_equal(net.engines[0]->sends, 3);
    assert_true(count_of(&net, 0).multicast_sent > 0);
    tb_error(TB_ERR_PEER, "rank 2 was killed by signal 9");
    tb_engine_lost(net.engines[0], (struct tb_proc){7, 2}, TB_ERR_PEER);
    run_without(2, 0, 10);
    check_got(1);
    check_got(3);
    const struct tb_request *failed = tb_cast_wait(made, NULL);
    assert_non_null(failed);
    assert_int_equal(failed->rank, 2);
    assert_int_equal(tb_request_explain(failed), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "signal 9"));
    tb_cast_free(made);
    loop_net_close(&net);
}

/* Who has a receive dies while others have none: nobody is waited for any more, until one has. */
static void who_is_ready_dies(void **state)
{
    begin();
    receive(1, LENGTH);
    struct tb_cast *made = cast(others, 3);
    for (int i = 0; i < 20 && tb_casts_deadline(net.engines[0]->multicast) == TB_NEVER; i++)
        loop_net_settle(&net);
    assert_true(tb_casts_deadline(net.engines[0]->multicast) != TB_NEVER);
    tb_engine_lost(net.engines[0], (struct tb_proc){7, 1}, TB_ERR_PEER);
    tb_engine_progress(net.engines[0]);
    assert_int_equal(net.engines[0]->sends, 2);
    assert_int_equal(tb_casts_deadline(net.engines[0]->multicast), TB_NEVER);
    for (uint32_t i = 2; i < ENGINES; i++) /* with their host */
        tb_engine_lost(net.engines[0], (struct tb_proc){7, i}, TB_ERR_PEER);
    tb_engine_progress(net.engines[0]);
    assert_non_null(tb_cast_wait(made, NULL));
    tb_cast_free(made);
    assert_true(tb_list_empty(&net.engines[0]->multicast->casts));
    loop_net_close(&net);
}

/* The sender dies: its receivers' receives end, and nothing of it is left. */
static void the_sender_dies(void **state)
{
    begin();
    struct tb_cast *made = cast_to_all();
    for (uint32_t k = 0; k < ENGINES; k++) /* they have asked, and are invited; nothing has come */
        tb_engine_progress(net.engines[ENGINES - 1 - k]);
    for (uint32_t i = 1; i < ENGINES; i++) {
        tb_engine_lost(net.engines[i], (struct tb_proc){7, 0}, TB_ERR_PEER);
        tb_engine_progress(net.engines[i]);
        assert_true(is_done(i));
        assert_int_equal(receives[i].status.error, TB_ERR_PEER);
        tb_engine_lost(net.engines[0], (struct tb_proc){7, i}, TB_ERR_PEER);
    }
    tb_engine_progress(net.engines[0]);
    assert_int_equal(net.engines[0]->sends, 0);
    assert_non_null(tb_cast_wait(made, NULL));
    tb_cast_free(made);
    loop_net_close(&net);
}

/* Who has a receive and then computes: the others wait a while for it, and not any longer. */
static void who_computes_holds_up_nobody(void **state)
{
    begin();
    struct tb_cast *made = cast_to_all();
    for (int i = 0; i < 20 && count_of(&net, 0).multicast_sent == 0; i++)
        for (uint32_t k = 0; k < ENGINES; k++)
            tb_engine_progress(net.engines[k]);
    assert_true(count_of(&net, 0).multicast_sent > 0 && !is_done(1) && !is_done(2) && !is_done(3));
    run_without(2, 0, 10); /* the network takes what is for it */
    check_got(1);
    check_got(3);
    assert_false(is_done(2));
    run_until(0, 4);
    check_got(2);
    end(made);
}

/* Something that nobody here waits for comes to the first engine. */
static void sound_make(enum tb_datagram_type type, uint64_t number)
{
    struct ear *ear = &ears[0];
    struct sound *s = &ear->sounds[ear->last++ % QUEUE];
    *s = (struct sound){.head = {.context = tb_cast_context(1),
                                 .number = number,
                                 .length = LENGTH,
                                 .job = ear->config.job,
                                 .sender = 1,
                                 .piece = PIECE,
                                 .type = (uint8_t)type},
                        .from = 1};
    s->payload[0] = s->payload[4] = 1; /* of a poll: the first one, when one fragment was sent */
    s->length = type == TB_DATAGRAM_POLL ? 8 : PIECE;
}

/* While the program computes a standby looks each time it comes; the program itself does not, while it waits for
 * nothing there. */
static void a_standby_looks_each_time(void **state)
{
    begin();
    struct tb_cast *made = cast_to_all();
    all_get_it();
    sound_make(TB_DATAGRAM_DATA, 7);
    tb_engine_progress(net.engines[0]);
    if (ears[0].first == ears[0].last) { /* that was the one in so many that looks */
        sound_make(TB_DATAGRAM_DATA, 7);
        tb_engine_progress(net.engines[0]);
    }
    assert_true(ears[0].first != ears[0].last);
    net.engines[0]->aside = true;
    for (int i = 0; i < 3; i++) {
        sound_make(TB_DATAGRAM_DATA, 7);
        tb_standby_round(net.engines[0], false);
        assert_true(ears[0].first == ears[0].last);
    }
    net.engines[0]->aside = false;
    end(made);
}

/* Of what others send each other nothing is kept, since nobody here will ever want it. */
static void others_casts_are_dropped(void **state)
{
    struct tb_multicast_counters c;
    begin();
    struct tb_cast *made = cast_to_all();
    all_get_it();
    for (uint64_t i = 0; i < 100; i++) {
        sound_make(TB_DATAGRAM_DATA, 1000 + i);
        sound_make(TB_DATAGRAM_POLL, 1000 + i);
    }
    while (ears[0].first != ears[0].last)
        tb_engine_progress(net.engines[0]);
    tb_multicast_count(net.engines[0]->multicast->protocol, &c);
    assert_int_equal(c.early_kept, 0);
    end(made);
}

/* A process that was started later is in no cluster. */
static void one_is_of_another_world(void **state)
{
    begin();
    net.engines[0]->config.processes = ENGINES - 1;
    net.engines[0]->config.in_cluster = in_first_world;
    struct tb_cast *made = cast_to_all();
    all_get_it();
    assert_true(count_of(&net, 0).multicast_sent > 0);
    assert_int_equal(count_of(&net, 3).multicast_used, 0);
    end(made);
}

/* To receives that do not exist, of lists that make no sense: nothing happens, and the peer is not given up. */
static void senseless_invitations_are_dropped(void **state)
{
    static uint32_t words[64];
    struct tb_random random;
    tb_random_seed(&random, 11);
    begin();
    receive(1, LENGTH);
    struct tb_cast *made = cast((const uint32_t[]){1}, 1);
    tb_engine_progress(net.engines[1]); /* it waits for data */
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 1);
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t length = tb_random_below(&random, sizeof words);
        for (uint32_t k = 0; k < 64; k++)
            words[k] = tb_random_below(&random, ENGINES + 1);
        words[4] = i % 3 == 0 ? 1 : words[4];
        struct tb_message m = {
            .kind = TB_KIND_CAST, .match = i % 2 == 0 ? receives[1].message_id : i, .length = length};
        if (length >= 20 && words[4] == 0)
            words[4] = 1; /* of another sender */
        up->frame(up->context, tb_sim_endpoint(&net.sim, 1, 0), NULL, &m, words, length);
    }
    assert_int_equal(tb_peer_of(net.engines[1], 0)->error, TB_OK);
    run_until(0, 2);
    check_got(1);
    end(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_get_it_together),
        cmocka_unit_test(a_rank_may_stand_there_twice),
        cmocka_unit_test(one_hears_nothing),
        cmocka_unit_test(who_is_late_holds_up_nobody),
        cmocka_unit_test(one_has_too_little_room),
        cmocka_unit_test(one_has_no_group),
        cmocka_unit_test(one_dies),
        cmocka_unit_test(who_computes_holds_up_nobody),
        cmocka_unit_test(one_is_of_another_world),
        cmocka_unit_test(who_is_ready_dies),
        cmocka_unit_test(a_standby_looks_each_time),
        cmocka_unit_test(others_casts_are_dropped),
        cmocka_unit_test(the_sender_dies),
        cmocka_unit_test(senseless_invitations_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
