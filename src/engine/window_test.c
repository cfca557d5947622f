/* Windows on a simulated network, which has room for little and often none: what accesses do, their order and
 * atomicity, locks and epochs, what is refused, and what becomes of all that when a process goes. Each rank is a thread
 * with an engine of its own, which serves the others when it has done its part. */
#include "engine/message_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define RANKS 3u
#define BYTES 400000u

#define INT64_TYPE 0x258u

static struct loop_net net;
static struct tb_window *windows[RANKS];
static char *memory[RANKS];
static bool dynamic;

struct variant {
    bool remote, tight; /* other hosts; there is no room every third time */
};
static const struct variant variants[] = {{false, false}, {false, true}, {true, false}, {true, true}};
#define VARIANTS (sizeof variants / sizeof *variants)

static void begin(struct variant v)
{
    loop_net_init(&net, RANKS);
    net.remote = v.remote;
    net.sim.again = v.tight ? 30 * LOOP_PERCENT : 0;
    loop_net_open(&net, false);
    for (uint32_t i = 0; i < RANKS; i++) {
        memory[i] = calloc(1, BYTES);
        const struct tb_window_config config = {.channel = net.channels[i],
                                                .base = dynamic ? NULL : memory[i],
                                                .size = dynamic ? 0 : BYTES,
                                                .dynamic = dynamic};
        assert_int_equal(tb_window_open(net.engines[i], &config, &windows[i]), TB_OK);
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        tb_window_close(windows[i]);
        free(memory[i]);
    }
    loop_net_close(&net);
}

/* ---- ranks as threads -------------------------------------------------------------------------------------------- */

static void (*part)(uint32_t rank);
static _Atomic uint32_t finished, wrong;

/* In threads nothing may jump out. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition) && atomic_fetch_add(&wrong, 1) == 0)                                                          \
            print_error("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                \
    } while (0)

static void serve_until(uint32_t rank, uint32_t count)
{
    while (atomic_load(&finished) < count)
        tb_engine_progress(net.engines[rank]);
}

static void *rank_run(void *argument)
{
    uint32_t rank = (uint32_t)(uintptr_t)argument;
    part(rank);
    atomic_fetch_add(&finished, 1);
    serve_until(rank, RANKS);
    return NULL;
}

static void run(void (*body)(uint32_t rank))
{
    pthread_t threads[RANKS];
    part = body;
    finished = wrong = 0;
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rank_run, (void *)(uintptr_t)i), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
}

static struct tb_access_target target_of(uint32_t rank, uint64_t at, uint64_t count, const struct tb_type *type)
{
    return (struct tb_access_target){rank, {(void *)(uintptr_t)at, count, type}};
}

static const struct tb_type *int64_type(void)
{
    return tb_type_predefined(INT64_TYPE);
}

static int64_t *number_at(uint32_t rank, uint64_t at)
{
    return (int64_t *)(void *)(memory[rank] + at);
}

/* ---- put and get ------------------------------------------------------------------------------------------------- */

static void put_and_get(uint32_t rank)
{
    static const uint64_t lengths[] = {0, 1, 8, 127, 4055, 4056, 4096, 4097, 16384, 16385, 131072, 131073, 300001};
    static char from[2][BYTES], back[2][BYTES];
    if (rank == RANKS - 1)
        return;
    uint32_t to = rank == 0 ? 1 : 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint64_t n = lengths[i];
        struct tb_access_target target = target_of(to, 1000 + i, n, &tb_type_byte);
        const struct tb_buffer origin = bytes_of(from[rank], n), result = bytes_of(back[rank], n);
        fill(from[rank], n, (uint32_t)i + rank);
        memset(back[rank], 0, BYTES);
        tb_access_put(windows[rank], &origin, &target, NULL);
        MUST(tb_window_flush(windows[rank], to, "put") == TB_OK);
        tb_access_get(windows[rank], &result, &target, NULL);
        MUST(tb_window_flush_local(windows[rank], TB_ANY_RANK, "get") == TB_OK);
        MUST(memcmp(from[rank], back[rank], n) == 0 && back[rank][n] == 0);
    }
}

static void what_is_put_is_got(void **state)
{
    for (size_t v = 0; v < VARIANTS; v++) {
        begin(variants[v]);
        run(put_and_get);
        assert_int_equal(memory[0][999], 0);
        assert_int_equal(memory[0][1012 + 300001], 0);
        end();
    }
}

/* Types with gaps on both sides, to another process and to itself. */
static void put_strides(uint32_t rank)
{
    static int64_t from[RANKS][3000], back[RANKS][3000];
    struct tb_type *stride, *sparse;
    MUST(tb_type_vector(1000, 1, 3, int64_type(), true, &stride) == TB_OK);
    MUST(tb_type_vector(500, 2, 5, int64_type(), true, &sparse) == TB_OK);
    tb_type_commit(stride);
    tb_type_commit(sparse);
    for (int i = 0; i < 3000; i++)
        from[rank][i] = i + 10000 * (int64_t)rank;
    uint32_t to = (rank + 1) % 2; /* the last one to itself as well */
    to = rank == 2 ? 2 : to;
    struct tb_access_target target = target_of(to, 80, 1, sparse);
    const struct tb_buffer origin = {from[rank], 1, stride}, result = {back[rank], 1000, int64_type()};
    struct tb_request request = {.complete = NULL};
    tb_access_put(windows[rank], &origin, &target, NULL);
    MUST(tb_window_flush(windows[rank], TB_ANY_RANK, "put") == TB_OK);
    tb_access_get(windows[rank], &result, &target, &request);
    tb_type_release(stride); /* both are held as long as they are needed */
    tb_type_release(sparse);
    tb_request_wait(&request);
    MUST(request.status.error == TB_OK);
    for (int i = 0; i < 1000; i++)
        MUST(back[rank][i] == from[rank][3 * i]);
}

static void strides_fit_each_other(void **state)
{
    for (size_t v = 0; v < VARIANTS; v++) {
        begin(variants[v]);
        run(put_strides);
        for (int i = 0; i < 500; i++)
            for (int k = 0; k < 5; k++)
                assert_int_equal(*number_at(2, 80 + 8 * (uint64_t)(5 * i + k)), k < 2 ? 20000 + 3 * (2 * i + k) : 0);
        end();
    }
}

/* ---- what combines ----------------------------------------------------------------------------------------------- */

#define TURNS 60

/* Everybody adds to two places of rank 0; no value is fetched twice. Long ones beside it keep their elements whole. */
static int64_t fetched[RANKS][TURNS];

static void add(uint32_t rank)
{
    static int64_t many[RANKS][5000];
    const struct tb_op *sum = tb_op_of_code(TB_OP_SUM);
    int64_t one = 1;
    const struct tb_buffer operand = {&one, 1, int64_type()}, operands = {many[rank], 5000, int64_type()};
    struct tb_access_target target = target_of(0, 8, 1, int64_type()), long_one = target_of(0, 800, 5000, int64_type());
    for (int i = 0; i < 5000; i++)
        many[rank][i] = i;
    for (int i = 0; i < TURNS; i++) {
        const struct tb_buffer result = {&fetched[rank][i], 1, int64_type()};
        tb_access_fetch(windows[rank], &operand, &result, &target, sum, NULL);
        if (i % 30 == 0)
            tb_access_accumulate(windows[rank], &operands, &long_one, sum, NULL);
    }
    MUST(tb_window_flush(windows[rank], 0, "add") == TB_OK);
}

static void nothing_that_is_added_gets_lost(void **state)
{
    for (size_t v = 0; v < VARIANTS; v++) {
        static bool seen[RANKS * TURNS];
        begin(variants[v]);
        memset(seen, 0, sizeof seen);
        run(add);
        assert_int_equal(*number_at(0, 8), RANKS * TURNS);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            for (int i = 0; i < TURNS; i++) {
                assert_true(fetched[rank][i] >= 0 && fetched[rank][i] < RANKS * TURNS && !seen[fetched[rank][i]]);
                assert_true(i == 0 || fetched[rank][i] > fetched[rank][i - 1]);
                seen[fetched[rank][i]] = true;
            }
        for (int i = 0; i < 5000; i++)
            assert_int_equal(*number_at(0, 800 + 8 * (uint64_t)i), (int64_t)i * RANKS * 2);
        end();
    }
}

/* Of one origin each sees what the one before has left, short or long, and the last one stays. */
static void replace(uint32_t rank)
{
    static int64_t values[40][3000], before[40][3000];
    if (rank != 1)
        return;
    for (int i = 0; i < 40; i++) {
        uint64_t count = i % 3 == 0 ? 3000 : 1;
        for (uint64_t k = 0; k < count; k++)
            values[i][k] = i + 1;
        const struct tb_buffer origin = {values[i], count, int64_type()}, result = {before[i], count, int64_type()};
        struct tb_access_target target = target_of(0, 0, count, int64_type());
        tb_access_fetch(windows[1], &origin, &result, &target, tb_op_of_code(TB_OP_REPLACE), NULL);
    }
    MUST(tb_window_flush(windows[1], 0, "replace") == TB_OK);
    for (int i = 0; i < 40; i++)
        MUST(before[i][0] == i);
}

static void order_is_kept(void **state)
{
    for (size_t v = 0; v < VARIANTS; v++) {
        begin(variants[v]);
        run(replace);
        assert_int_equal(*number_at(0, 0), 40);
        assert_int_equal(*number_at(0, 8), 40); /* of the 39th, which is long */
        end();
    }
}

/* A lock made of compare and swap. */
static void swap(uint32_t rank)
{
    struct tb_access_target word = target_of(2, 16, 1, int64_type()), sum = target_of(2, 24, 1, int64_type());
    for (int i = 0; i < 6; i++) {
        int64_t free_word = 0, mine = rank + 1, old, value;
        do {
            tb_access_compare(windows[rank], &mine, &free_word, &old, &word);
            MUST(tb_window_flush(windows[rank], 2, "swap") == TB_OK);
        } while (old != 0);
        const struct tb_buffer buffer = {&value, 1, int64_type()};
        tb_access_get(windows[rank], &buffer, &sum, NULL);
        MUST(tb_window_flush(windows[rank], 2, "swap") == TB_OK);
        value++;
        tb_access_put(windows[rank], &buffer, &sum, NULL);
        MUST(tb_window_flush(windows[rank], 2, "swap") == TB_OK);
        tb_access_compare(windows[rank], &free_word, &mine, &old, &word);
        MUST(tb_window_flush(windows[rank], 2, "swap") == TB_OK);
        MUST(old == mine);
    }
}

static void one_of_those_who_compare_swaps(void **state)
{
    for (size_t v = 1; v < 3; v++) {
        begin(variants[v]);
        run(swap);
        assert_int_equal(*number_at(2, 24), 6 * RANKS);
        end();
    }
}

/* ---- locks and epochs -------------------------------------------------------------------------------------------- */

static void count_locked(uint32_t rank)
{
    struct tb_access_target target = target_of(1, 40, 1, int64_type());
    for (int i = 0; i < 8; i++) {
        int64_t value;
        const struct tb_buffer buffer = {&value, 1, int64_type()};
        MUST(tb_window_lock(windows[rank], 1, true, "lock") == TB_OK);
        tb_access_get(windows[rank], &buffer, &target, NULL);
        MUST(tb_window_flush(windows[rank], 1, "lock") == TB_OK);
        value++;
        tb_access_put(windows[rank], &buffer, &target, NULL);
        MUST(tb_window_unlock(windows[rank], 1, "unlock") == TB_OK);
        MUST(tb_window_lock_all(windows[rank], "lock all") == TB_OK);
        for (uint32_t to = 0; to < RANKS; to++) {
            struct tb_access_target also = target_of(to, 48 + 8 * rank, 1, int64_type());
            const struct tb_op *sum = tb_op_of_code(TB_OP_SUM);
            static int64_t one = 1;
            const struct tb_buffer operand = {&one, 1, int64_type()};
            tb_access_accumulate(windows[rank], &operand, &also, sum, NULL);
        }
        MUST(tb_window_unlock_all(windows[rank], "unlock all") == TB_OK);
    }
}

static void locks_exclude(void **state)
{
    for (size_t v = 1; v < 3; v++) {
        begin(variants[v]);
        run(count_locked);
        assert_int_equal(*number_at(1, 40), 8 * RANKS);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            for (uint32_t from = 0; from < RANKS; from++)
                assert_int_equal(*number_at(rank, 48 + 8 * from), 8);
        end();
    }
}

/* Each is both sides, with one neighbour and the other. */
static void expose(uint32_t rank)
{
    static char from[RANKS][50000];
    uint32_t right = (rank + 1) % RANKS, left = (rank + RANKS - 1) % RANKS;
    struct tb_access_target target = target_of(right, 64, 50000, &tb_type_byte);
    const struct tb_buffer origin = bytes_of(from[rank], 50000);
    for (int i = 0; i < 6; i++) {
        memset(from[rank], i + (int)rank, 50000);
        MUST(tb_window_post(windows[rank], &left, 1) == TB_OK);
        MUST(tb_window_start(windows[rank], &right, 1, "start") == TB_OK);
        tb_access_put(windows[rank], &origin, &target, NULL);
        MUST(tb_window_complete(windows[rank], &right, 1, "complete") == TB_OK);
        if (i % 2 == 0) {
            MUST(tb_window_wait(windows[rank], "wait") == TB_OK);
        } else {
            bool done = false;
            while (!done)
                MUST(tb_window_test(windows[rank], &done) == TB_OK);
        }
        MUST(memory[rank][64] == i + (int)left && memory[rank][64 + 49999] == i + (int)left);
    }
}

static void what_was_completed_is_there(void **state)
{
    for (size_t v = 1; v < 3; v++) {
        begin(variants[v]);
        run(expose);
        end();
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void access_outside(uint32_t rank)
{
    static char bytes[64];
    if (rank != 1)
        return;
    const struct tb_buffer buffer = bytes_of(bytes, 64);
    static const uint64_t places[] = {BYTES - 63, BYTES, UINT64_MAX - 10};
    memset(bytes, 1, sizeof bytes);
    for (int i = 0; i < 3; i++)
        for (uint32_t to = 0; to < 2; to++) { /* itself, too */
            struct tb_access_target outside = target_of(to, places[i], 64, &tb_type_byte);
            struct tb_request request = {.complete = NULL};
            tb_access_put(windows[1], &buffer, &outside, NULL);
            MUST(tb_window_flush(windows[1], to, "put") == TB_ERR_ARGUMENT);
            MUST(strstr(tb_error_story(), "refused") != NULL);
            MUST(tb_window_flush(windows[1], TB_ANY_RANK, "put") == TB_OK);
            tb_access_get(windows[1], &buffer, &outside, &request);
            tb_request_wait(&request);
            MUST(request.status.error == TB_ERR_ARGUMENT);
            MUST(tb_window_flush(windows[1], TB_ANY_RANK, "get") == TB_OK);
            tb_access_accumulate(windows[1], &buffer, &outside, tb_op_of_code(TB_OP_REPLACE), NULL);
            MUST(tb_window_flush(windows[1], TB_ANY_RANK, "accumulate") == TB_ERR_ARGUMENT);
        }
}

static void nothing_outside_is_touched(void **state)
{
    for (size_t v = 0; v < VARIANTS; v++) {
        begin(variants[v]);
        run(access_outside);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            for (uint32_t i = 0; i < BYTES; i++)
                assert_int_equal(memory[rank][i], 0);
        end();
    }
}

/* Two pieces side by side are two, and one that is detached is none. */
static void access_attached(uint32_t rank)
{
    static char bytes[200];
    const struct tb_buffer buffer = bytes_of(bytes, 100);
    uintptr_t at = (uintptr_t)memory[0];
    if (rank != 1)
        return;
    static const struct {
        uint64_t from;
        int error;
    } tries[] = {{0, TB_OK}, {100, TB_OK}, {50, TB_ERR_ARGUMENT}, {101, TB_ERR_ARGUMENT}, {300, TB_ERR_ARGUMENT}};
    for (int i = 0; i < 5; i++) {
        struct tb_access_target target = target_of(0, at + tries[i].from, 100, &tb_type_byte);
        tb_access_put(windows[1], &buffer, &target, NULL);
        MUST(tb_window_flush(windows[1], 0, "put") == tries[i].error);
    }
}

static void only_what_is_attached_is_accessed(void **state)
{
    dynamic = true;
    for (size_t v = 0; v < VARIANTS; v++) {
        begin(variants[v]);
        assert_int_equal(tb_window_attach(windows[0], memory[0] + 100, 100), TB_OK);
        assert_int_equal(tb_window_attach(windows[0], memory[0] + 300, 100), TB_OK);
        assert_int_equal(tb_window_attach(windows[0], memory[0], 100), TB_OK);
        assert_int_equal(tb_window_attach(windows[0], memory[0] + 50, 10), TB_ERR_ARGUMENT);
        assert_int_equal(tb_window_attach(windows[0], memory[0] + 299, 2), TB_ERR_ARGUMENT);
        assert_int_equal(tb_window_attach(windows[0], memory[0] + 300, UINT64_MAX), TB_ERR_ARGUMENT);
        assert_int_equal(tb_window_detach(windows[0], memory[0] + 301), TB_ERR_ARGUMENT);
        assert_int_equal(tb_window_detach(windows[0], memory[0] + 300), TB_OK);
        run(access_attached);
        end();
    }
    dynamic = false;
}

/* ---- what makes no sense ----------------------------------------------------------------------------------------- */

/* As if process 1 had sent it to process 0; whether that has had enough of it. */
static bool give(const struct tb_message *m, const void *payload, size_t length)
{
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    up->frame(up->context, tb_sim_endpoint(&net.sim, 0, 1), NULL, m, payload, length);
    return tb_peer_of(net.engines[0], 1)->error == TB_ERR_PROTOCOL;
}

/* Process 0 knows process 1. */
static void begin_heard(void)
{
    struct tb_request s, r;
    begin(variants[2]);
    post_receive(&net, &r, 0, 1, 3, EXACT, 10);
    post_send(&net, &s, 1, 0, 3, 10, TB_MODE_STANDARD);
    loop_net_settle(&net);
    assert_true(tb_request_done(&r));
}

static void end_broken(void)
{
    loop_net_settle(&net);
    end();
}

struct forged {
    struct tb_message m;
    struct tb_access_head head;
    struct tb_access_run run;
    uint64_t data;
    bool senseless;
};

static size_t forge(const struct forged *f, uint8_t *to)
{
    tb_wire_put_access_head(to, &f->head);
    to[offsetof(struct tb_access_head, zero)] = (uint8_t)f->head.zero;
    tb_wire_put_access_run(to + TB_ACCESS_HEAD_BYTES, &f->run);
    return TB_ACCESS_HEAD_BYTES + TB_ACCESS_RUN_BYTES + f->data;
}

static void frames_are_checked(void **state)
{
    static uint8_t frame[1000];
    const struct forged all[] = {
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, false},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 2}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 77}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {200, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x06, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 1, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 2, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 0, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 4, 2}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 7, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {TB_OP_BAND, 0x14, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_PUT_RUNS, .length = 8, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 8, false},
        {{.kind = TB_KIND_PUT_RUNS, .length = 8, .source_rank = 1}, {0, 1, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_PUT_RUNS, .length = 9, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 9, true},
        {{.kind = TB_KIND_PUT_RUNS, .length = 8, .source_rank = 1, .offset = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_GET, .length = 8, .match = 5, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 0, false},
        {{.kind = TB_KIND_GET, .length = 8, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 0, true},
        {{.kind = TB_KIND_GET, .length = 200000, .match = 5, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 200000, 1}, 0, true},
        {{.kind = TB_KIND_COMPARE, .length = 8, .match = 5, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 16, false},
        {{.kind = TB_KIND_COMPARE, .length = 8, .match = 5, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_COMPARE, .length = 6, .match = 5, .source_rank = 1}, {0, 0x2c, 0, 1, 0}, {0, 0, 8, 1}, 12, true},
        {{.kind = TB_KIND_LOCK, .length = 2, .source_rank = 1}, {0}, {0}, 0, false},
        {{.kind = TB_KIND_LOCK, .length = 3, .source_rank = 1}, {0}, {0}, 0, true},
        {{.kind = TB_KIND_APPLIED, .length = 1000, .source_rank = 1}, {0}, {0}, 0, false},
        {{.kind = TB_KIND_COMPLETE, .length = 3, .source_rank = 1}, {0}, {0}, 0, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        begin_heard();
        struct tb_message m = all[i].m;
        bool word = m.kind >= TB_KIND_FLUSH;
        m.context = windows[0]->context;
        memset(frame, 0, sizeof frame);
        size_t length = forge(&all[i], frame);
        assert_int_equal(give(&m, frame, word ? 0 : length), all[i].senseless);
        end_broken();
    }
}

/* Whoever asks about a window that is gone is told, and does not wait. */
static void a_window_that_is_gone_is_told(void **state)
{
    static char bytes[10];
    const struct tb_buffer buffer = bytes_of(bytes, 10);
    struct tb_access_target target = target_of(0, 0, 10, &tb_type_byte);
    struct tb_request request = {.complete = NULL};
    begin(variants[2]);
    tb_window_close(windows[0]);
    tb_access_put(windows[1], &buffer, &target, NULL);
    tb_access_get(windows[1], &buffer, &target, &request);
    loop_net_settle(&net);
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_ARGUMENT);
    assert_int_equal(tb_window_flush(windows[1], 0, "flush"), TB_ERR_ARGUMENT);
    tb_window_tell(&windows[1]->ranks[0], TB_KIND_LOCK, 0, TB_LOCK_SHARED);
    windows[1]->ranks[0].locking = TB_LOCK_SHARED;
    loop_net_settle(&net);
    assert_int_equal(windows[1]->ranks[0].locking, TB_LOCK_NONE);
    const struct tb_window_config config = {.channel = net.channels[0], .base = memory[0], .size = BYTES};
    assert_int_equal(tb_window_open(net.engines[0], &config, &windows[0]), TB_OK);
    tb_window_flush(windows[1], TB_ANY_RANK, "flush");
    end();
}

/* ---- processes that go ------------------------------------------------------------------------------------------- */

/* Process 0 goes while process 1 waits for a result of it and holds its lock, and 2 waits for that of 1, which 0 has. */
static void nobody_waits_for_who_is_gone(void **state)
{
    static char bytes[10];
    const struct tb_buffer buffer = bytes_of(bytes, 10);
    struct tb_access_target target = target_of(0, 0, 10, &tb_type_byte);
    struct tb_request request = {.complete = NULL};
    begin(variants[2]);
    windows[0]->ranks[1].locking = TB_LOCK_EXCLUSIVE;
    tb_window_tell(&windows[0]->ranks[1], TB_KIND_LOCK, 0, TB_LOCK_EXCLUSIVE);
    loop_net_settle(&net);
    assert_int_equal(windows[0]->ranks[1].locked, TB_LOCK_EXCLUSIVE);
    windows[2]->ranks[1].locking = TB_LOCK_SHARED;
    tb_window_tell(&windows[2]->ranks[1], TB_KIND_LOCK, 0, TB_LOCK_SHARED);
    loop_net_settle(&net);
    assert_int_equal(windows[2]->ranks[1].locked, TB_LOCK_NONE);
    tb_access_put(windows[1], &buffer, &target, NULL);
    tb_access_get(windows[1], &buffer, &target, &request);
    uint32_t rank = 0;
    assert_int_equal(tb_window_post(windows[1], &rank, 1), TB_OK);
    tb_error(TB_ERR_PEER, "it was ended");
    tb_engine_lost(net.engines[1], (struct tb_proc){7, 0}, TB_ERR_PEER);
    for (int i = 0; i < 10; i++) {
        tb_engine_progress(net.engines[1]);
        tb_engine_progress(net.engines[2]);
    }
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_PEER);
    assert_int_equal(tb_window_flush(windows[1], 0, "flush"), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "it was ended"));
    assert_int_equal(tb_window_wait(windows[1], "wait"), TB_ERR_PEER);
    assert_int_equal(tb_window_lock(windows[1], 0, true, "lock"), TB_ERR_PEER);
    assert_int_equal(tb_window_start(windows[1], &rank, 1, "start"), TB_ERR_PEER);
    assert_int_equal(tb_window_post(windows[1], &rank, 1), TB_ERR_PEER);
    assert_int_equal(windows[2]->ranks[1].locked, TB_LOCK_SHARED); /* which is free now */
    tb_access_put(windows[1], &buffer, &target, NULL);
    assert_int_equal(tb_window_flush(windows[1], 0, "flush"), TB_ERR_PEER);
    assert_int_equal(tb_window_flush(windows[1], TB_ANY_RANK, "flush"), TB_OK);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_got),
        cmocka_unit_test(strides_fit_each_other),
        cmocka_unit_test(nothing_that_is_added_gets_lost),
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(one_of_those_who_compare_swaps),
        cmocka_unit_test(locks_exclude),
        cmocka_unit_test(what_was_completed_is_there),
        cmocka_unit_test(nothing_outside_is_touched),
        cmocka_unit_test(only_what_is_attached_is_accessed),
        cmocka_unit_test(frames_are_checked),
        cmocka_unit_test(a_window_that_is_gone_is_told),
        cmocka_unit_test(nobody_waits_for_who_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
