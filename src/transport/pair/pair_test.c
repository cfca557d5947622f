/* Two processes that share memory two by two, played by two transports of one process; the test is their agent. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/pair/pair_param.h"
#include "transport/shm/shm_param.h"
#include "transport/transport.h"

#define JOB 5

static const struct tb_transport_table *const table = &tb_transport_pair;

struct node {
    struct tb_transport *transport;
    struct tb_endpoint *other;
    uint32_t index, asked, opened, writable, broken, frames;
    int error;
    uint64_t last; /* match of the last frame */
    size_t length; /* of its payload */
    char payload[8192];
};

static struct node nodes[2];

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct node *n = context;
    assert_int_equal(n->broken, 0);
    assert_int_equal(from->proc.index, nodes[n == &nodes[0] ? 1 : 0].index);
    n->frames++;
    n->last = message->match;
    n->length = length;
    assert_true(length <= sizeof n->payload);
    memcpy(n->payload, payload, length);
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    ((struct node *)context)->writable++;
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct node *n = context;
    n->opened++;
    n->other = from;
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    struct node *n = context;
    n->broken++;
    n->error = error;
}

static int down_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    assert_int_equal(stream, TB_STREAM_PAIR);
    ((struct node *)context)->asked++;
    return TB_OK;
}

static void nodes_open(void)
{
    memset(nodes, 0, sizeof nodes);
    tb_pair_param.ring = 16 << 10;
    tb_shm_param.cross_memory = true;
    tb_param.eager_shm = 1024;
    for (uint32_t i = 0; i < 2; i++) {
        struct node *n = &nodes[i];
        n->index = 3 + i;
        struct tb_transport_config config = {
            .self = {JOB, n->index},
            .connect = down_connect,
            .connect_context = n,
            .upcalls = {
                .context = n, .frame = up_frame, .writable = up_writable, .opened = up_opened, .broken = up_broken}};
        assert_true(table->usable(&config));
        assert_int_equal(table->open(&config, &n->transport), TB_OK);
    }
}

static void node_close(int i)
{
    if (nodes[i].transport != NULL)
        table->close(nodes[i].transport);
    nodes[i].transport = NULL;
}

static void nodes_close(void)
{
    node_close(0);
    node_close(1);
}

/* What the agent does. `ends`: the descriptors of the first node, then of the second, memory and socket each. */
static void agent_make(int ends[4])
{
    int sockets[2];
    ends[0] = memfd_create("pair_test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(ends[0], (off_t)tb_pair_bytes()), 0);
    ends[2] = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets), 0);
    ends[1] = sockets[0];
    ends[3] = sockets[1];
}

static int node_adopt(int i, const int ends[4])
{
    struct tb_proc other = {JOB, nodes[!i].index};
    assert_true(table->adopts(other, (enum tb_stream)TB_STREAM_MEMORY));
    assert_true(table->adopts(other, (enum tb_stream)TB_STREAM_PAIR));
    assert_false(table->adopts(other, TB_STREAM_SHORT));
    int error = table->adopt(nodes[i].transport, other, (enum tb_stream)TB_STREAM_MEMORY, ends[2 * i]);
    int after = table->adopt(nodes[i].transport, other, (enum tb_stream)TB_STREAM_PAIR, ends[2 * i + 1]);
    return error != TB_OK ? error : after;
}

static void nodes_connect(void)
{
    int ends[4];
    agent_make(ends);
    for (int i = 0; i < 2; i++) {
        struct tb_proc other = {JOB, nodes[!i].index};
        assert_int_equal(table->endpoint(nodes[i].transport, other, &nodes[i].other), TB_OK);
        assert_int_equal(node_adopt(i, ends), TB_OK);
    }
}

static int node_send(int i, uint64_t match, const void *data, size_t length)
{
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER, .match = match, .length = length}};
    struct tb_spans payload = tb_spans_of((void *)(uintptr_t)data, length);
    return table->send(nodes[i].other, &envelope, &payload, TB_STREAM_SHORT, NULL);
}

static void node_poll(int i, int rounds)
{
    for (int k = 0; k < rounds; k++)
        table->poll(nodes[i].transport);
}

static bool node_rings(int i)
{
    struct pollfd fd = {.fd = table->descriptor(nodes[i].transport), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void made_when_first_needed(void **state)
{
    int before = descriptors(), ends[4];
    nodes_open();
    assert_int_equal(table->endpoint(nodes[0].transport, (struct tb_proc){JOB, 4}, &nodes[0].other), TB_OK);
    assert_int_equal(node_send(0, 1, "x", 1), TB_AGAIN);
    assert_int_equal(node_send(0, 1, "x", 1), TB_AGAIN);
    assert_int_equal(nodes[0].asked, 1);
    agent_make(ends);
    assert_int_equal(node_adopt(0, ends), TB_OK);
    assert_false(table->arm(nodes[0].transport));
    table->disarm(nodes[0].transport);
    node_poll(0, 1);
    assert_int_equal(nodes[0].writable, 1);
    assert_int_equal(nodes[0].opened, 0);
    assert_int_equal(node_send(0, 1, "hello", 5), TB_OK); /* before the other one has taken its half */
    assert_int_equal(node_adopt(1, ends), TB_OK);
    assert_false(table->arm(nodes[1].transport)); /* nobody has rung for that one */
    node_poll(1, 2);
    assert_int_equal(nodes[1].opened, 1);
    assert_int_equal(nodes[1].frames, 1);
    assert_memory_equal(nodes[1].payload, "hello", 5);
    nodes_close();
    assert_int_equal(descriptors(), before);
}

static void frames_of_all_lengths(void **state)
{
    char data[8192];
    nodes_open();
    nodes_connect();
    uint32_t longest = nodes[0].transport->max_payload;
    assert_int_equal(longest, 2048);
    assert_int_equal(nodes[0].transport->eager_limit, 1024);
    for (uint32_t k = 0; k < 3 * longest; k++) {
        uint32_t length = k % (longest + 1);
        int from = (int)(k & 1);
        memset(data, (int)k, length);
        assert_int_equal(node_send(from, k, data, length), TB_OK);
        node_poll(!from, 1);
        assert_int_equal(nodes[!from].last, k);
        assert_int_equal(nodes[!from].length, length);
        assert_memory_equal(nodes[!from].payload, data, length);
    }
    assert_int_equal(nodes[0].transport->sent + nodes[1].transport->sent, 3 * longest);
    nodes_close();
}

static void a_full_ring_is_told_when_it_has_room(void **state)
{
    char data[2048] = {0};
    uint32_t sent = 0;
    nodes_open();
    nodes_connect();
    node_poll(0, 1);
    while (node_send(0, sent, data, sizeof data) == TB_OK)
        sent++;
    assert_true(sent >= 7 && sent < 100);
    assert_true(table->arm(nodes[0].transport)); /* sleeps until there is room */
    assert_false(node_rings(0));
    node_poll(1, (int)sent);
    assert_int_equal(nodes[1].frames, sent);
    assert_true(node_rings(0));
    assert_false(table->arm(nodes[0].transport));
    table->disarm(nodes[0].transport);
    node_poll(0, 1);
    assert_int_equal(nodes[0].writable, 1);
    assert_int_equal(node_send(0, sent, data, sizeof data), TB_OK);
    nodes_close();
}

static void both_ask_at_once(void **state)
{
    int first[4], second[4], before = descriptors();
    nodes_open();
    agent_make(first);
    agent_make(second);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(table->endpoint(nodes[i].transport, (struct tb_proc){JOB, nodes[!i].index}, &nodes[i].other),
                         TB_OK);
        assert_int_equal(node_send(i, 0, NULL, 0), TB_AGAIN);
        assert_int_equal(node_adopt(i, first), TB_OK);
    }
    assert_int_equal(node_send(0, 7, NULL, 0), TB_OK);
    assert_int_equal(node_adopt(0, second), TB_OK);
    assert_int_equal(node_adopt(1, second), TB_OK);
    assert_int_equal(descriptors(), before + 4); /* of each an epoll and a socket */
    assert_int_equal(node_send(1, 8, NULL, 0), TB_OK);
    for (int i = 0; i < 2; i++) {
        node_poll(i, 5000);
        assert_int_equal(nodes[i].frames, 1);
        assert_int_equal(nodes[i].last, 8 - i);
        assert_int_equal(nodes[i].broken, 0);
    }
    nodes_close();
    assert_int_equal(descriptors(), before);
}

static void memory_of_the_other_is_read(void **state)
{
    char there[100], here[100] = {0};
    nodes_open();
    nodes_connect();
    if (!(nodes[0].transport->capabilities & TB_CAP_REMOTE_READ))
        skip();
    memset(there, 42, sizeof there);
    struct tb_spans into = tb_spans_of(here, sizeof here);
    assert_int_equal(table->read(nodes[0].other, (uint64_t)(uintptr_t)there, &into, sizeof here), TB_OK);
    assert_memory_equal(here, there, sizeof here);
    nodes_close();
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

static void whoever_sleeps_is_woken(void **state)
{
    nodes_open();
    nodes_connect();
    node_poll(1, 1);
    for (uint64_t k = 0; k < 100; k++) {
        assert_int_equal(node_send(0, k, NULL, 0), TB_OK); /* awake: nobody rings */
        assert_false(node_rings(1));
        assert_false(table->arm(nodes[1].transport)); /* there already */
        table->disarm(nodes[1].transport);
        node_poll(1, 1);
        assert_int_equal(nodes[1].last, k);
        assert_true(table->arm(nodes[1].transport));
        assert_false(node_rings(1));
        assert_int_equal(node_send(0, k, NULL, 0), TB_OK); /* between looking and sleeping, or asleep */
        assert_int_equal(node_send(0, k, NULL, 0), TB_OK);
        assert_true(node_rings(1));
        table->disarm(nodes[1].transport);
        assert_false(node_rings(1));
        node_poll(1, 2);
    }
    assert_int_equal(nodes[1].frames, 300);
    nodes_close();
}

/* Somebody may listen for a thread that polls now and then, and must be woken, whoever takes the frame. */
static void polling_leaves_the_ring(void **state)
{
    nodes_open();
    nodes_connect();
    node_poll(1, 1);
    assert_true(table->arm(nodes[1].transport));
    assert_int_equal(node_send(0, 1, NULL, 0), TB_OK);
    node_poll(1, 10000);
    assert_int_equal(nodes[1].frames, 1);
    assert_true(node_rings(1));
    table->disarm(nodes[1].transport);
    assert_true(table->arm(nodes[1].transport));
    assert_false(node_rings(1));
    assert_int_equal(node_send(0, 2, NULL, 0), TB_OK);
    assert_true(node_rings(1));
    nodes_close();
}

/* Where arming finds something, whoever comes later still rings. */
static void arming_in_vain_is_still_armed(void **state)
{
    nodes_open();
    nodes_connect();
    node_poll(1, 1);
    assert_int_equal(node_send(0, 1, NULL, 0), TB_OK);
    assert_false(table->arm(nodes[1].transport));
    assert_int_equal(node_send(0, 2, NULL, 0), TB_OK);
    assert_true(node_rings(1));
    nodes_close();
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void who_leaves_says_goodbye(void **state)
{
    nodes_open();
    nodes_connect();
    node_poll(1, 1);
    for (uint64_t k = 0; k < 5; k++)
        assert_int_equal(node_send(0, k, "abc", 3), TB_OK);
    assert_false(table->arm(nodes[1].transport));
    node_close(0);
    assert_true(node_rings(1));
    table->disarm(nodes[1].transport);
    assert_false(table->arm(nodes[1].transport));
    node_poll(1, 20);
    assert_int_equal(nodes[1].frames, 5);
    assert_int_equal(nodes[1].broken, 1);
    assert_int_equal(nodes[1].error, TB_ERR_CLOSED);
    assert_int_equal(node_send(1, 1, NULL, 0), TB_ERR_PEER);
    table->drop(nodes[1].other);
    table->forget(nodes[1].other);
    assert_false(node_rings(1));
    nodes_close();
}

/* Of one that polls all the time, too; and nobody has said goodbye. */
static void who_dies_is_missed(void **state)
{
    int before = descriptors();
    nodes_open();
    nodes_connect();
    node_poll(1, 1);
    assert_int_equal(node_send(0, 1, NULL, 0), TB_OK);
    table->drop(nodes[0].other);
    node_poll(1, 10000);
    assert_int_equal(nodes[1].frames, 1);
    assert_int_equal(nodes[1].broken, 1);
    assert_int_equal(nodes[1].error, TB_ERR_PEER);
    assert_int_equal(nodes[0].broken, 0);
    assert_true(table->arm(nodes[1].transport));
    assert_false(node_rings(1));
    assert_int_equal(descriptors(), before + 2);
    nodes_close();
}

/* The other one has left over another pair, and never took this one. */
static void what_nobody_used_is_no_harm(void **state)
{
    int ends[4];
    nodes_open();
    agent_make(ends);
    close(ends[2]);
    close(ends[3]);
    assert_int_equal(table->endpoint(nodes[0].transport, (struct tb_proc){JOB, 4}, &nodes[0].other), TB_OK);
    assert_int_equal(node_adopt(0, ends), TB_OK);
    node_poll(0, 5000);
    assert_int_equal(nodes[0].broken, 0);
    assert_int_equal(node_send(0, 1, NULL, 0), TB_AGAIN);
    assert_int_equal(nodes[0].asked, 1);
    table->refused(nodes[0].transport, (struct tb_proc){JOB, 4}, (enum tb_stream)TB_STREAM_PAIR,
                   tb_error(TB_ERR_PEER, "it has ended"));
    node_poll(0, 1);
    assert_int_equal(nodes[0].broken, 1);
    assert_int_equal(nodes[0].error, TB_ERR_PEER);
    nodes_close();
}

static void nonsense_is_refused(void **state)
{
    int ends[4], before = descriptors();
    nodes_open();
    agent_make(ends);
    assert_int_equal(ftruncate(ends[0], 4096), 0);
    assert_int_equal(node_adopt(0, ends), TB_ERR_PROTOCOL);
    int error = table->adopt(nodes[1].transport, (struct tb_proc){JOB, 3}, (enum tb_stream)TB_STREAM_PAIR, ends[3]);
    assert_int_equal(error, TB_ERR_PROTOCOL);
    close(ends[2]);
    for (int i = 0; i < 2; i++) {
        node_poll(i, 1);
        assert_int_equal(nodes[i].opened, 1);
        assert_int_equal(nodes[i].broken, 1);
    }
    nodes_close();
    assert_int_equal(descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_when_first_needed),
        cmocka_unit_test(frames_of_all_lengths),
        cmocka_unit_test(a_full_ring_is_told_when_it_has_room),
        cmocka_unit_test(both_ask_at_once),
        cmocka_unit_test(memory_of_the_other_is_read),
        cmocka_unit_test(whoever_sleeps_is_woken),
        cmocka_unit_test(polling_leaves_the_ring),
        cmocka_unit_test(arming_in_vain_is_still_armed),
        cmocka_unit_test(who_leaves_says_goodbye),
        cmocka_unit_test(who_dies_is_missed),
        cmocka_unit_test(what_nobody_used_is_no_harm),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
