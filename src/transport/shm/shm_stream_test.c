/* The shared-memory transport between threads and processes, awake and asleep. */
#include "transport/shm/shm_test.h"

/* ---- streams between ranks, as threads and as processes ---------------------------------------------------------- */

static void run_plans(struct plan *plans, uint32_t count, bool processes)
{
    pid_t children[RANKS_MOST];
    pthread_t threads[RANKS_MOST];
    for (uint32_t i = 0; i < count; i++) {
        if (processes)
            children[i] = start_child(plan_run, &plans[i]);
        else
            assert_int_equal(pthread_create(&threads[i], NULL, plan_run, &plans[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (processes)
            end_child(children[i]);
        else
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void run_streams(uint32_t ranks, uint64_t ring, uint64_t count, bool to_first_only, bool asleep, bool processes)
{
    struct host host;
    struct plan plans[RANKS_MOST];
    host_make(&host, ranks, ring);
    for (uint32_t i = 0; i < ranks; i++) {
        plans[i] = (struct plan){.host = &host, .index = i, .count = count, .asleep = asleep};
        if (!to_first_only) {
            plans[i].targets = ((uint64_t)1 << ranks) - 1; /* itself too */
            plans[i].expected = count * ranks;
        } else {
            plans[i].targets = i > 0;
            plans[i].expected = i > 0 ? 0 : count * (ranks - 1);
        }
    }
    run_plans(plans, ranks, processes);
    host_end(&host);
}

static void test_streams_of_threads(void **state)
{
    run_streams(2, 64 << 10, 3000, false, true, false);
}

static void test_streams_of_processes(void **state)
{
    run_streams(2, 128 << 10, 5000, false, true, true);
    run_streams(2, 8 << 10, 3000, false, true, true);
}

static void test_many_senders(void **state)
{
    run_streams(7, 16 << 10, 600, true, true, true);
}

static void test_everybody_to_everybody(void **state)
{
    run_streams(5, 32 << 10, 300, false, true, true);
}

static void test_alone(void **state)
{
    run_streams(1, 64 << 10, 500, false, false, true);
}

/* ---- sleeping under load ----------------------------------------------------------------------------------------- */

/* One sends two frames and waits for the answer to the second. The other sleeps after the first, and the second comes
 * at about the moment when it falls asleep, which it tells through `seen`. Bursts make it busy now and then, so that
 * every way to sleep is gone. A wake-up that is lost is seen by both: nothing else would wake them. */
#define NAP_TIME 4000000000u /* nanoseconds */

struct nap {
    struct host *host;
    uint32_t index;
    int rounds;
    _Atomic uint64_t *seen;
};

static void nap_post(struct rank *rank, struct sample *sample)
{
    while (rank_try(rank, 1 - rank->index, sample, false) == TB_AGAIN) {
        if (shm->poll(rank->transport) == 0)
            rank_sleep(rank);
    }
}

static void nap_dawdle(struct tb_random *random)
{
    for (uint64_t spin = tb_random_below(random, 1500); spin > 0; spin--)
        __asm__ volatile("" ::: "memory");
}

static void nap_await(struct rank *rank, uint64_t frames, struct tb_random *random)
{
    while (rank->frames < frames) {
        if (shm->poll(rank->transport) == 0) {
            nap_dawdle(random);
            rank_sleep(rank);
        }
    }
}

static void nap_ask(struct rank *rank, struct sample *sample, _Atomic uint64_t *seen, int rounds)
{
    struct tb_random random;
    tb_random_seed(&random, 5);
    uint64_t sent = 0;
    uint64_t start = tb_clock_now_real();
    for (int i = 0; i < rounds && sample->envelope.message.match != LAST; i++) {
        for (uint64_t burst = i % 8 == 4 ? 1200 : 1; burst > 0; burst--, sent++)
            nap_post(rank, sample);
        for (uint64_t look = 1; atomic_load_explicit(seen, memory_order_relaxed) < sent; look++) {
            if (look % 4096 == 0)
                usleep(20); /* not sched_yield: who yields again and again may be put off for seconds */
        }
        nap_dawdle(&random);
        /* On a crowded machine a round takes milliseconds. */
        if (i == rounds - 1 || tb_clock_now_real() - start > NAP_TIME)
            sample->envelope.message.match = LAST;
        nap_post(rank, sample);
        sent++;
        nap_await(rank, (uint64_t)i + 1, &random);
    }
}

static void nap_answer(struct rank *rank, struct sample *sample)
{
    struct tb_random random;
    tb_random_seed(&random, 6);
    uint64_t expected = 0;
    for (int i = 0; !rank->last; i++) {
        nap_await(rank, expected += i % 8 == 4 ? 1201 : 2, &random);
        nap_post(rank, sample);
    }
    TB_ASSERT(rank->sleeps > 20);
}

/* A scheduler likes to put the one that is woken beside the one that woke it; then they never meet. */
static void nap_bind(uint32_t index)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        return;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && index-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

static void *nap_run(void *argument)
{
    struct nap *nap = argument;
    nap_bind(nap->index);
    struct rank *rank = malloc(sizeof(*rank));
    struct sample *sample = calloc(1, sizeof(*sample));
    TB_ASSERT(rank != NULL && sample != NULL);
    rank_open(rank, nap->host, nap->index);
    rank->unchecked = true;
    sample->envelope.message.kind = TB_KIND_EAGER;
    if (nap->index == 0) {
        nap_ask(rank, sample, nap->seen, nap->rounds);
    } else {
        rank->seen = nap->seen;
        nap_answer(rank, sample);
    }
    rank_close(rank);
    free(sample);
    free(rank);
    return NULL;
}

static void *burn(void *argument)
{
    for (;;)
        __asm__ volatile("" ::: "memory");
    return argument;
}

static void run_naps(int rounds, bool loaded)
{
    struct host host;
    host_make(&host, 2, 16 << 10);
    _Atomic uint64_t *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen != MAP_FAILED);
    struct nap naps[2] = {{&host, 0, rounds, seen}, {&host, 1, rounds, seen}};
    pid_t burner = loaded ? start_child(burn, NULL) : 0;
    pid_t children[2] = {start_child(nap_run, &naps[0]), start_child(nap_run, &naps[1])};
    int status[2] = {-1, -1};
    for (int i = 0; i < 2; i++)
        waitpid(children[i], &status[i], 0);
    if (loaded) {
        kill(burner, SIGKILL);
        waitpid(burner, NULL, 0);
    }
    assert_int_equal(status[0], 0);
    assert_int_equal(status[1], 0);
    munmap(seen, 4096);
    host_end(&host);
}

static void test_sleep_and_wake(void **state)
{
    run_naps(6000, false);
}

static void test_sleep_and_wake_loaded(void **state)
{
    run_naps(1000, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_of_threads),
        cmocka_unit_test(test_streams_of_processes),
        cmocka_unit_test(test_many_senders),
        cmocka_unit_test(test_everybody_to_everybody),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_sleep_and_wake),
        cmocka_unit_test(test_sleep_and_wake_loaded),
    };
    if (tb_transports_load_params() != TB_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
