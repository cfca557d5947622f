/* The shared-memory transport in one thread: what is exact. */
#include "transport/shm/shm_test.h"

/* Fills the ring from a to b with frames of one length and empties it again, often enough to wrap. */
static void fill_and_empty(struct pair *pair, uint32_t length)
{
    pair->sample->length = length;
    for (int round = 0; round < 20; round++) {
        uint64_t sent = 0, before = pair->b.frames, writable = pair->a.writable;
        while (rank_try(&pair->a, 1, pair->sample, false) == TB_OK)
            sent++;
        assert_true(sent >= 3);
        assert_int_equal(rank_try(&pair->a, 1, pair->sample, true), TB_AGAIN);
        assert_int_equal(pair->a.writable, writable);
        while (shm->poll(pair->b.transport) > 0)
            ;
        assert_int_equal(pair->b.frames, before + sent);
        assert_int_equal(shm->poll(pair->a.transport), 1);
        assert_int_equal(pair->a.writable, writable + 1);
        assert_int_equal(shm->poll(pair->a.transport), 0);
    }
}

static void test_full_ring(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    uint32_t longest = pair.a.transport->max_payload;
    const uint32_t lengths[] = {0, 8, 16, 17, 80, 81, 208, 209, 1000, longest - 63, longest - 1, longest};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        fill_and_empty(&pair, lengths[i]);
    pair.sample->envelope.message.flags = TB_MESSAGE_ROUTED;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        fill_and_empty(&pair, lengths[i]);
    pair_close(&pair);
}

static void test_full_ring_forbids_sleep_when_freed(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    pair.sample->length = pair.a.transport->max_payload;
    while (rank_try(&pair.a, 1, pair.sample, false) == TB_OK)
        ;
    assert_true(shm->arm(pair.a.transport));
    shm->disarm(pair.a.transport);
    while (shm->poll(pair.b.transport) > 0)
        ;
    assert_false(shm->arm(pair.a.transport));
    assert_int_equal(shm->poll(pair.a.transport), 1);
    assert_true(shm->arm(pair.a.transport));
    shm->disarm(pair.a.transport);
    pair_close(&pair);
}

static bool doorbell_rang(struct rank *rank)
{
    struct pollfd wait = {.fd = shm->descriptor(rank->transport), .events = POLLIN};
    return poll(&wait, 1, 0) == 1;
}

static void test_doorbell(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    assert_false(doorbell_rang(&pair.b));     /* nobody sleeps */
    assert_false(shm->arm(pair.b.transport)); /* an unknown sender has announced itself */
    assert_int_equal(shm->poll(pair.b.transport), 1);
    assert_true(shm->arm(pair.b.transport));
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    assert_true(doorbell_rang(&pair.b));
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK); /* not rung twice */
    uint64_t rings = 0;
    assert_int_equal(read(pair.host.doorbells[1], &rings, sizeof(rings)), sizeof(rings));
    assert_int_equal(rings, 1);
    shm->disarm(pair.b.transport);
    assert_false(doorbell_rang(&pair.b));
    assert_false(shm->arm(pair.b.transport));
    assert_int_equal(shm->deadline(pair.b.transport), TB_NEVER);
    pair_close(&pair);
}

/* A writer that sleeps because the ring is full is woken when the reader makes room. */
static void test_doorbell_for_room(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    pair.sample->length = 8;
    while (rank_try(&pair.a, 1, pair.sample, false) == TB_OK)
        ;
    assert_true(shm->arm(pair.a.transport));
    assert_false(doorbell_rang(&pair.a));
    while (shm->poll(pair.b.transport) > 0)
        ;
    assert_true(doorbell_rang(&pair.a));
    shm->disarm(pair.a.transport);
    assert_int_equal(shm->poll(pair.a.transport), 1);
    pair_close(&pair);
}

/* Long busy, then asleep: the word of the rank says so, and it is still woken. */
static void test_doorbell_after_busy_times(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    struct tb_shm_page *page = tb_shm_page_of(pair.host.segment, 1);
    assert_int_equal(page->state, 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1100; i++) {
            assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
            assert_int_equal(shm->poll(pair.b.transport), 1);
        }
        assert_true(page->state == 2 || page->state == 0); /* 0 where the kernel cannot fence for others */
        assert_true(shm->arm(pair.b.transport));
        assert_int_equal(page->state, 1);
        assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
        assert_true(doorbell_rang(&pair.b));
        shm->disarm(pair.b.transport);
        assert_int_equal(page->state, 0);
        assert_int_equal(shm->poll(pair.b.transport), 1);
    }
    pair_close(&pair);
}

static void test_opened(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    while (shm->poll(pair.b.transport) > 0)
        ;
    assert_int_equal(pair.b.opened, 1);
    assert_int_equal(pair.b.frames, 3);
    assert_ptr_equal(rank_reach(&pair.b, 0)->user, &pair.b);
    /* The answer comes from one that was asked for already. */
    pair.a.unchecked = true;
    assert_int_equal(rank_try(&pair.b, 0, pair.sample, false), TB_OK);
    assert_int_equal(shm->poll(pair.a.transport), 1);
    assert_int_equal(pair.a.opened, 0);
    pair_close(&pair);
}

/* Who leaves is missed after everything that it has sent; a sleeper is woken for it. */
static void test_leaving(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    assert_int_equal(shm->poll(pair.b.transport), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    rank_close(&pair.a);
    assert_false(shm->arm(pair.b.transport));
    while (shm->poll(pair.b.transport) > 0)
        assert_true(pair.b.broken == 0 || pair.b.frames == 4);
    assert_int_equal(pair.b.frames, 4);
    assert_int_equal(pair.b.broken, 1);
    assert_int_equal(pair.b.error, TB_ERR_CLOSED);
    assert_true(shm->arm(pair.b.transport)); /* it is said once */
    shm->disarm(pair.b.transport);
    assert_int_equal(shm->poll(pair.b.transport), 0);
    rank_close(&pair.b);
    free(pair.sample);
    host_end(&pair.host);
}

/* Nobody has heard of it before: of what it has sent and never announced to this one, or of itself. */
static void test_leaving_of_strangers(void **state)
{
    struct host host;
    struct rank ranks[3];
    host_make(&host, 3, 16 << 10);
    for (uint32_t i = 0; i < 3; i++)
        rank_open(&ranks[i], &host, i);
    assert_true(shm->arm(ranks[2].transport));
    rank_close(&ranks[0]);
    assert_true(doorbell_rang(&ranks[2]));
    shm->disarm(ranks[2].transport);
    assert_false(shm->arm(ranks[2].transport));
    assert_int_equal(shm->poll(ranks[2].transport), 1);
    assert_int_equal(ranks[2].opened, 1);
    assert_int_equal(ranks[2].broken, 1);
    struct sample *sample = calloc(1, sizeof *sample);
    assert_non_null(sample);
    struct tb_random random;
    tb_random_seed(&random, stream_seed(1, 2));
    sample_make(sample, &random, 64);
    ranks[2].unchecked = true;
    assert_int_equal(rank_try(&ranks[1], 2, sample, false), TB_OK);
    rank_close(&ranks[1]);
    while (!shm->arm(ranks[2].transport))
        shm->poll(ranks[2].transport);
    shm->disarm(ranks[2].transport);
    assert_int_equal(ranks[2].frames, 1);
    assert_int_equal(ranks[2].broken, 2);
    rank_close(&ranks[2]);
    free(sample);
    host_end(&host);
}

static void test_nonsense(void **state)
{
    static const uint64_t words[] = {1,
                                     (uint64_t)1 << 63,
                                     0xffffffffffffffff,
                                     (uint64_t)TB_RING_IS_RECORD << 32 | 5000,
                                     (uint64_t)(TB_RING_IS_RECORD | TB_RING_IS_BULK) << 32 | 8,
                                     (uint64_t)(TB_RING_IS_RECORD | TB_RING_IS_BULK) << 32 | 0xfffffff0};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct pair pair;
        pair_open(&pair, 16 << 10);
        assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
        size_t bulk = 16 << 10;
        struct tb_ring_memory *ring = tb_shm_ring_of(pair.host.segment, 2, 0, 1, bulk);
        atomic_store(&ring->units[0].word, words[i]);
        shm->poll(pair.b.transport);
        assert_int_equal(pair.b.frames, 0);
        assert_int_equal(pair.b.broken, 1);
        assert_int_equal(pair.b.error, TB_ERR_PROTOCOL);
        assert_int_equal(shm->poll(pair.b.transport), 0); /* said once */
        assert_true(shm->arm(pair.b.transport));
        shm->disarm(pair.b.transport);
        pair_close(&pair);
    }
}

static void test_kind_is_checked(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    pair.sample->envelope.message.kind = TB_KIND_COUNT;
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    shm->poll(pair.b.transport);
    assert_int_equal(pair.b.frames, 0);
    assert_int_equal(pair.b.error, TB_ERR_PROTOCOL);
    pair_close(&pair);
}

static void test_bad_arguments(void **state)
{
    struct host host;
    struct rank rank = {.host = &host};
    struct tb_transport *transport = NULL;
    host_make(&host, 2, 16 << 10);
    struct tb_transport_config config = rank_config(&rank, &host, 0);
    config.segment_bytes--;
    assert_int_equal(shm->open(&config, &transport), TB_ERR_ARGUMENT);
    config.segment_bytes++;
    config.local_index = 2;
    assert_int_equal(shm->open(&config, &transport), TB_ERR_LIMIT);
    config.local_index = 0;
    const int closed[] = {-1, -1};
    config.doorbells = closed;
    assert_int_equal(shm->open(&config, &transport), TB_ERR_SYSTEM);
    assert_null(transport);
    rank_open(&rank, &host, 0);
    struct tb_endpoint *endpoint = NULL, *again = NULL;
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB, 5}, &endpoint), TB_ERR_PEER);
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB + 1, 103}, &endpoint), TB_ERR_PEER);
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB, 103}, &endpoint), TB_OK);
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB, 103}, &again), TB_OK);
    assert_ptr_equal(endpoint, again);
    rank_close(&rank);
    host_end(&host);
}

/* Ranks that have only started have touched their own page and nothing else. */
static void test_memory_at_start(void **state)
{
    struct pair pair;
    pair_open(&pair, 128 << 10);
    assert_int_equal(shm->poll(pair.a.transport), 0);
    assert_true(shm->arm(pair.a.transport));
    shm->disarm(pair.a.transport);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (pair.host.bytes + page - 1) / page, touched = 0;
    unsigned char *resident = malloc(pages);
    assert_non_null(resident);
    assert_int_equal(mincore(pair.host.segment, pair.host.bytes, resident), 0);
    for (size_t i = 0; i < pages; i++)
        touched += resident[i] & 1;
    assert_true(touched <= 2);
    free(resident);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_ring),
        cmocka_unit_test(test_full_ring_forbids_sleep_when_freed),
        cmocka_unit_test(test_doorbell),
        cmocka_unit_test(test_doorbell_for_room),
        cmocka_unit_test(test_doorbell_after_busy_times),
        cmocka_unit_test(test_opened),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_leaving_of_strangers),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_kind_is_checked),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_memory_at_start),
    };
    if (tb_transports_load_params() != TB_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
