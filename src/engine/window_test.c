/* Windows on a network that has room for little and often none: what accesses do, their order and atomicity, locks and
 * epochs, and what is refused. Each rank is a thread with an engine of its own, which serves the others when it has
 * done its part. */
#include "engine/window_test.h"

#include <pthread.h>
#include <stdatomic.h>

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

/* Two pieces side by side are one, and one that is detached is none. */
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
    } tries[] = {{0, TB_OK}, {100, TB_OK}, {50, TB_OK}, {101, TB_ERR_ARGUMENT}, {300, TB_ERR_ARGUMENT}};
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

/* Who reaches whom without frames is known only when all have opened a window: the one that does not is served by a
 * standby. */
static bool is_reached;

static bool reaches(void *context, uint32_t rank)
{
    return is_reached;
}

static void who_is_not_reached_is_served_by_a_standby(void **state)
{
    static const struct tb_window_near near = {.reaches = reaches};
    for (int reached = 0; reached < 2; reached++) {
        begin(variants[0]);
        windows[0]->near = &near;
        is_reached = reached;
        tb_window_watch(windows[0]);
        assert_int_equal(windows[0]->watched, reached ? 0 : 1u << TB_STANDBY_HOST);
        tb_engine_stand_down(net.engines[0]);
        end();
    }
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
        cmocka_unit_test(who_is_not_reached_is_served_by_a_standby),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
