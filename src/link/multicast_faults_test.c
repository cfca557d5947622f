/* Broadcasts of random sizes by random roots in groups that change all the time, on a network that loses, repeats and
 * reorders datagrams, with members that are late, compute or hear nothing: every byte is right, whatever happens,
 * nothing is kept in the end, and repairing costs no more than was lost. A few hundred for each fault; with
 * TEST_TIER=all ten thousand. A seed that fails is told, and TOMBOLO_TEST_SEED=seed replays it. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/multicast_play_test.h"

#include <math.h>

#define LARGEST    (1u << 20)
#define STEPS_MOST 4096u
#define HOSTS_MOST 16u

struct fault {
    uint32_t loss, burst, duplicate, reorder;
    bool some; /* of the hosts, at random; else all */
    uint64_t reorder_time;
    bool deaf, multicast_deaf;
    uint64_t late_by; /* a host each time */
    uint64_t skew;    /* that all compute before each, at most */
    uint64_t control_late;
    bool alone;        /* nobody looks after the object of one that computes */
    uint32_t out_room; /* of ports and sockets */
    uint32_t socket_room;
    uint32_t depth; /* broadcasts that are under way at a host */
    bool scattered;
};

/* Log-uniform from 0 to the largest. */
static uint64_t random_length(struct tb_random *random)
{
    double length = exp(tb_random_unit(random) * log((double)LARGEST + 2)) - 1;
    return length < LARGEST ? (uint64_t)length : LARGEST;
}

/* ---- scripts -------------------------------------------------------------------------------------------------------
 */

struct script {
    struct play_step steps[STEPS_MOST];
    uint32_t count, contexts, broadcasts;
    uint32_t members[STEPS_MOST][HOSTS_MOST]; /* of each context, or of a part of one */
    uint32_t lists;
};

static struct script script;

static struct play_step *add(enum play_verb verb, uint64_t context)
{
    struct play_step *s = &script.steps[script.count++];
    *s = (struct play_step){.verb = verb, .context = context, .late = UINT32_MAX};
    return s;
}

/* Some of the hosts, at least one of which is `with`. */
static uint32_t random_members(struct tb_random *random, uint32_t hosts, uint32_t with, const uint32_t *of,
                               uint32_t of_count, uint32_t *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < (of != NULL ? of_count : hosts); i++) {
        uint32_t host = of != NULL ? of[i] : i;
        if (host == with || tb_random_below(random, 3) > 0)
            list[count++] = host;
    }
    return count;
}

static void add_broadcasts(struct tb_random *random, const struct fault *fault, uint64_t context, const uint32_t *of,
                           uint32_t of_count, uint32_t hosts)
{
    uint32_t count = 1 + (uint32_t)tb_random_below(random, 12);
    for (uint32_t i = 0; i < count; i++) {
        struct play_step *s = add(PLAY_BROADCAST, context);
        uint32_t members = of != NULL ? of_count : hosts, root = (uint32_t)tb_random_below(random, members);
        s->number = (uint64_t)i * 4096 + tb_random_below(random, 4096);
        s->length = random_length(random);
        s->root = of != NULL ? of[root] : root;
        s->members = of;
        s->members_count = of_count;
        if (tb_random_below(random, 4) == 0) { /* only a part of the context takes part */
            s->members = script.members[script.lists];
            s->members_count = random_members(random, hosts, s->root, of, of_count, script.members[script.lists++]);
        }
        s->skew = fault->skew;
        if (fault->late_by > 0 && tb_random_below(random, 8) == 0) {
            s->late = of != NULL ? of[tb_random_below(random, of_count)] : (uint32_t)tb_random_below(random, hosts);
            s->late_by = fault->late_by;
        }
        script.broadcasts++;
    }
}

static void make_script(struct tb_random *random, const struct fault *fault, uint32_t hosts, uint32_t wanted)
{
    script.count = script.contexts = script.broadcasts = script.lists = 0;
    add(PLAY_JOIN, 0);
    uint64_t base = 0;
    for (script.contexts = 1; script.broadcasts < wanted && script.count < STEPS_MOST - 64; script.contexts++) {
        uint32_t before = script.count;
        add_broadcasts(random, fault, 0, NULL, 0, hosts);
        for (uint32_t i = before; i < script.count; i++) /* numbers of a context only grow */
            script.steps[i].number += base;
        base += UINT64_C(13) * 4096;
        uint32_t *list = script.members[script.lists++];
        uint32_t count = random_members(random, hosts, (uint32_t)tb_random_below(random, hosts), NULL, 0, list);
        struct play_step *join = add(PLAY_JOIN, script.contexts);
        join->members = list;
        join->members_count = count;
        add_broadcasts(random, fault, script.contexts, list, count, hosts);
        struct play_step *leave = add(PLAY_LEAVE, script.contexts);
        leave->members = list;
        leave->members_count = count;
    }
    add(PLAY_LEAVE, 0);
}

/* ---- runs ----------------------------------------------------------------------------------------------------------
 */

static void set_hosts(struct world *w, const struct fault *fault)
{
    for (uint32_t i = 0; i < w->count; i++) {
        struct world_host *h = &w->hosts[i];
        bool hit = !fault->some || tb_random_below(&w->random, 2) == 0;
        h->loss = hit ? fault->loss : 0;
        h->burst = hit ? fault->burst : 0;
        h->duplicate = fault->duplicate;
        h->reorder = fault->reorder;
        h->reorder_time = fault->reorder_time;
        h->control_late = fault->control_late;
        h->standby = !fault->alone;
        if (fault->out_room > 0)
            h->out_room = fault->out_room;
        if (fault->socket_room > 0)
            h->socket_room = fault->socket_room;
    }
    if (fault->deaf || fault->multicast_deaf) {
        struct world_host *h = &w->hosts[tb_random_below(&w->random, w->count)];
        h->deaf = fault->deaf;
        h->multicast_deaf = fault->multicast_deaf;
    }
}

struct sums {
    uint64_t lost, repairs, asks, bytes_by_control, mended;
    uint64_t runs_repaired; /* in which there was a repair, of some 50 broadcasts each */
    uint64_t events, time;  /* of the network: how many there were, and when the last one was */
};

static bool run(const struct fault *fault, uint32_t hosts, uint64_t seed, uint32_t wanted, struct sums *sums)
{
    struct world w;
    struct play p;
    world_open(&w, hosts, seed);
    set_hosts(&w, fault);
    make_script(&w.random, fault, hosts, wanted);
    world_start(&w, script.contexts);
    play_open(&p, &w, script.steps, script.count);
    p.depth = fault->depth > 0 ? fault->depth : 1;
    p.scattered = fault->scattered;
    bool right = play_run(&p) && play_finish(&p);
    struct tb_multicast_counters c = play_sum(&p);
    right = right && c.kept == 0;
    sums->lost += world_lost(&w) + c.dropped;
    sums->repairs += w.repairs;
    sums->runs_repaired += w.repairs > 0;
    sums->asks += w.asks;
    sums->bytes_by_control += c.repaired_bytes;
    sums->mended += c.mended;
    sums->events += w.events_done;
    sums->time += w.now;
    world_close(&w);
    play_close(&p);
    return right;
}

static void run_all(const char *name, const struct fault *fault, uint32_t quick, struct sums *sums)
{
    static const uint32_t sizes[] = {2, 3, 7, 8, 16};
    uint32_t wanted = play_amount(quick, 10000), done = 0;
    const char *replay = getenv("TOMBOLO_TEST_SEED");
    *sums = (struct sums){0};
    for (uint64_t seed = 1; done < wanted; seed++) {
        uint32_t hosts = sizes[seed % (sizeof sizes / sizeof sizes[0])];
        uint64_t used = replay != NULL ? strtoull(replay, NULL, 0) : seed;
        hosts = replay != NULL ? sizes[used % (sizeof sizes / sizeof sizes[0])] : hosts;
        if (!run(fault, hosts, used, 50, sums)) {
            fprintf(stderr, "%s: seed %llu fails with %u hosts\n", name, (unsigned long long)used, hosts);
            fail();
        }
        done += script.broadcasts;
        if (replay != NULL)
            break;
    }
    print_message("%s: %u broadcasts, %llu datagrams lost, %llu repairs, %llu asks, %llu bytes by control messages\n",
                  name, done, (unsigned long long)sums->lost, (unsigned long long)sums->repairs,
                  (unsigned long long)sums->asks, (unsigned long long)sums->bytes_by_control);
}

/* Something was lost, and repaired, and that cost at most twice as much. */
static void check_repairs(const struct sums *sums)
{
    assert_true(sums->lost > 0);
    assert_true(sums->mended > 0);
    assert_true(sums->repairs > 0 || sums->bytes_by_control > 0);
    assert_true(sums->repairs + sums->bytes_by_control / WORLD_PIECE <= 2 * sums->lost);
}

#define CASE(name, ...)                                                                                                \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        const struct fault fault = {__VA_ARGS__};                                                                      \
        struct sums sums;                                                                                              \
        run_all(#name, &fault, QUICK, &sums);                                                                          \
        check_repairs(&sums);                                                                                          \
    }

#define QUICK 200u

/* Nothing is lost. Members may ask too early, since roots have other broadcasts to end first; where broadcasts of
 * several roots fill the queue of a port, very few of them get an answer, of a few datagrams. */
static void run_without_loss(const char *name, const struct fault *fault)
{
    struct sums sums;
    run_all(name, fault, QUICK, &sums);
    assert_int_equal(sums.lost, 0);
    assert_true(sums.runs_repaired <= 1 + play_amount(QUICK, 10000) / 1000);
    assert_true(sums.repairs <= 8 * sums.runs_repaired);
    assert_int_equal(sums.bytes_by_control, 0);
}

static void nothing_lost(void **state)
{
    const struct fault fault = {0};
    run_without_loss("nothing_lost", &fault);
}

CASE(loss_of_a_thousandth, .loss = 1000, .some = true)
CASE(loss_of_a_hundredth, .loss = 10000, .some = true, .depth = 3)
CASE(loss_of_a_tenth, .loss = 100000, .some = true)
CASE(loss_of_three_tenths, .loss = 300000, .some = true, .depth = 2)
CASE(loss_everywhere, .loss = 50000, .scattered = true)
CASE(bursts_of_three, .burst = 5000)
CASE(one_hears_nothing, .deaf = true)
CASE(one_hears_no_multicast, .multicast_deaf = true)
CASE(members_compute, .loss = 10000, .skew = 3 * WORLD_MS, .depth = 2)
CASE(members_compute_unattended, .loss = 10000, .skew = 3 * WORLD_MS, .alone = true)
CASE(one_is_a_second_late, .loss = 1000, .late_by = WORLD_SECOND)
CASE(control_is_late, .loss = 20000, .control_late = 20 * WORLD_MS, .depth = 4)
CASE(sockets_are_small, .loss = 1000, .out_room = 8192, .socket_room = 16384, .skew = WORLD_MS)
CASE(everything_at_once, .loss = 20000, .burst = 2000, .duplicate = 20000, .reorder = 20000, .some = true,
     .reorder_time = 2 * WORLD_MS, .skew = 2 * WORLD_MS, .late_by = 100 * WORLD_MS, .control_late = 2 * WORLD_MS,
     .depth = 3, .scattered = true)

/* A seed gives the same run again, and another one another. */
static void seeds_replay(void **state)
{
    const struct fault fault = {
        .loss = 30000, .burst = 1000, .reorder = 10000, .reorder_time = WORLD_MS, .skew = WORLD_MS};
    struct sums first = {0}, again = {0}, other = {0};
    assert_true(run(&fault, 7, 12345, 50, &first) && run(&fault, 7, 12345, 50, &again));
    assert_true(run(&fault, 7, 12346, 50, &other));
    assert_memory_equal(&first, &again, sizeof first);
    assert_true(other.events != first.events && other.time != first.time);
}

static void datagrams_overtake(void **state)
{
    const struct fault fault = {.reorder = 50000, .reorder_time = 400 * WORLD_US};
    run_without_loss("datagrams_overtake", &fault);
}

static void datagrams_come_twice(void **state)
{
    const struct fault fault = {.duplicate = 100000, .reorder_time = 400 * WORLD_US};
    run_without_loss("datagrams_come_twice", &fault);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_lost),
        cmocka_unit_test(loss_of_a_thousandth),
        cmocka_unit_test(loss_of_a_hundredth),
        cmocka_unit_test(loss_of_a_tenth),
        cmocka_unit_test(loss_of_three_tenths),
        cmocka_unit_test(loss_everywhere),
        cmocka_unit_test(bursts_of_three),
        cmocka_unit_test(datagrams_overtake),
        cmocka_unit_test(datagrams_come_twice),
        cmocka_unit_test(one_hears_nothing),
        cmocka_unit_test(one_hears_no_multicast),
        cmocka_unit_test(members_compute),
        cmocka_unit_test(members_compute_unattended),
        cmocka_unit_test(one_is_a_second_late),
        cmocka_unit_test(control_is_late),
        cmocka_unit_test(sockets_are_small),
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(seeds_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
