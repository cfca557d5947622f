/* Floods on the group: what is multicast goes on over connections, and by datagrams when it is over. */
#define RANKS 4
#include "engine/multicast_calls_test.h"

#define LENGTH 5000u
#define VICTIM 2u
#define FLOOD  2000u

/* What a broadcast sends over connections: nothing, or all of it to the one that does without datagrams. */
static bool goes_by_connections(struct hosts *h)
{
    uint64_t before = by_connections(h);
    broadcast(h, 0, LENGTH, 1);
    uint64_t bytes = by_connections(h) - before;
    assert_true(bytes == 0 || bytes == LENGTH);
    return bytes > 0;
}

/* Soon that is so. */
static void await(struct hosts *h, bool connections)
{
    uint64_t end = tb_clock_now_real() + UINT64_C(10000000000);
    while (goes_by_connections(h) != connections)
        assert_true(tb_clock_now_real() < end);
}

static void ready(struct hosts *h)
{
    memset(&flood, 0, sizeof flood);
    flood.to = VICTIM;
    world_open(h, true);
    all_listen(h);
    for (uint32_t i = 0; i < 4; i++)
        broadcast(h, i, 100, 1);
    assert_false(goes_by_connections(h));
}

/* Of strangers: as long as it lasts. */
static void strangers(void **state)
{
    struct hosts h;
    ready(&h);
    flood.strange = flood.right = FLOOD; /* not most of what comes */
    for (uint64_t end = tb_clock_now_real() + UINT64_C(300000000); tb_clock_now_real() < end;)
        assert_false(goes_by_connections(&h));
    flood.right = FLOOD / 10;
    await(&h, true);
    for (uint64_t end = tb_clock_now_real() + UINT64_C(300000000); tb_clock_now_real() < end;)
        assert_true(goes_by_connections(&h));
    flood.strange = 0;
    await(&h, false);
    for (uint32_t i = 0; i < 10; i++)
        assert_false(goes_by_connections(&h));
    world_close(&h);
}

/* Of datagrams that are right, and were sent before: for a second, and then again if it goes on. */
static void replays(void **state)
{
    struct hosts h;
    ready(&h);
    flood.echo = (struct tb_datagram){
        .context = tb_context_plane(WORLD, TB_PLANE_COLLECTIVE), .job = 7, .piece = PIECE, .type = TB_DATAGRAM_DATA};
    flood.echoes = FLOOD;
    await(&h, true);
    uint64_t began = tb_clock_now_real();
    await(&h, false);
    assert_true(tb_clock_now_real() - began > UINT64_C(500000000));
    await(&h, true);
    flood.echoes = 0;
    await(&h, false);
    for (uint32_t i = 0; i < 10; i++)
        assert_false(goes_by_connections(&h));
    world_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers),
        cmocka_unit_test(replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
