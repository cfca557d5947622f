/* What passes between ranks and the rank port. */
#include "agent/rank_port_world_test.h"

/* ---- ranks with their sockets ------------------------------------------------------------------------------------ */

static void ranks_are_welcomed(void **state)
{
    struct world w;
    world_open(&w);
    for (uint32_t i = 0; i < RANKS; i++) {
        expect_welcome(w.sockets[i], 7 + i, i);
        expect_nothing(w.sockets[i]);
    }
    world_close(&w);
}

static void requests_are_handed_up(void **state)
{
    struct world w;
    world_open(&w);
    say_numbers(&w, w.sockets[1], TB_CONTROL_CONNECT, 3, (uint32_t[]){JOB, 40, TB_STREAM_SHORT});
    assert_int_equal(w.connects, 1);
    assert_int_equal(w.local, 1);
    assert_int_equal(w.to.index, 40);
    assert_int_equal(w.stream, TB_STREAM_SHORT);
    say_numbers(&w, w.sockets[1], TB_CONTROL_CONNECT, 3, (uint32_t[]){JOB, 40, TB_STREAM_COUNT});
    say_numbers(&w, w.sockets[1], TB_CONTROL_CONNECT, 2, (uint32_t[]){JOB, 40});
    assert_int_equal(w.connects, 1); /* nonsense is not */
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 4, (uint32_t[]){2, 5, 3, 0});
    assert_true(w.waits == 1 && w.awaited.count == 2 && w.awaited.hosts[0] == 5 && w.awaited.hosts[1] == 3);
    assert_int_equal(w.awaited.stuck_count, 0);
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 3, (uint32_t[]){2, 5, 3});
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 20,
                (uint32_t[20]){TB_WAITING_HOSTS + 2, [TB_WAITING_HOSTS + 2] = 1});
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 3 + 3 * (TB_WAITING_STUCK + 1),
                (uint32_t[3 + 3 * (TB_WAITING_STUCK + 1)]){1, 5, TB_WAITING_STUCK + 1});
    assert_int_equal(w.waits, 1);
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 6, (uint32_t[]){1, 5, 1, 7, 250, 0});
    assert_true(w.waits == 2 && w.awaited.count == 1 && w.awaited.stuck_count == 1);
    assert_true(w.awaited.stuck[0].rank == 7 && w.awaited.stuck[0].tried == 250);
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 2, (uint32_t[]){0, 0});
    assert_true(w.waits == 3 && w.awaited.count == 0);
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_put_u32(&fields, 9);
    tb_put_u8(&fields, TB_ABORT_LOST);
    tb_put_text(&fields, "enough");
    tb_put_u32(&fields, 1);
    tb_put_u32(&fields, 3);
    tb_put_u32(&fields, 2);
    assert_int_equal(tb_packet_send(w.sockets[0], TB_CONTROL_ABORT, &fields, NULL, 0), TB_OK);
    tb_writer_close(&fields);
    tb_rank_port_read(&w.port, 0); /* without the loop, as when the rank has ended */
    assert_int_equal(w.aborts, 1);
    assert_int_equal(w.local, 0);
    assert_int_equal(w.code, 9);
    assert_int_equal(w.reason, TB_ABORT_LOST);
    assert_string_equal(w.text, "enough");
    assert_true(w.group.count == 1 && tb_abort_group_has(&w.group, 3) && tb_abort_group_has(&w.group, 4));
    assert_true(!tb_abort_group_has(&w.group, 2) && !tb_abort_group_has(&w.group, 5));
    say_numbers(&w, w.sockets[0], TB_CONTROL_INITIALIZED, 0, NULL);
    assert_true(w.port.ranks[0].initialized && !w.port.ranks[0].finalized && !w.port.ranks[1].initialized);
    say_numbers(&w, w.sockets[0], TB_CONTROL_FINALIZED, 0, NULL);
    assert_true(w.port.ranks[0].finalized);
    world_close(&w);
}

/* Until its process is known, a packet could be queued in a socket that nobody will read. */
static void packets_wait_for_hello(void **state)
{
    struct world w;
    world_open(&w);
    expect_welcome(w.sockets[0], 7, 0);
    int a = give_connection(&w, 0, 50), b = give_connection(&w, 0, 51);
    virtual_loop_turn(&w.t);
    expect_nothing(w.sockets[0]);
    say_hello(&w, w.sockets[0]);
    expect_connection(w.sockets[0], 50);
    expect_connection(w.sockets[0], 51);
    tb_error(TB_ERR_PEER, "no way there");
    tb_rank_port_connection(&w.port, 0, (struct tb_proc){JOB, 52}, TB_STREAM_BULK, TB_ERR_PEER, -1);
    struct tb_reader *r = expect(w.sockets[0], TB_CONTROL_CONNECTION);
    for (int i = 0; i < 3; i++)
        tb_get_u32(r);
    assert_int_equal((int)tb_get_u32(r), TB_ERR_PEER);
    char *why = tb_get_text(r);
    assert_non_null(strstr(why, "no way there"));
    free(why);
    assert_int_equal(packet.descriptor_count, 0);
    close(a);
    close(b);
    world_close(&w);
}

/* Ranks of hosts that were faster may call one that is to be started, and one whose socket a wrapper has closed. */
static void packets_wait_for_the_start(void **state)
{
    struct world w;
    world_make(&w);
    int early = give_connection(&w, 0, 50);
    world_start(&w);
    expect_welcome(w.sockets[0], 7, 0);
    say_hello(&w, w.sockets[0]);
    expect_connection(w.sockets[0], 50);
    int first = give_connection(&w, 1, 51);
    w.port.ranks[1].pid = getpid();
    shutdown(w.sockets[1], SHUT_RDWR);
    virtual_loop_turn(&w.t);
    int second = give_connection(&w, 1, 52), fd = come_by_name(&w);
    say_hello(&w, fd);
    expect_welcome(fd, 8, 1);
    expect_connection(fd, 51);
    expect_connection(fd, 52);
    close(fd);
    virtual_loop_turn(&w.t);
    int late = give_connection(&w, 1, 53);
    assert_true(is_closed(late));
    close(early);
    close(first);
    close(second);
    close(late);
    world_close(&w);
}

static void too_many_packets_are_refused(void **state)
{
    struct world w;
    world_open(&w);
    int others[LIMIT + 1];
    for (uint32_t i = 0; i <= LIMIT; i++)
        others[i] = give_connection(&w, 0, i);
    assert_false(is_closed(others[LIMIT - 1]));
    assert_true(is_closed(others[LIMIT]));
    tb_rank_port_remove(&w.port, 0); /* and with the rank go those that wait for it */
    assert_true(is_closed(others[0]));
    int late = give_connection(&w, 0, 60);
    assert_true(is_closed(late));
    close(late);
    for (uint32_t i = 0; i <= LIMIT; i++)
        close(others[i]);
    world_close(&w);
}

/* Those that are started later may all have something for a rank that sleeps. */
static void later_processes_have_room(void **state)
{
    struct world w;
    world_open(&w);
    int others[LIMIT + 8];
    for (uint32_t i = 0; i < LIMIT; i++)
        others[i] = give_connection(&w, 0, i);
    assert_int_equal(tb_worlds_add(&w.book, &(struct tb_rank_range){.first_rank = RANKS, .count = 1}, 1), TB_OK);
    for (uint32_t i = LIMIT; i < LIMIT + 8; i++)
        others[i] = give_connection(&w, 0, i);
    assert_false(is_closed(others[LIMIT]));
    assert_false(is_closed(others[LIMIT + 7]));
    int beyond = give_connection(&w, 0, 60);
    assert_true(is_closed(beyond));
    close(beyond);
    for (uint32_t i = 0; i < LIMIT + 8; i++)
        close(others[i]);
    world_close(&w);
}

/* One that waits for what there was no room for would do so for ever. */
static void who_reads_nothing_loses_its_agent(void **state)
{
    struct world w;
    world_open(&w);
    expect_welcome(w.sockets[0], 7, 0);
    say_hello(&w, w.sockets[0]);
    for (uint32_t i = 0; i < 20 * LIMIT && w.port.ranks[0].control.descriptor >= 0; i++)
        tb_rank_port_connection(&w.port, 0, (struct tb_proc){JOB, i}, TB_STREAM_SHORT, TB_ERR_PEER, -1);
    assert_int_equal(w.port.ranks[0].control.descriptor, -1);
    assert_int_equal(w.port.ranks[0].parcel_count, 0);
    while (tb_packet_receive(w.sockets[0], &packet, false) == TB_OK)
        tb_packet_discard(&packet);
    assert_int_equal(tb_packet_receive(w.sockets[0], &packet, false), TB_ERR_CLOSED);
    int late = give_connection(&w, 0, 60);
    assert_true(is_closed(late));
    close(late);
    world_close(&w);
}

/* Packets that a socket has no room for follow when the rank reads, in order. */
static void a_full_socket_is_tried_again(void **state)
{
    struct world w;
    world_open(&w);
    assert_int_equal(tb_worlds_add(&w.book, &(struct tb_rank_range){.first_rank = RANKS, .count = 200}, 1), TB_OK);
    expect_welcome(w.sockets[0], 7, 0);
    say_hello(&w, w.sockets[0]);
    enum { MANY = 1000 };
    for (uint32_t i = 0; i < MANY; i++)
        tb_rank_port_connection(&w.port, 0, (struct tb_proc){JOB, i}, TB_STREAM_SHORT, TB_OK, -1);
    assert_true(w.port.ranks[0].parcel_count > 0);
    uint32_t next = 0;
    for (int i = 0; i < MANY && next < MANY; i++) {
        while (tb_packet_receive(w.sockets[0], &packet, false) == TB_OK) {
            tb_get_u32(&packet.frame.fields);
            assert_int_equal(tb_get_u32(&packet.frame.fields), next);
            next++;
        }
        virtual_loop_pass(&w.t, 5000000);
    }
    assert_int_equal(next, MANY);
    assert_int_equal(w.port.ranks[0].parcel_count, 0);
    world_close(&w);
}

static void expect_routes(int socket, uint32_t version)
{
    struct tb_host_routes got = {0};
    expect(socket, TB_CONTROL_ROUTES);
    assert_int_equal(packet.descriptor_count, 1);
    assert_int_equal(tb_host_routes_read(&got, packet.descriptors[0], 1), TB_OK);
    assert_int_equal(got.version, version);
    tb_host_routes_close(&got);
    tb_packet_discard(&packet);
}

static void all_are_told_routes(void **state)
{
    struct world w;
    struct tb_host_routes routes = {.version = 9};
    world_open(&w);
    tb_rank_port_remove(&w.port, 1);
    expect_welcome(w.sockets[0], 7, 0);
    say_hello(&w, w.sockets[0]);
    assert_int_equal(tb_host_services_change_routes(&w.services, &routes), TB_OK);
    tb_rank_port_routes(&w.port);
    expect_routes(w.sockets[0], 9);
    expect_welcome(w.sockets[1], 8, 1);
    assert_int_equal(tb_packet_receive(w.sockets[1], &packet, false), TB_ERR_CLOSED);
    world_close(&w);
}

static void expect_costs(int socket, uint32_t version, struct tb_cost_mapping **costs)
{
    struct tb_reader *r = expect(socket, TB_CONTROL_COSTS);
    assert_int_equal(tb_get_u32(r), version);
    assert_int_equal(packet.descriptor_count, 1);
    assert_int_equal(tb_cost_mapping_add(costs, packet.descriptors[0], 1, 1), TB_OK);
    assert_int_equal((*costs)->table.head->version, version);
    tb_packet_discard(&packet);
}

/* Whoever joins gets the first version, and behind it all that have come meanwhile. */
static void all_get_every_version_of_the_costs(void **state)
{
    struct world w;
    struct tb_cost_mapping *costs[2] = {NULL, NULL};
    world_open(&w);
    for (uint32_t version = 2; version <= 3; version++) {
        int descriptor = costs_file_of(version, 1, version);
        if (version == 3) {
            expect_welcome(w.sockets[0], 7, 0);
            say_hello(&w, w.sockets[0]);
        }
        tb_rank_port_costs(&w.port, version, descriptor);
        close(descriptor);
    }
    expect(w.sockets[1], TB_CONTROL_WELCOME);
    assert_int_equal(tb_cost_mapping_add(&costs[1], packet.descriptors[TB_WELCOME_COSTS], 1, 1), TB_OK);
    assert_int_equal(costs[1]->table.head->version, 1);
    tb_packet_discard(&packet);
    expect_nothing(w.sockets[1]);
    say_hello(&w, w.sockets[1]);
    for (int i = 0; i < 2; i++) {
        int first = costs_file_of(1, 1, 1);
        assert_int_equal(tb_cost_mapping_add(&costs[i], first, 1, 1), TB_OK);
        close(first);
        expect_costs(w.sockets[i], 2, &costs[i]);
        expect_costs(w.sockets[i], 3, &costs[i]);
        expect_nothing(w.sockets[i]);
        tb_cost_mapping_close(&costs[i]);
    }
    world_close(&w);
}

/* Of routes and questions only the newest waits, however long a rank reads nothing. */
static void only_the_newest_waits(void **state)
{
    struct world w;
    struct tb_host_routes routes = {.version = 1};
    world_open(&w);
    expect_welcome(w.sockets[0], 7, 0);
    for (uint32_t i = 1; i <= 100; i++) {
        routes.version = i;
        assert_int_equal(tb_host_services_change_routes(&w.services, &routes), TB_OK);
        tb_rank_port_routes(&w.port);
        tb_rank_port_ask(&w.port, 0, i);
    }
    assert_int_equal(w.port.ranks[0].parcel_count, 2);
    int next = dup(w.sockets[0]);
    assert_in_range(next, 0, 50); /* descriptors do not add up either */
    close(next);
    say_hello(&w, w.sockets[0]);
    expect_routes(w.sockets[0], 100);
    expect(w.sockets[0], TB_CONTROL_ASK);
    assert_int_equal(tb_get_u32(&packet.frame.fields), 100);
    expect_nothing(w.sockets[0]);
    world_close(&w);
}

/* ---- those who come by name -------------------------------------------------------------------------------------- */

/* What waits for the rank goes with it to the new socket. */
static void expect_verdict(int socket, uint32_t version, bool works)
{
    struct tb_multicast_facts known = {.expected = true};
    assert_int_equal(tb_multicast_get(expect(socket, TB_CONTROL_GROUP_VERDICT), &known), TB_OK);
    assert_int_equal(known.version, version);
    assert_int_equal(tb_multicast_bit(known.newest, 0), works);
    assert_int_equal(tb_multicast_first(&known, 0), TB_MULTICAST_WORKS);
}

/* Who reads nothing gets the newest, and who comes by name once more, the one that there is. */
static void all_are_told_where_multicast_works(void **state)
{
    struct world w;
    struct tb_multicast_facts known = {.expected = true};
    const uint8_t works = 1, fails = 0;
    world_make(&w);
    w.services.multicast = &known;
    world_start(&w);
    struct tb_reader *r = expect(w.sockets[0], TB_CONTROL_WELCOME);
    assert_int_equal(r->bytes[r->length - 10], 1); /* a verdict will come; its world stands behind that */
    tb_packet_discard(&packet);
    say_hello(&w, w.sockets[0]);
    assert_int_equal(tb_multicast_learn(&known, 1, &works, 1), TB_OK);
    tb_rank_port_verdict(&w.port);
    expect_verdict(w.sockets[0], 1, true);
    assert_int_equal(tb_multicast_learn(&known, 2, &fails, 1), TB_OK);
    tb_rank_port_verdict(&w.port);
    expect_verdict(w.sockets[0], 2, false);
    expect_welcome(w.sockets[1], 8, 1);
    say_hello(&w, w.sockets[1]);
    expect_verdict(w.sockets[1], 2, false);
    expect_nothing(w.sockets[1]);
    w.port.ranks[1].pid = getpid();
    w.port.ranks[1].joined = getpid();
    int fd = come_by_name(&w);
    say_hello(&w, fd);
    expect_welcome(fd, 8, 1);
    expect_verdict(fd, 2, false);
    close(fd);
    world_close(&w);
}

static void trouble_is_handed_up(void **state)
{
    struct world w;
    struct tb_writer fields;
    world_open(&w);
    for (unsigned what = 0; what <= TB_MULTICAST_TROUBLES; what++) {
        tb_writer_open(&fields);
        tb_put_u32(&fields, 7);
        tb_put_u8(&fields, (uint8_t)what);
        assert_int_equal(tb_packet_send(w.sockets[1], TB_CONTROL_GROUP_TROUBLE, &fields, NULL, 0), TB_OK);
        tb_writer_close(&fields);
    }
    say_numbers(&w, w.sockets[1], TB_CONTROL_GROUP_TROUBLE, 1, (uint32_t[]){7}); /* nonsense is not */
    assert_int_equal(w.troubles, 2);
    assert_int_equal(w.version, 7);
    assert_int_equal(w.trouble, TB_MULTICAST_OTHER_JOB);
    world_close(&w);
}

static void wish(struct world *w, uint32_t local, enum tb_control what, uint32_t number, const char *text)
{
    struct tb_writer fields;
    int descriptor;
    tb_writer_open(&fields);
    tb_put_u32(&fields, number);
    assert_int_equal(tb_shared_bytes_put(text, strlen(text), &descriptor), TB_OK);
    assert_int_equal(tb_packet_send(w->sockets[local], what, &fields, &descriptor, 1), TB_OK);
    close(descriptor);
    tb_writer_close(&fields);
    tb_rank_port_read(&w->port, local);
}

/* What a rank wishes of the launcher is handed up as it is, and so is the answer handed down. */
static void wishes_and_answers_pass(void **state)
{
    static const enum tb_control kinds[] = {TB_CONTROL_SPAWN, TB_CONTROL_MEET, TB_CONTROL_REGISTRY};
    struct world w;
    void *bytes;
    size_t length;
    world_open(&w);
    for (int i = 0; i < 3; i++) {
        wish(&w, 1, kinds[i], 30 + (uint32_t)i, "who is there");
        assert_true(w.wishes == i + 1 && w.local == 1 && w.wish == kinds[i] && w.number == 30 + (uint32_t)i);
        assert_string_equal(w.text, "who is there");
    }
    expect_welcome(w.sockets[0], 7, 0);
    tb_rank_port_answer(&w.port, 0, &(struct tb_port_answer){4, TB_OK, "", 0, "nobody", 6});
    assert_int_equal(tb_packet_receive(w.sockets[0], &packet, false), TB_AGAIN); /* until it has said who it is */
    say_hello(&w, w.sockets[0]);
    struct tb_reader *r = expect(w.sockets[0], TB_CONTROL_ANSWER);
    assert_int_equal(tb_get_u32(r), 4);
    assert_int_equal((int)tb_get_u32(r), TB_OK);
    assert_int_equal(packet.descriptor_count, 1);
    assert_int_equal(tb_shared_bytes_get(packet.descriptors[0], &bytes, &length), TB_OK);
    assert_int_equal(length, 6);
    assert_memory_equal(bytes, "nobody", 6);
    free(bytes);
    tb_packet_discard(&packet);
    world_close(&w);
}

/* Whoever waits for an answer gets one, also if what came makes no sense. */
static void senseless_wishes_are_answered(void **state)
{
    struct world w;
    world_open(&w);
    expect_welcome(w.sockets[0], 7, 0);
    say_hello(&w, w.sockets[0]);
    say_numbers(&w, w.sockets[0], TB_CONTROL_REGISTRY, 1, (uint32_t[]){5});    /* nothing comes along */
    say_numbers(&w, w.sockets[0], TB_CONTROL_REGISTRY, 2, (uint32_t[]){5, 6}); /* more than a number */
    for (int i = 0; i < 2; i++) {
        struct tb_reader *r = expect(w.sockets[0], TB_CONTROL_ANSWER);
        size_t length = 0;
        assert_int_equal(tb_get_u32(r), 5);
        assert_int_equal((int)tb_get_u32(r), TB_ERR_PROTOCOL);
        tb_get_bytes(r, &length);
        assert_true(length > 0 && packet.descriptor_count == 0);
    }
    assert_int_equal(w.wishes, 0);
    world_close(&w);
}

static void a_rank_comes_by_name(void **state)
{
    struct world w;
    world_open(&w);
    w.port.ranks[1].pid = getpid();
    int other = give_connection(&w, 1, 50), fd = come_by_name(&w);
    expect_nothing(fd);
    say_hello(&w, fd);
    expect_welcome(fd, 8, 1);
    expect_connection(fd, 50);
    expect_welcome(w.sockets[1], 8, 1); /* of the beginning, which it has not read */
    assert_int_equal(tb_packet_receive(w.sockets[1], &packet, false), TB_ERR_CLOSED);
    close(other);
    close(fd);
    world_close(&w);
}

static void strangers_get_nothing(void **state)
{
    struct world w;
    world_open(&w);
    int fd = come_by_name(&w), silent = come_by_name(&w);
    say_hello(&w, fd); /* it descends from no rank */
    assert_int_equal(tb_packet_receive(fd, &packet, false), TB_ERR_CLOSED);
    say_numbers(&w, silent, TB_CONTROL_CONNECT, 3, (uint32_t[]){JOB, 40, TB_STREAM_SHORT});
    assert_int_equal(tb_packet_receive(silent, &packet, false), TB_ERR_CLOSED);
    assert_int_equal(w.connects, 0);
    close(fd);
    close(silent);
    world_close(&w);
}

static void a_rank_is_one_program(void **state)
{
    struct world w;
    world_open(&w);
    w.port.ranks[0].pid = getpid();
    const pid_t joined[] = {NO_PID, getppid()}; /* one that came before; one that has started us */
    for (int i = 0; i < 2; i++) {
        w.port.ranks[0].joined = joined[i];
        int fd = come_by_name(&w);
        say_hello(&w, fd);
        struct tb_reader *r = expect(fd, TB_CONTROL_TAKEN);
        assert_int_equal(tb_get_u8(r), i == 1 && getppid() > 1);
        char *text = tb_get_text(r);
        assert_non_null(strstr(text, "one mpiexec runs one MPI program"));
        assert_non_null(strstr(text, i == 0 ? ", which has ended its part" : ", which still runs"));
        free(text);
        close(fd);
    }
    world_close(&w);
}

/* Those who say nothing keep nobody out: the oldest one makes room. */
static void a_crowd_makes_room(void **state)
{
    struct world w;
    world_open(&w);
    w.port.ranks[0].pid = getpid();
    int crowd[TB_RANK_PORT_JOINERS];
    for (uint32_t i = 0; i < TB_RANK_PORT_JOINERS; i++)
        crowd[i] = come_by_name(&w);
    int late = come_by_name(&w);
    say_hello(&w, late);
    expect_welcome(late, 7, 0);
    assert_int_equal(tb_packet_receive(crowd[0], &packet, false), TB_ERR_CLOSED);
    assert_int_equal(tb_packet_receive(crowd[1], &packet, false), TB_AGAIN);
    virtual_loop_pass(&w.t, PATIENCE - 1);
    assert_int_equal(tb_packet_receive(crowd[1], &packet, false), TB_AGAIN);
    virtual_loop_pass(&w.t, 1);
    for (uint32_t i = 1; i < TB_RANK_PORT_JOINERS; i++)
        assert_int_equal(tb_packet_receive(crowd[i], &packet, false), TB_ERR_CLOSED);
    close(late);
    for (uint32_t i = 0; i < TB_RANK_PORT_JOINERS; i++)
        close(crowd[i]);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_welcomed),
        cmocka_unit_test(requests_are_handed_up),
        cmocka_unit_test(packets_wait_for_hello),
        cmocka_unit_test(packets_wait_for_the_start),
        cmocka_unit_test(too_many_packets_are_refused),
        cmocka_unit_test(later_processes_have_room),
        cmocka_unit_test(who_reads_nothing_loses_its_agent),
        cmocka_unit_test(a_full_socket_is_tried_again),
        cmocka_unit_test(all_get_every_version_of_the_costs),
        cmocka_unit_test(all_are_told_routes),
        cmocka_unit_test(only_the_newest_waits),
        cmocka_unit_test(all_are_told_where_multicast_works),
        cmocka_unit_test(trouble_is_handed_up),
        cmocka_unit_test(wishes_and_answers_pass),
        cmocka_unit_test(senseless_wishes_are_answered),
        cmocka_unit_test(a_rank_comes_by_name),
        cmocka_unit_test(strangers_get_nothing),
        cmocka_unit_test(a_rank_is_one_program),
        cmocka_unit_test(a_crowd_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
