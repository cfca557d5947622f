/* Choices that processes share: each is made once, whoever dies, and what makes no sense is not there. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/planner.h"

#define PROCESSES 4
#define KEYS      200u
#define MANY      10000u
#define FOREVER   60000000000u /* ns; no process waits in vain for as long */
#define SECOND_NS 1000000000u

/* What processes have in common. */
struct shared {
    _Alignas(128) char memory[TB_PLAN_TABLE_BYTES];
    _Atomic uint32_t made[KEYS]; /* how often somebody was told to make it */
    _Atomic uint32_t wrong;      /* choices that were not those of their key */
    _Atomic uint32_t come;
};

static struct shared *shared_open(struct tb_plan_table *table, uint64_t patience)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    tb_plan_table_open(table, s->memory);
    if (patience > 0)
        table->patience = patience;
    return s;
}

static struct tb_plan_key key_of(uint64_t number)
{
    struct tb_plan_key key;
    tb_plan_key_begin(&key);
    tb_plan_key_number(&key, number);
    return key;
}

/* Another one for each key. */
static struct tb_choice choice_of(uint64_t number)
{
    return (struct tb_choice){.best = {tb_catalogue[number % 7], number, 3 * number},
                              .next = {number % 3 > 0 ? tb_catalogue[number % 11] : NULL, number + 1, 5 * number},
                              .reason = (enum tb_reason)(number % TB_REASON_COUNT)};
}

static bool is_choice_of(const struct tb_choice *c, uint64_t number)
{
    struct tb_choice right = choice_of(number);
    return c->best.algorithm == right.best.algorithm && c->best.argument == right.best.argument &&
           c->best.time == right.best.time && c->next.algorithm == right.next.algorithm &&
           c->next.argument == right.next.argument && c->next.time == right.next.time && c->reason == right.reason;
}

static int get(const struct tb_plan_table *table, uint64_t number)
{
    struct tb_plan_key key = key_of(number);
    struct tb_choice choice;
    int rc = tb_plan_table_get(table, &key, &choice);
    if (rc == TB_OK)
        assert_true(is_choice_of(&choice, number));
    return rc;
}

static void put(const struct tb_plan_table *table, uint64_t number)
{
    struct tb_plan_key key = key_of(number);
    struct tb_choice choice = choice_of(number);
    tb_plan_table_put(table, &key, &choice);
}

static void what_was_put_is_found(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, 0);
    assert_int_equal(get(&table, 1), TB_AGAIN);
    put(&table, 1);
    assert_int_equal(get(&table, 1), TB_OK);
    assert_int_equal(get(&table, 2), TB_AGAIN);
    put(&table, 2);
    assert_int_equal(get(&table, 1), TB_OK);
    assert_int_equal(get(&table, 2), TB_OK);
    munmap(s, sizeof *s);
}

/* What a key is made of tells it from others, in any order. */
static void keys_differ(void **state)
{
    struct tb_plan_key keys[6];
    for (int i = 0; i < 6; i++)
        tb_plan_key_begin(&keys[i]);
    tb_plan_key_number(&keys[1], 0);
    tb_plan_key_number(&keys[2], 1);
    tb_plan_key_text(&keys[3], "");
    tb_plan_key_text(&keys[4], "ab");
    tb_plan_key_text(&keys[5], "ba");
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < i; k++)
            assert_true(keys[i].words[0] != keys[k].words[0] && keys[i].words[1] != keys[k].words[1]);
}

/* A process that needs the choices of all keys, beginning with different ones. */
static void need_all(const struct tb_plan_table *table, struct shared *s, uint32_t first)
{
    atomic_fetch_add(&s->come, 1);
    for (uint32_t i = 0; atomic_load(&s->come) < PROCESSES && i < 100000; i++)
        usleep(100);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t number = i % 20 < 10 ? i : (i + first) % KEYS;
        struct tb_plan_key key = key_of(number);
        struct tb_choice choice;
        if (tb_plan_table_get(table, &key, &choice) == TB_OK) {
            atomic_fetch_add(&s->wrong, is_choice_of(&choice, number) ? 0 : 1);
            continue;
        }
        atomic_fetch_add(&s->made[number], 1);
        if (number % 16 == 0)
            usleep(1000);
        put(table, number);
    }
}

static void of_several_processes_one_makes_it(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, FOREVER);
    pid_t children[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            need_all(&table, s, 10 * i);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(atomic_load(&s->wrong), 0);
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(atomic_load(&s->made[i]), 1);
    munmap(s, sizeof *s);
}

/* Nobody waits for it for long, and only once. */
static void a_choice_whose_maker_died_is_made_again(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, 0);
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (get(&table, 5) == TB_AGAIN)
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    uint64_t since = tb_clock_now_real();
    assert_int_equal(get(&table, 5), TB_AGAIN);
    uint64_t waited = tb_clock_now_real() - since;
    assert_true(waited >= table.patience && waited < table.patience + 10ull * SECOND_NS);
    put(&table, 5);
    assert_int_equal(get(&table, 5), TB_OK);
    munmap(s, sizeof *s);
}

/* There are more keys than entries: the last ones are there, the first ones are missed, and none is taken for another.
 */
static void old_choices_make_room(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, 0);
    uint32_t early = 0, late = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(get(&table, i), TB_AGAIN);
        put(&table, i);
        assert_int_equal(get(&table, i), TB_OK);
    }
    /* Who looks in vain takes an entry, so that those which were put last are looked for first. */
    for (uint32_t i = MANY; i-- > MANY - 100;)
        late += get(&table, i) == TB_OK;
    for (uint32_t i = 0; i < 100; i++)
        early += get(&table, i) == TB_OK;
    assert_true(late > 90);
    assert_true(early < 20);
    munmap(s, sizeof *s);
}

/* Any byte of an entry that is not as it was: the choice is made again, and then found. */
static void spoilt_entries_are_not_there(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, 1);
    size_t begin = 0;
    assert_int_equal(get(&table, 9), TB_AGAIN);
    put(&table, 9);
    while (s->memory[begin] == 0)
        begin++;
    begin -= begin % 128;
    /* Behind the state and its two words of key come eight of the choice. */
    for (size_t at = begin + 8; at < begin + 8 + 16 + 64; at++) {
        s->memory[at] ^= 0x10;
        assert_int_equal(get(&table, 9), TB_AGAIN);
        put(&table, 9);
        assert_int_equal(get(&table, 9), TB_OK);
    }
    /* And any garbage at all. */
    srand(1);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof s->memory; i++)
            s->memory[i] = (char)rand();
        for (uint32_t i = 0; i < 50; i++) {
            assert_int_equal(get(&table, i), TB_AGAIN);
            put(&table, i);
        }
    }
    munmap(s, sizeof *s);
}

/* Of a larger catalogue than ours. */
static void unknown_algorithms_are_not_there(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, 0);
    assert_int_equal(get(&table, 6), TB_AGAIN);
    put(&table, 6);
    struct tb_plan_table smaller = table;
    smaller.algorithm_count = 6;
    assert_int_equal(get(&smaller, 6), TB_AGAIN);
    put(&table, 6);
    smaller.algorithm_count = 7;
    assert_int_equal(get(&smaller, 6), TB_OK);
    munmap(s, sizeof *s);
}

/* ---- caches of several processes --------------------------------------------------------------------------------- */

#define RANKS 24u

/* How many candidates a process that has just begun rates to choose for a call; `choice` is what it chooses. */
static uint64_t process_rates(struct shared *s, uint32_t hosts, const struct tb_preference *wish,
                              const struct tb_corrections *corrections, const struct tb_collective *c,
                              struct tb_choice *choice)
{
    struct tb_place_row world = {.parent = TB_PLACE_NONE, .end = 1};
    char name[1] = "";
    const struct tb_places places = {.count = 1, .name_bytes = 1, .rows = &world, .names = name};
    struct tb_cost_table costs;
    void *bytes;
    size_t length;
    struct tb_plan_cache *cache;
    struct tb_shape_plans *plans;
    const struct tb_group_shape *shape;
    assert_int_equal(tb_cost_table_make_plain(&places, hosts, &bytes, &length), TB_OK);
    assert_int_equal(tb_cost_table_view(&costs, bytes, length), TB_OK);
    assert_int_equal(tb_plan_cache_open(&cache), TB_OK);
    assert_int_equal(tb_plan_cache_join(cache, s->memory), TB_OK);
    assert_int_equal(tb_group_shape_even(&shape, RANKS, hosts, false, &costs), TB_OK);
    assert_int_equal(tb_shape_plans_get(cache, shape, &plans), TB_OK);
    if (corrections != NULL)
        assert_int_equal(tb_shape_plans_choose_again(cache, plans, c, corrections, choice), TB_OK);
    else
        assert_int_equal(tb_shape_plans_choose(cache, plans, c, wish, choice), TB_OK);
    uint64_t ratings = tb_plan_cache_ratings(cache);
    tb_shape_plans_release(cache, plans);
    tb_group_shape_release(shape);
    tb_plan_cache_close(cache);
    free(bytes);
    return ratings;
}

static bool same_choice(const struct tb_choice *a, const struct tb_choice *b)
{
    return a->best.algorithm == b->best.algorithm && a->best.argument == b->best.argument &&
           a->best.time == b->best.time && a->next.algorithm == b->next.algorithm && a->reason == b->reason;
}

/* Everything that a choice follows from tells it from others; what follows from the same is rated once. */
static void a_call_is_rated_once(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, 0);
    struct tb_choice first, choice;
    struct tb_collective c = {.operation = TB_OPERATION_BCAST,
                              .size = RANKS,
                              .rank = 1,
                              .elements = 100000,
                              .element_bytes = 1,
                              .commutative = true};
    assert_int_equal(tb_param_load(), TB_OK);
    assert_true(process_rates(s, 8, NULL, NULL, &c, &first) > 1);
    c.rank = 2;
    c.elements = 100001;
    assert_int_equal(process_rates(s, 8, NULL, NULL, &c, &choice), 0);
    assert_true(same_choice(&choice, &first));
    assert_true(process_rates(s, 4, NULL, NULL, &c, &choice) > 1);
    c.elements = 1000000;
    assert_true(process_rates(s, 8, NULL, NULL, &c, &choice) > 1);
    c.elements = 100000;
    c.operation = TB_OPERATION_REDUCE;
    assert_true(process_rates(s, 8, NULL, NULL, &c, &choice) > 1);
    c.commutative = false;
    assert_true(process_rates(s, 8, NULL, NULL, &c, &choice) > 1);
    c.operation = TB_OPERATION_BCAST;
    c.commutative = true;
    assert_int_equal(tb_param_set("ethernet_latency", "1ms", TB_PARAM_LAUNCHER), TB_OK);
    assert_true(process_rates(s, 8, NULL, NULL, &c, &choice) > 1);
    assert_int_equal(process_rates(s, 8, NULL, NULL, &c, &choice), 0);
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(process_rates(s, 8, NULL, NULL, &c, &choice), 0);
    assert_true(same_choice(&choice, &first));
    munmap(s, sizeof *s);
}

/* Nor do others get to know them. */
static void wishes_and_corrections_are_not_shared(void **state)
{
    struct tb_plan_table table;
    struct shared *s = shared_open(&table, 0);
    struct tb_choice first, choice;
    struct tb_preference wish;
    struct tb_collective c = {
        .operation = TB_OPERATION_BCAST, .size = RANKS, .elements = 100000, .element_bytes = 1, .commutative = true};
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_preference_read(&wish, TB_OPERATION_BCAST, "chain"), TB_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(process_rates(s, 8, &wish, NULL, &c, &choice) > 1);
        assert_int_equal(choice.reason, TB_REASON_INFO);
    }
    assert_true(process_rates(s, 8, NULL, NULL, &c, &first) > 1);
    assert_int_equal(first.reason, TB_REASON_MODEL);
    struct tb_corrections corrections = {.count = 1, .rows = {{first.best.algorithm, 100 * TB_FACTOR_ONE}}};
    for (int i = 0; i < 2; i++) {
        assert_true(process_rates(s, 8, NULL, &corrections, &c, &choice) > 1);
        assert_int_equal(choice.reason, TB_REASON_TRIAL);
    }
    assert_int_equal(process_rates(s, 8, NULL, NULL, &c, &choice), 0);
    assert_true(same_choice(&choice, &first));
    munmap(s, sizeof *s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_put_is_found),
                                       cmocka_unit_test(keys_differ),
                                       cmocka_unit_test(of_several_processes_one_makes_it),
                                       cmocka_unit_test(a_choice_whose_maker_died_is_made_again),
                                       cmocka_unit_test(old_choices_make_room),
                                       cmocka_unit_test(spoilt_entries_are_not_there),
                                       cmocka_unit_test(unknown_algorithms_are_not_there),
                                       cmocka_unit_test(a_call_is_rated_once),
                                       cmocka_unit_test(wishes_and_corrections_are_not_shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
