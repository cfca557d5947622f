#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/plain_table_test.h"
#include "planner/planner.h"

#define SIZE 100u

/* ---- what choices depend on -------------------------------------------------------------------------------------- */

/* So many ranks on so many hosts. */
struct spread {
    uint32_t size, hosts;
};

static const struct spread apart = {SIZE, SIZE}, together = {SIZE, 1};

static const struct tb_group_shape *shape_of(const struct spread *spread)
{
    const struct tb_group_shape *shape;
    assert_int_equal(tb_group_shape_even(&shape, spread->size, spread->hosts, false, plain_table()), TB_OK);
    return shape;
}

static struct tb_shape_plans *plans_get(struct tb_plan_cache *cache, const struct spread *spread)
{
    const struct tb_group_shape *shape = shape_of(spread);
    struct tb_shape_plans *plans;
    assert_int_equal(tb_shape_plans_get(cache, shape, &plans), TB_OK);
    tb_group_shape_release(shape);
    return plans;
}

static struct tb_planner *planner_open(struct tb_plan_cache *cache, const struct spread *spread, uint32_t rank)
{
    const struct tb_group_shape *shape = shape_of(spread);
    struct tb_planner *planner;
    assert_int_equal(tb_planner_open(cache, shape, spread->size, rank, &planner), TB_OK);
    tb_group_shape_release(shape);
    return planner;
}

static struct tb_plan_cache *cache_open(void)
{
    struct tb_plan_cache *cache;
    assert_int_equal(tb_plan_cache_open(&cache), TB_OK);
    return cache;
}

static struct tb_choice choose(struct tb_plan_cache *cache, const struct spread *spread, const struct tb_collective *c)
{
    struct tb_shape_plans *plans = plans_get(cache, spread);
    struct tb_choice choice;
    assert_int_equal(tb_shape_plans_choose(cache, plans, c, NULL, &choice), TB_OK);
    tb_shape_plans_release(cache, plans);
    return choice;
}

/* In an cache of its own, after setting a parameter. */
static struct tb_choice choose_with(const char *name, const char *value, const struct spread *spread,
                                    const struct tb_collective *c)
{
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_param_set(name, value, TB_PARAM_LAUNCHER), TB_OK);
    plain_table_make();
    struct tb_plan_cache *cache = cache_open();
    struct tb_choice choice = choose(cache, spread, c);
    tb_plan_cache_close(cache);
    assert_int_equal(tb_param_load(), TB_OK);
    plain_table_make();
    return choice;
}

static struct tb_collective call(enum tb_operation operation, uint32_t size, uint64_t elements)
{
    return (struct tb_collective){
        .operation = operation, .size = size, .rank = 3, .elements = elements, .element_bytes = 1, .commutative = true};
}

static void links_alone_change_the_choice(void **state)
{
    const struct spread source = {16, 16};
    struct tb_collective c = call(TB_OPERATION_BCAST, 16, 65536);
    struct tb_choice narrow = choose_with("ethernet_bandwidth", "10", &source, &c);
    struct tb_choice far = choose_with("ethernet_latency", "50ms", &source, &c);
    assert_int_equal(narrow.reason, TB_REASON_MODEL);
    assert_int_equal(far.reason, TB_REASON_MODEL);
    assert_true(narrow.best.algorithm != far.best.algorithm || narrow.best.argument != far.best.argument);
    assert_true(narrow.best.time <= narrow.next.time && far.best.time <= far.next.time);
    /* And so does the number of cores, where there are more ranks. */
    const struct spread host = {16, 1};
    uint64_t many = choose_with("cores", "16", &host, &c).best.time;
    assert_true(choose_with("cores", "1", &host, &c).best.time > 2 * many);
}

/* Whatever this rank is and does that others do not know. */
static void all_ranks_choose_alike(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_GATHER, TB_OPERATION_ALLREDUCE};
    for (int i = 0; i < 3; i++)
        for (uint64_t bytes = 1; bytes < 1 << 20; bytes = bytes * 7 + 1) {
            struct tb_choice first = {.reason = TB_REASON_COUNT};
            for (uint32_t rank = 0; rank < 12; rank++) {
                const struct spread source = {12, 12};
                struct tb_plan_cache *cache = cache_open();
                struct tb_collective c = call(operations[i], 12, bytes);
                c.root = 4;
                c.rank = rank;
                c.in_place = rank % 3 == 0;
                struct tb_choice choice = choose(cache, &source, &c);
                tb_plan_cache_close(cache);
                if (rank == 0)
                    first = choice;
                assert_ptr_equal(choice.best.algorithm, first.best.algorithm);
                assert_int_equal(choice.best.argument, first.best.argument);
                assert_int_equal(choice.best.time, first.best.time);
            }
        }
}

static void sizes_have_classes(void **state)
{
    uint32_t last = 0;
    for (uint64_t bytes = 1; bytes < 5000; bytes++) {
        uint32_t class = tb_size_class(bytes);
        assert_true(class >= last);
        assert_true(tb_size_class_least(class) <= bytes);
        assert_true(tb_size_class_least(class) * 5 >= bytes * 4 - 4);
        assert_int_equal(tb_size_class(tb_size_class_least(class)), class);
        last = class;
    }
    assert_int_equal(tb_size_class(UINT64_MAX), 256);
    assert_int_equal(tb_size_class_least(0), 0);
    assert_int_equal(tb_size_class_least(tb_size_class(1ull << 63)), 1ull << 63);
}

/* Between two groups, and with neighbours, nobody knows everyone's program. */
static void what_cannot_be_rated_has_a_reference(void **state)
{
    struct tb_plan_cache *cache = cache_open();
    struct tb_collective c = call(TB_OPERATION_BCAST, SIZE, 10);
    c.inter = true;
    c.remote_size = 3;
    struct tb_choice choice = choose(cache, &apart, &c);
    assert_string_equal(choice.best.algorithm->name, "inter");
    assert_int_equal(choice.reason, TB_REASON_REFERENCE);
    tb_plan_cache_close(cache);
}

/* Everything can be chosen for, in groups of any size, without and with data. */
static void there_is_always_a_choice(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 64, 65, 333};
    struct tb_plan_cache *cache = cache_open();
    for (int o = 0; o <= TB_OPERATION_EXSCAN; o++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int k = 0; k < 8; k++) {
                const struct spread source = {sizes[i], k & 1 ? sizes[i] : 1};
                struct tb_collective c = call((enum tb_operation)o, sizes[i], k & 2 ? 3000 : 0);
                c.commutative = (k & 4) != 0;
                c.root = sizes[i] - 1;
                c.rank = 0;
                struct tb_choice choice = choose(cache, &source, &c);
                assert_non_null(choice.best.algorithm);
                if (choice.reason == TB_REASON_MODEL)
                    assert_true(choice.best.time != TB_COST_NEVER);
            }
    tb_plan_cache_close(cache);
}

/* ---- what the user prefers --------------------------------------------------------------------------------------- */

static void parameters_go_before_the_model(void **state)
{
    struct tb_collective c = call(TB_OPERATION_BCAST, SIZE, 1000000);
    struct tb_choice choice = choose_with("bcast", "chain:64k", &apart, &c);
    assert_string_equal(choice.best.algorithm->name, "chain");
    assert_int_equal(choice.best.argument, 65536);
    assert_int_equal(choice.reason, TB_REASON_PARAMETER);
    choice = choose_with("bcast", "chain", &apart, &c);
    assert_string_equal(choice.best.algorithm->name, "chain");
    assert_true(choice.best.argument > 0 && choice.best.time != TB_COST_NEVER);
    /* Where it does not fit, something else runs. */
    c.inter = true;
    choice = choose_with("bcast", "chain:64k", &apart, &c);
    assert_string_equal(choice.best.algorithm->name, "inter");
}

/* Two lengths of pieces are one argument, which is printed as it is read. */
static void two_lengths_are_an_argument(void **state)
{
    static const char *const texts[] = {"levels-flat-chain:16k", "levels-flat-chain:16k/64k",
                                        "levels-flat-chain:64k/16k", "levels-flat-chain:3/12k"};
    static const uint64_t narrow[] = {16384, 16384, 65536, 3}, wide[] = {16384, 65536, 16384, 12288};
    for (int i = 0; i < 4; i++) {
        struct tb_preference wish;
        char text[64];
        assert_int_equal(tb_preference_read(&wish, TB_OPERATION_BCAST, texts[i]), TB_OK);
        uint64_t piece = tb_argument_piece(wish.argument);
        assert_int_equal(piece * tb_argument_narrow(wish.argument), narrow[i]);
        assert_int_equal(piece * tb_argument_wide(wish.argument), wide[i]);
        assert_int_equal(tb_argument_longest(wish.argument), narrow[i] > wide[i] ? narrow[i] : wide[i]);
        tb_preference_print(&wish, text, sizeof text);
        assert_string_equal(text, texts[i]);
    }
    assert_int_equal(tb_argument_of(1, 1u << (TB_ARGUMENT_JOIN + 1)), 0);
    assert_int_equal(tb_argument_of(TB_ARGUMENT_PIECE + 1, 1), 0);
}

static void wrong_names_are_told(void **state)
{
    static const char *const bad[][2] = {{"bcast", "chian:64k"},
                                         {"bcast", "linear:3"},
                                         {"bcast", "chain:x"},
                                         {"bcast", "chain:0"},
                                         {"bcast", "chain:16k/64k"},
                                         {"bcast", "levels-flat-chain:16k/"},
                                         {"bcast", "levels-flat-chain:16k/0"},
                                         {"bcast", "levels-flat-chain:16k/48k"},
                                         {"bcast", "levels-flat-chain:16k/64k/64k"},
                                         {"barrier", "ring"},
                                         {"rules", "bcast ranks>8"},
                                         {"rules", "cast linear"},
                                         {"rules", "bcast size>8 linear"},
                                         {"rules", "bcast linear;bcast ranks>x linear"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_plan_cache *cache = NULL;
        assert_int_equal(tb_param_load(), TB_OK);
        assert_int_equal(tb_param_set(bad[i][0], bad[i][1], TB_PARAM_LAUNCHER), TB_OK);
        assert_int_equal(tb_plan_cache_open(&cache), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), bad[i][0]));
        if (i == 0)
            assert_non_null(strstr(tb_error_story(), "binomial"));
    }
    assert_int_equal(tb_param_load(), TB_OK);
}

static void rules_have_conditions(void **state)
{
    static const char rules[] = "bcast ranks>=8 bytes<64k linear; bcast hosts=1 binomial:1k # all\n"
                                "barrier ranks<=100 linear";
    struct tb_rules read;
    struct tb_collective c = call(TB_OPERATION_BCAST, SIZE, 1000);
    assert_int_equal(tb_rules_read(&read, rules, "here"), TB_OK);
    assert_int_equal(read.count, 3);
    assert_string_equal(tb_rules_find(&read, &c, 9, 1000)->name, "linear");
    assert_null(tb_rules_find(&read, &c, 9, 65536));
    assert_string_equal(tb_rules_find(&read, &c, 1, 65536)->name, "binomial");
    c.size = 7;
    assert_null(tb_rules_find(&read, &c, 9, 1000));
    c.operation = TB_OPERATION_BARRIER;
    assert_string_equal(tb_rules_find(&read, &c, 9, 0)->name, "linear");
    assert_int_equal(tb_rules_read(&read, "\n# no\n\nbcast chain:4k\nbcast ranks!3 linear", "here"), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "here:5:"));
}

/* Calls that are to be reproducible have choices of their own, among those that follow the fixed tree. */
static void reproducible_calls_have_few_algorithms(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_param_set("rules", "allreduce ring; reduce chain; scan chain", TB_PARAM_LAUNCHER), TB_OK);
    struct tb_plan_cache *cache = cache_open();
    for (unsigned o = TB_OPERATION_REDUCE; o <= TB_OPERATION_EXSCAN; o++)
        for (int k = 0; k < 4; k++) {
            struct tb_collective c = call((enum tb_operation)o, SIZE, k & 1 ? 1000000 : 10000);
            const struct spread *where = k & 2 ? &apart : &together;
            struct tb_choice any = choose(cache, where, &c);
            tb_collective_reproduce(&c);
            struct tb_choice choice = choose(cache, where, &c);
            assert_true(tb_algorithm_reproducible(choice.best.algorithm));
            assert_true(choice.reason == TB_REASON_MODEL || choice.reason == TB_REASON_ONLY);
            bool ruled = o == TB_OPERATION_REDUCE || o == TB_OPERATION_ALLREDUCE || o == TB_OPERATION_SCAN;
            assert_int_equal(any.reason == TB_REASON_RULE, ruled);
            assert_true(!ruled || !tb_algorithm_reproducible(any.best.algorithm));
        }
    tb_plan_cache_close(cache);
    assert_int_equal(tb_param_load(), TB_OK);
}

static void parameters_must_not_contradict_each_other(void **state)
{
    static const char *const bad[][2] = {{"allreduce", "ring"}, {"reduce", "chain:4k"}, {"scan", "linear"}};
    static const char *const good[][2] = {{"allreduce", "halving"}, {"reduce", "binomial:4k"}, {"bcast", "chain"}};
    for (size_t i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            struct tb_plan_cache *cache = NULL;
            const char *const *pair = k == 0 ? good[i] : bad[i];
            assert_int_equal(tb_param_load(), TB_OK);
            assert_int_equal(tb_param_set("reproducible", k < 2 ? "1" : "0", TB_PARAM_LAUNCHER), TB_OK);
            assert_int_equal(tb_param_set(pair[0], pair[1], TB_PARAM_LAUNCHER), TB_OK);
            assert_int_equal(tb_plan_cache_open(&cache), k == 1 ? TB_ERR_ARGUMENT : TB_OK);
            tb_plan_cache_close(cache);
            if (k == 1)
                assert_non_null(strstr(tb_error_story(), i == 1 ? "binomial" : "doubling"));
        }
    assert_int_equal(tb_param_load(), TB_OK);
}

/* The call of exactly as many bytes as a rule names is told apart rightly, whatever its class is. */
static void bounds_mean_the_call(void **state)
{
    static const uint64_t sizes[] = {1, 5, 100, 1000, 65535, 65536, 65537, 100000, 1000000, (1ull << 40) + 1};
    static const struct {
        const char *sign;
        bool holds;
    } rows[] = {{"<", false}, {"<=", true}, {"=", true}, {">=", true}, {">", false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            char text[64];
            struct tb_collective c = call(TB_OPERATION_BCAST, 4, sizes[i]);
            snprintf(text, sizeof text, "bcast bytes%s%llu linear", rows[k].sign, (unsigned long long)sizes[i]);
            struct tb_choice choice = choose_with("rules", text, &together, &c);
            assert_int_equal(choice.reason == TB_REASON_RULE, rows[k].holds);
        }
}

static void rules_are_read_from_a_file(void **state)
{
    char path[] = "/tmp/tombolo-rules-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(dprintf(fd, "# mine\nbcast ranks>=8 chain:16k\n\nbarrier linear # always\n"), 57);
    close(fd);
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_param_set("rules", path, TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_rules_load(), TB_OK);
    unlink(path);
    struct tb_plan_cache *cache = cache_open();
    struct tb_collective c = call(TB_OPERATION_BARRIER, SIZE, 0);
    struct tb_choice choice = choose(cache, &together, &c);
    assert_string_equal(choice.best.algorithm->name, "linear");
    assert_int_equal(choice.reason, TB_REASON_RULE);
    tb_plan_cache_close(cache);
    assert_int_equal(tb_param_set("rules", path, TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_rules_load(), TB_ERR_SYSTEM);
    assert_non_null(strstr(tb_error_story(), path));
    assert_int_equal(tb_param_load(), TB_OK);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static struct tb_collective bcast(uint32_t root, uint64_t elements)
{
    struct tb_collective c = call(TB_OPERATION_BCAST, SIZE, elements);
    c.root = root;
    c.element_bytes = 4;
    return c;
}

struct fixture {
    struct tb_plan_cache *cache;
    struct tb_planner *planner;
};

static int fixture_open(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(tb_param_load(), TB_OK);
    f->cache = cache_open();
    f->planner = planner_open(f->cache, &together, 3);
    *state = f;
    return 0;
}

static int fixture_close(void **state)
{
    struct fixture *f = *state;
    tb_planner_close(f->planner);
    tb_plan_cache_close(f->cache);
    free(f);
    return 0;
}

/* What changes the program is part of what it is found by. */
static void other_arguments_are_other_programs(void **state)
{
    struct fixture *f = *state;
    const struct tb_program *programs[4];
    for (int i = 0; i < 4; i++) {
        struct tb_collective c = bcast(0, 10);
        c.operation = TB_OPERATION_ALLREDUCE;
        c.commutative = (i & 1) != 0;
        c.in_place = (i & 2) != 0;
        assert_int_equal(tb_planner_program(f->planner, &c, &programs[i]), TB_OK);
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(programs[i], programs[k]);
    }
    for (int i = 0; i < 4; i++)
        tb_planner_release(f->planner, programs[i]);
}

static void a_program_is_found_again(void **state)
{
    struct fixture *f = *state;
    const struct tb_program *first, *again, *other;
    struct tb_collective c = bcast(5, 1024), larger = bcast(5, 5000);
    assert_int_equal(tb_planner_program(f->planner, &c, &first), TB_OK);
    assert_int_equal(tb_planner_program(f->planner, &larger, &other), TB_OK);
    tb_planner_release(f->planner, first);
    c.elements = 1027;
    assert_int_equal(tb_planner_program(f->planner, &c, &again), TB_OK);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, other);
    tb_planner_release(f->planner, again);
    tb_planner_release(f->planner, other);
}

/* It makes no difference with which call of a class a rank begins, or which others it has forgotten since. */
static void a_program_follows_from_its_class(void **state)
{
    struct fixture *f = *state;
    const struct tb_program *mine, *theirs;
    struct tb_planner *other;
    other = planner_open(f->cache, &together, 3);
    assert_int_equal(tb_planner_prefer(f->planner, TB_OPERATION_BCAST, "chain:3000"), TB_OK);
    assert_int_equal(tb_planner_prefer(other, TB_OPERATION_BCAST, "chain:3000"), TB_OK);
    struct tb_collective a = bcast(0, 16384), b = bcast(0, 20479);
    b.elements = b.elements * b.element_bytes;
    b.element_bytes = 1;
    assert_int_equal(tb_planner_program(f->planner, &a, &mine), TB_OK);
    assert_int_equal(tb_planner_program(other, &b, &theirs), TB_OK);
    assert_int_equal(mine->pieces, theirs->pieces);
    assert_int_equal(mine->step_count, theirs->step_count);
    assert_true(mine->pieces >= 65536 / 3000);
    tb_planner_release(f->planner, mine);
    tb_planner_release(other, theirs);
    tb_planner_close(other);
}

static void a_communicator_has_wishes(void **state)
{
    struct fixture *f = *state;
    const struct tb_program *before, *after;
    struct tb_usage usage;
    struct tb_collective c = bcast(0, 100000);
    assert_int_equal(tb_planner_program(f->planner, &c, &before), TB_OK);
    assert_int_equal(tb_planner_prefer(f->planner, TB_OPERATION_BCAST, "chian"), TB_ERR_ARGUMENT);
    assert_int_equal(tb_planner_prefer(f->planner, TB_OPERATION_BCAST, "linear"), TB_OK);
    /* What runs goes on. */
    assert_true(before->step_count > 0);
    assert_int_equal(tb_planner_program(f->planner, &c, &after), TB_OK);
    assert_ptr_not_equal(before, after);
    tb_planner_release(f->planner, before);
    for (int i = 0; i < 9; i++) {
        tb_planner_release(f->planner, after);
        assert_int_equal(tb_planner_program(f->planner, &c, &after), TB_OK);
    }
    tb_planner_release(f->planner, after);
    tb_planner_flush_all(f->cache);
    tb_planner_flush_all(f->cache);
    assert_true(tb_plan_cache_usage(f->cache, 1, &usage));
    assert_int_equal(usage.calls, 10);
    assert_int_equal(usage.operation, TB_OPERATION_BCAST);
    assert_int_equal(usage.choice.reason, TB_REASON_INFO);
    assert_string_equal(usage.choice.best.algorithm->name, "linear");
    assert_false(tb_plan_cache_usage(f->cache, 2, &usage));
    assert_true(tb_plan_cache_usage(f->cache, 0, &usage));
    assert_int_equal(usage.calls, 1);
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    tb_plan_cache_print(f->cache, to);
    fclose(to);
    assert_non_null(strstr(text, "an info key"));
    free(text);
}

static void what_runs_is_never_thrown_away(void **state)
{
    struct fixture *f = *state;
    const struct tb_program *programs[200];
    /* From each root something else, and to it. */
    assert_int_equal(tb_planner_prefer(f->planner, TB_OPERATION_GATHER, "bounded"), TB_OK);
    assert_int_equal(tb_planner_prefer(f->planner, TB_OPERATION_BCAST, "linear"), TB_OK);
    for (uint32_t i = 0; i < 200; i++) {
        struct tb_collective c = bcast(i % 100, 1000);
        c.operation = i < 100 ? TB_OPERATION_BCAST : TB_OPERATION_GATHER;
        assert_int_equal(tb_planner_program(f->planner, &c, &programs[i]), TB_OK);
    }
    for (uint32_t i = 0; i < 200; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_ptr_not_equal(programs[i], programs[k]);
    for (uint32_t i = 0; i < 200; i++)
        tb_planner_release(f->planner, programs[i]);
}

static void old_programs_make_room(void **state)
{
    struct fixture *f = *state;
    const struct tb_program *program;
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 100; i++) {
            struct tb_collective c = bcast(i, 7);
            assert_int_equal(tb_planner_program(f->planner, &c, &program), TB_OK);
            tb_planner_release(f->planner, program);
        }
}

/* Whatever is kept for other roots, each has its own program, again and again. */
static void every_root_has_its_program(void **state)
{
    static const char *const names[] = {"linear", "binomial", "chain:1k", "binary:2k", "circulant:1k", "two-tree:1k"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(tb_planner_prefer(f->planner, TB_OPERATION_BCAST, names[i]), TB_OK);
        for (uint32_t k = 0; k < 2 * SIZE; k++) {
            struct tb_collective c = bcast(k % SIZE, 5000), call = tb_size_class_call(&c);
            const struct tb_program *program;
            struct tb_program *made;
            struct tb_choice choice;
            assert_int_equal(tb_planner_program(f->planner, &c, &program), TB_OK);
            assert_int_equal(tb_planner_choice(f->planner, &c, &choice), TB_OK);
            call.argument = choice.best.argument;
            call.shape = tb_planner_shape(f->planner);
            assert_int_equal(choice.best.algorithm->make(&call, &made), TB_OK);
            assert_true(tb_program_same(program, made));
            tb_program_free(made);
            tb_planner_release(f->planner, program);
        }
    }
}

/* Rank 3 of a chain receives from 2 and sends to 4, from wherever it comes, unless it begins or ends there. */
static void alike_programs_are_kept_once(void **state)
{
    struct fixture *f = *state;
    const struct tb_program *programs[SIZE];
    assert_int_equal(tb_planner_prefer(f->planner, TB_OPERATION_BCAST, "chain:1k"), TB_OK);
    for (uint32_t i = 0; i < SIZE; i++) {
        struct tb_collective c = bcast(i, 5000);
        assert_int_equal(tb_planner_program(f->planner, &c, &programs[i]), TB_OK);
    }
    for (uint32_t i = 1; i < SIZE; i++)
        assert_int_equal(programs[i] == programs[0], i != 3 && i != 4);
    for (uint32_t i = 0; i < SIZE; i++)
        tb_planner_release(f->planner, programs[i]);
    struct tb_usage usage;
    tb_planner_flush_all(f->cache);
    assert_true(tb_plan_cache_usage(f->cache, 0, &usage));
    assert_int_equal(usage.calls, SIZE);
}

/* Many communicators of many shapes come and go. */
static void shapes_are_shared_and_forgotten(void **state)
{
    struct fixture *f = *state;
    struct tb_shape_plans *plans[40], *again;
    for (uint32_t i = 0; i < 40; i++) {
        const struct spread source = {i + 2, i + 2};
        plans[i] = plans_get(f->cache, &source);
        again = plans_get(f->cache, &source);
        assert_ptr_equal(plans[i], again);
        tb_shape_plans_release(f->cache, again);
    }
    for (uint32_t i = 0; i < 40; i++)
        tb_shape_plans_release(f->cache, plans[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_alone_change_the_choice),
        cmocka_unit_test(all_ranks_choose_alike),
        cmocka_unit_test(sizes_have_classes),
        cmocka_unit_test(what_cannot_be_rated_has_a_reference),
        cmocka_unit_test(there_is_always_a_choice),
        cmocka_unit_test(parameters_go_before_the_model),
        cmocka_unit_test(two_lengths_are_an_argument),
        cmocka_unit_test(wrong_names_are_told),
        cmocka_unit_test(rules_have_conditions),
        cmocka_unit_test(reproducible_calls_have_few_algorithms),
        cmocka_unit_test(parameters_must_not_contradict_each_other),
        cmocka_unit_test(bounds_mean_the_call),
        cmocka_unit_test(rules_are_read_from_a_file),
        cmocka_unit_test_setup_teardown(other_arguments_are_other_programs, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_program_is_found_again, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_program_follows_from_its_class, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_communicator_has_wishes, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(what_runs_is_never_thrown_away, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(old_programs_make_room, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(every_root_has_its_program, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(alike_programs_are_kept_once, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(shapes_are_shared_and_forgotten, fixture_open, fixture_close)};
    TB_ASSERT(tb_param_load() == TB_OK);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
