#include "agent/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define JOB  7u
#define LONG ((uint32_t)TB_FRAME_BUFFER_LIMIT)

static int add(struct tb_queue *queue, uint32_t source, uint32_t destination, enum tb_stream stream, uint32_t length)
{
    struct tb_frame_buffer *buffer = tb_frame_buffer_make(queue->pool, length);
    assert_non_null(buffer);
    buffer->source = (struct tb_proc){JOB, source};
    buffer->destination = (struct tb_proc){JOB, destination};
    buffer->stream = (uint8_t)stream;
    return tb_queue_add(queue, buffer);
}

/* The source of the next one; -1: none. */
static int pull(struct tb_queue *queue, enum tb_stream stream)
{
    struct tb_frame_buffer *buffer = tb_queue_pull(queue, stream);
    if (buffer == NULL)
        return -1;
    int source = (int)buffer->source.index;
    tb_frame_buffer_free(queue->pool, buffer);
    return source;
}

static void a_short_flow_does_not_wait_for_a_long_one(void **state)
{
    struct tb_frame_pool pool;
    struct tb_queue queue;
    assert_int_equal(tb_frame_pool_open(&pool, 48 << 20), TB_OK);
    tb_queue_open(&queue, &pool);
    for (int i = 0; i < 300; i++)
        assert_int_equal(add(&queue, 1, 2, TB_STREAM_BULK, LONG), TB_OK);
    for (int i = 0; i < 17; i++)
        assert_int_equal(pull(&queue, TB_STREAM_BULK), 1);
    assert_int_equal(add(&queue, 3, 2, TB_STREAM_BULK, TB_FRAME_BUFFER_HEAD + 8), TB_OK);
    int waited = 0;
    while (pull(&queue, TB_STREAM_BULK) != 3)
        waited++;
    assert_in_range(waited, 0, 1);
    /* The other class knows nothing of it. */
    assert_int_equal(pull(&queue, TB_STREAM_SHORT), -1);
    assert_int_equal(add(&queue, 4, 2, TB_STREAM_SHORT, TB_FRAME_BUFFER_HEAD), TB_OK);
    assert_int_equal(pull(&queue, TB_STREAM_SHORT), 4);
    tb_queue_close(&queue);
    assert_true(tb_queue_empty(&queue, TB_STREAM_BULK));
    tb_frame_pool_close(&pool);
}

static void turns_are_by_bytes(void **state)
{
    struct tb_frame_pool pool;
    struct tb_queue queue;
    uint64_t bytes[4] = {0};
    static const uint32_t lengths[4] = {LONG, 5000, 1100, TB_FRAME_BUFFER_HEAD + 8};
    assert_int_equal(tb_frame_pool_open(&pool, 1u << 30), TB_OK);
    tb_queue_open(&queue, &pool);
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t sum = 0; sum < 4u << 20; sum += lengths[k])
            assert_int_equal(add(&queue, k, 100 + k, TB_STREAM_BULK, lengths[k]), TB_OK);
    for (uint64_t all = 0; all < 8u << 20;) {
        int k = pull(&queue, TB_STREAM_BULK);
        assert_in_range(k, 0, 3);
        bytes[k] += lengths[k];
        all += lengths[k];
    }
    for (int k = 0; k < 4; k++)
        assert_in_range(bytes[k], (2 << 20) - 3 * LONG, (2 << 20) + 3 * LONG);
    tb_queue_close(&queue);
    tb_frame_pool_close(&pool);
}

static void one_flow_keeps_its_order(void **state)
{
    struct tb_frame_pool pool;
    struct tb_queue queue;
    assert_int_equal(tb_frame_pool_open(&pool, 1 << 20), TB_OK);
    tb_queue_open(&queue, &pool);
    for (uint32_t i = 0; i < 50; i++) {
        struct tb_frame_buffer *buffer = tb_frame_buffer_make(&pool, TB_FRAME_BUFFER_HEAD + 3 * i);
        memcpy(buffer->bytes, &i, sizeof i);
        buffer->stream = TB_STREAM_SHORT;
        assert_int_equal(tb_queue_add(&queue, buffer), TB_OK);
    }
    for (uint32_t i = 0, got; i < 50; i++) {
        struct tb_frame_buffer *buffer = tb_queue_pull(&queue, TB_STREAM_SHORT);
        assert_non_null(buffer);
        memcpy(&got, buffer->bytes, sizeof got);
        assert_int_equal(got, i);
        assert_int_equal(buffer->length, TB_FRAME_BUFFER_HEAD + 3 * i);
        tb_frame_buffer_free(&pool, buffer);
    }
    assert_null(tb_queue_pull(&queue, TB_STREAM_SHORT));
    assert_int_equal(pool.bytes, 0);
    tb_frame_pool_close(&pool);
}

static void limits_hold(void **state)
{
    struct tb_frame_pool pool;
    struct tb_queue queues[2];
    assert_int_equal(tb_frame_pool_open(&pool, 6 << 20), TB_OK);
    for (int i = 0; i < 2; i++)
        tb_queue_open(&queues[i], &pool);
    uint32_t kept = 0;
    while (add(&queues[kept % 2], kept % 5, 9, TB_STREAM_BULK, LONG) == TB_OK) /* one destination, several flows */
        kept++;
    assert_in_range(kept, (1 << 20) / LONG - 2, (1 << 20) / LONG);
    assert_int_equal(pool.dropped, 1);
    assert_int_equal(pool.dropped_bytes, LONG);
    assert_int_equal(add(&queues[0], 0, 10, TB_STREAM_BULK, LONG), TB_OK); /* others are not concerned */
    for (uint32_t i = 0; i < 2000; i++)
        add(&queues[0], 0, 20 + i % 50, TB_STREAM_BULK, LONG);
    assert_true(pool.bytes <= 6 << 20 && pool.bytes > (6 << 20) - 2 * LONG);
    assert_int_equal(pool.bytes_most > 0 && pool.bytes_most <= 6 << 20, 1);
    for (int i = 0; i < 2; i++)
        tb_queue_close(&queues[i]);
    assert_int_equal(pool.bytes, 0);
    assert_int_equal(pool.flow_count + pool.stock_count, 0);
    assert_true(pool.spare_bytes <= TB_FRAME_POOL_SPARE);
    tb_frame_pool_close(&pool);
}

/* Frames are cut by the rate of their way; however long they are, they take little more memory than that. */
static void frames_of_any_length_take_what_they_need(void **state)
{
    struct tb_frame_pool pool;
    assert_int_equal(tb_frame_pool_open(&pool, 6 << 20), TB_OK);
    for (uint32_t payload = TB_FRAME_BYTES_LEAST; payload <= TB_FRAME_BYTES_MOST; payload += 64) {
        struct tb_frame_buffer *buffer = tb_frame_buffer_make(&pool, TB_FRAME_BUFFER_HEAD + payload);
        assert_non_null(buffer);
        assert_in_range(buffer->weight, payload, payload + payload / 2);
        tb_frame_buffer_free(&pool, buffer);
    }
    tb_frame_pool_close(&pool);
}

/* However many take nothing, and in whatever order they have filled the pool: there is room for another one, and not
 * only for a word. What must go for it are long frames of those for whom most is there. */
static void who_has_most_gives_route(void **state)
{
    enum { DEAF = 200, LIMIT = 16 << 20 };
    struct tb_frame_pool pool;
    struct tb_queue queues[DEAF + 1];
    assert_int_equal(tb_frame_pool_open(&pool, LIMIT), TB_OK);
    for (uint32_t i = 0; i <= DEAF; i++)
        tb_queue_open(&queues[i], &pool);
    for (uint32_t i = 0; i < DEAF; i++) {
        assert_int_equal(add(&queues[i], 1, i, TB_STREAM_SHORT, TB_FRAME_BUFFER_HEAD + 8), TB_OK);
        for (int k = 0; k < 300; k++)
            add(&queues[i], 1 + k % 3, i, TB_STREAM_BULK, LONG);
        assert_true(queues[i].frames[TB_STREAM_BULK] >= 2);
    }
    assert_true(pool.bytes <= LIMIT && pool.bytes > LIMIT - 2 * LONG);
    for (int k = 0; k < 1000; k++) { /* one that takes what it gets */
        assert_int_equal(add(&queues[DEAF], 1, DEAF, TB_STREAM_SHORT, TB_FRAME_BUFFER_HEAD + 8), TB_OK);
        assert_int_equal(add(&queues[DEAF], 1, DEAF, TB_STREAM_BULK, LONG), TB_OK);
        assert_int_equal(pull(&queues[DEAF], TB_STREAM_SHORT), 1);
        assert_int_equal(pull(&queues[DEAF], TB_STREAM_BULK), 1);
    }
    assert_true(pool.bytes <= LIMIT && pool.bytes_most <= LIMIT);
    for (uint32_t i = 0; i < DEAF; i++) {
        assert_int_equal(queues[i].frames[TB_STREAM_SHORT], 1);
        assert_in_range(queues[i].frames[TB_STREAM_BULK], 1, 2 * LIMIT / DEAF / LONG + 1);
    }
    for (uint32_t i = 0; i <= DEAF; i++)
        tb_queue_close(&queues[i]);
    assert_int_equal(pool.bytes, 0);
    assert_int_equal(pool.flow_count + pool.stock_count, 0);
    tb_frame_pool_close(&pool);
}

/* One that is kept stays, whether it is pulled or dropped, until its keeper needs it no more. */
static void a_kept_one_comes_back(void **state)
{
    struct tb_frame_pool pool;
    struct tb_queue queue;
    struct tb_replay_pair *keeper = (struct tb_replay_pair *)&pool; /* only whether there is one matters */
    struct tb_frame_buffer *kept[3];
    assert_int_equal(tb_frame_pool_open(&pool, 6 << 20), TB_OK);
    tb_queue_open(&queue, &pool);
    for (int i = 0; i < 3; i++) {
        kept[i] = tb_frame_buffer_make(&pool, LONG);
        kept[i]->keeper = keeper;
        kept[i]->state = TB_FRAME_QUEUED;
        kept[i]->destination = (struct tb_proc){JOB, 1};
        assert_int_equal(tb_queue_add(&queue, kept[i]), TB_OK);
    }
    tb_frame_buffer_release(&pool, kept[1]); /* while it is in there */
    assert_ptr_equal(tb_queue_pull(&queue, TB_STREAM_SHORT), kept[0]);
    tb_frame_buffer_free(&pool, kept[0]);
    assert_int_equal(kept[0]->state, TB_FRAME_LEFT);
    assert_ptr_equal(pool.left.next, &kept[0]->node);
    tb_frame_buffer_release(&pool, kept[0]);
    assert_true(tb_list_empty(&pool.left));
    tb_queue_close(&queue);
    assert_ptr_equal(pool.left.next, &kept[2]->node);
    tb_frame_buffer_release(&pool, kept[2]);
    assert_true(tb_list_empty(&pool.left));
    tb_frame_pool_close(&pool);
}

/* Many flows come and go; nothing is lost and nothing is left. */
static void many_flows(void **state)
{
    struct tb_frame_pool pool;
    struct tb_queue queues[3];
    uint64_t in = 0, out = 0, seed = 1;
    assert_int_equal(tb_frame_pool_open(&pool, 64 << 20), TB_OK);
    for (int i = 0; i < 3; i++)
        tb_queue_open(&queues[i], &pool);
    for (int i = 0; i < 40000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(seed >> 33);
        enum tb_stream stream = (enum tb_stream)(r >> 20 & 1);
        if (i < 20000 || (r & 1))
            in += add(&queues[r % 3], r >> 8 & 255, r >> 16 & 63, stream, TB_FRAME_BUFFER_HEAD + r % 500) == TB_OK;
        else
            out += pull(&queues[r % 3], stream) >= 0;
    }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < TB_STREAM_COUNT; k++)
            while (pull(&queues[i], (enum tb_stream)k) >= 0)
                out++;
    assert_int_equal(in, out);
    assert_int_equal(pool.bytes, 0);
    assert_int_equal(pool.flow_count + pool.stock_count, 0);
    tb_frame_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_short_flow_does_not_wait_for_a_long_one),
                                       cmocka_unit_test(turns_are_by_bytes),
                                       cmocka_unit_test(one_flow_keeps_its_order),
                                       cmocka_unit_test(limits_hold),
                                       cmocka_unit_test(frames_of_any_length_take_what_they_need),
                                       cmocka_unit_test(who_has_most_gives_route),
                                       cmocka_unit_test(a_kept_one_comes_back),
                                       cmocka_unit_test(many_flows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
