/* Ranks that wait for each other, or for one that has ended its part: they are told. Those that are only late are not.
 * Each rank is a thread with an engine of its own. */
#include "engine/window_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define LATE UINT64_C(700000000) /* ns: longer than it takes until somebody is asked */

/* ---- ranks as threads -------------------------------------------------------------------------------------------- */

static void (*part)(uint32_t rank);
static _Atomic uint32_t finished, wrong, told, ready;

/* In threads nothing may jump out. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition) && atomic_fetch_add(&wrong, 1) == 0)                                                          \
            print_error("%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, tb_error_story());                          \
    } while (0)

static void *rank_run(void *argument)
{
    uint32_t rank = (uint32_t)(uintptr_t)argument;
    part(rank);
    atomic_fetch_add(&finished, 1);
    while (atomic_load(&finished) < RANKS)
        tb_engine_progress(net.engines[rank]);
    return NULL;
}

static void run(void (*body)(uint32_t rank))
{
    pthread_t threads[RANKS];
    part = body;
    finished = wrong = told = ready = 0;
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rank_run, (void *)(uintptr_t)i), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
}

static void run_everywhere(void (*body)(uint32_t rank), uint32_t least)
{
    for (size_t v = 0; v < VARIANTS; v++) {
        begin(variants[v]);
        run(body);
        assert_true(told >= least);
        end();
    }
}

/* Computes, and looks after nobody. */
static void be_late(void)
{
    const struct timespec time = {.tv_nsec = LATE};
    nanosleep(&time, NULL);
}

static void await_ready(uint32_t rank, uint32_t count)
{
    while (atomic_load(&ready) < count)
        tb_engine_progress(net.engines[rank]);
}

/* ---- circles ----------------------------------------------------------------------------------------------------- */

/* Everybody waits for the next; who is told posts for the one before, and so on. */
static void start_before_post(uint32_t rank)
{
    uint32_t next = (rank + 1) % RANKS, previous = (rank + RANKS - 1) % RANKS;
    int error = tb_window_start(windows[rank], &next, 1, "start");
    MUST(error == TB_OK || (error == TB_ERR_EPOCH && strstr(tb_error_story(), "MPI_Win_post") != NULL));
    atomic_fetch_add(&told, error != TB_OK);
    MUST(tb_window_post(windows[rank], &previous, 1) == TB_OK);
    if (error != TB_OK)
        MUST(tb_window_start(windows[rank], &next, 1, "start") == TB_OK);
    MUST(tb_window_complete(windows[rank], &next, 1, "complete") == TB_OK);
    MUST(tb_window_wait(windows[rank], "wait") == TB_OK);
}

/* Two of them have what the other one wants. */
static void lock_crosswise(uint32_t rank)
{
    if (rank == 2)
        return;
    MUST(tb_window_lock(windows[rank], rank, true, "lock") == TB_OK);
    atomic_fetch_add(&ready, 1);
    await_ready(rank, 2);
    int error = tb_window_lock(windows[rank], 1 - rank, true, "lock");
    MUST(error == TB_OK || (error == TB_ERR_EPOCH && strstr(tb_error_story(), "MPI_Win_unlock") != NULL));
    atomic_fetch_add(&told, error != TB_OK);
    if (error == TB_OK)
        MUST(tb_window_unlock(windows[rank], 1 - rank, "unlock") == TB_OK);
    MUST(tb_window_unlock(windows[rank], rank, "unlock") == TB_OK);
    MUST(tb_window_lock(windows[rank], 1 - rank, true, "lock") == TB_OK); /* nobody has it, nor waits for it any more */
    MUST(tb_window_unlock(windows[rank], 1 - rank, "unlock") == TB_OK);
}

static void a_circle_is_told(void **state)
{
    run_everywhere(start_before_post, 1);
    run_everywhere(lock_crosswise, 1);
}

/* ---- who has ended ----------------------------------------------------------------------------------------------- */

static void leave_early(uint32_t rank)
{
    uint32_t both[] = {0, 1}, two = 2;
    if (rank == 2) { /* it has posted for one of the two, and has a lock */
        MUST(tb_window_post(windows[2], both, 1) == TB_OK);
        MUST(tb_window_lock(windows[2], 1, true, "lock") == TB_OK);
        tb_window_leave_for_good(windows[2]);
        atomic_fetch_add(&ready, 1);
        await_ready(2, 3);
        MUST(tb_window_unlock(windows[2], 1, "unlock") == TB_OK); /* for the sake of the test */
        atomic_fetch_add(&ready, 1);
        MUST(tb_window_wait(windows[2], "wait") == TB_OK);
        return;
    }
    await_ready(rank, 1);
    int error = tb_window_start(windows[rank], &two, 1, "start");
    MUST(error == (rank == 0 ? TB_OK : TB_ERR_EPOCH));
    if (rank == 0)
        MUST(tb_window_complete(windows[0], &two, 1, "complete") == TB_OK);
    error = tb_window_lock(windows[rank], 1, rank == 0, "lock");
    MUST(error == TB_ERR_EPOCH && strstr(tb_error_story(), "rank 2") != NULL);
    MUST(tb_window_lock(windows[rank], 2, true, "lock") == TB_OK); /* its memory is there as ever */
    MUST(tb_window_unlock(windows[rank], 2, "unlock") == TB_OK);
    atomic_fetch_add(&ready, 1);
    await_ready(rank, 4);
    MUST(tb_window_lock(windows[rank], 1, true, "lock") == TB_OK);
    MUST(tb_window_unlock(windows[rank], 1, "unlock") == TB_OK);
}

/* Of two one has ended; the other one is waited for. */
static void wait_for_two(uint32_t rank)
{
    uint32_t both[] = {1, 2}, first = 0;
    if (rank == 0) {
        MUST(tb_window_post(windows[0], both, 2) == TB_OK);
        MUST(tb_window_wait(windows[0], "wait") == TB_ERR_EPOCH && strstr(tb_error_story(), "rank 2") != NULL);
        MUST(memory[0][5] == 7);
    } else if (rank == 1) {
        char byte = 7;
        const struct tb_buffer from = bytes_of(&byte, 1);
        struct tb_access_target target = target_of(0, 5, 1, &tb_type_byte);
        be_late();
        MUST(tb_window_start(windows[1], &first, 1, "start") == TB_OK);
        tb_access_put(windows[1], &from, &target, NULL);
        MUST(tb_window_complete(windows[1], &first, 1, "complete") == TB_OK);
    } else {
        tb_window_leave_for_good(windows[2]);
    }
}

static void who_has_ended_is_not_waited_for(void **state)
{
    run_everywhere(leave_early, 0);
    run_everywhere(wait_for_two, 0);
}

/* ---- who is late ------------------------------------------------------------------------------------------------- */

/* One computes, one waits for it in the window, and one for that. */
static void be_slow(uint32_t rank)
{
    uint32_t next = rank + 1, previous = rank - 1;
    if (rank == 2)
        be_late();
    if (rank < 2) {
        MUST(tb_window_start(windows[rank], &next, 1, "start") == TB_OK);
        MUST(tb_window_complete(windows[rank], &next, 1, "complete") == TB_OK);
    }
    if (rank > 0) {
        MUST(tb_window_post(windows[rank], &previous, 1) == TB_OK);
        MUST(tb_window_wait(windows[rank], "wait") == TB_OK);
    }
    MUST(tb_window_lock(windows[rank], 1, true, "lock") == TB_OK);
    if (rank == 2)
        be_late();
    MUST(tb_window_unlock(windows[rank], 1, "unlock") == TB_OK);
}

static void who_is_late_is_waited_for(void **state)
{
    run_everywhere(be_slow, 0);
}

/* ---- strange frames ---------------------------------------------------------------------------------------------- */

static void nonsense_ends_the_connection(void **state)
{
    begin(variants[2]);
    struct tb_window_rank *one = &windows[0]->ranks[1];
    tb_window_tell(one, TB_KIND_ANSWER, 17, (uint64_t)TB_DEMANDED_POST << 32);   /* nobody has asked */
    tb_window_tell(one, TB_KIND_ASK, 17, (uint64_t)TB_DEMANDED_POST << 32 | 99); /* no such rank */
    tb_window_tell(one, TB_KIND_ASK, 18, (uint64_t)TB_DEMANDED_ENTER << 32);     /* no such context */
    loop_net_settle(&net);
    assert_int_equal(tb_peer_of(net.engines[1], 0)->error, TB_OK);
    tb_window_tell(one, TB_KIND_ASK, 19, UINT64_C(9) << 32);
    loop_net_settle(&net);
    assert_int_equal(tb_peer_of(net.engines[1], 0)->error, TB_ERR_PROTOCOL);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_circle_is_told),
        cmocka_unit_test(who_has_ended_is_not_waited_for),
        cmocka_unit_test(who_is_late_is_waited_for),
        cmocka_unit_test(nonsense_ends_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
