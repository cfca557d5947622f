/* What calls run by a plan: on a grid of three clusters, whose hosts the plan names. */
#include "base/changed_bytes_test.h"
#include "base/failing_memory_test.h"
#include "planner/network_test.h"
#include "planner/plan_cache.h"
#include "planner/plan_text.h"
#include "planner/planner.h"

#include <unistd.h>

#define RANKS "a1 a1 a2 b1 b1 b2 c1"

static const char grid[] = "clusters:\n"
                           "  - {name: a, hosts: [{name: a1, slots: 2}, a2]}\n"
                           "  - {name: b, hosts: [{name: b1, slots: 2}, b2]}\n"
                           "  - {name: c, hosts: [c1]}\n";

#define HOSTS                                                                                                          \
    "tombolo-plan 1\nhost a1 slots 2 in a\nhost a2 slots 1 in a\nhost b1 slots 2 in b\nhost b2 slots 1 in b\n"         \
    "host c1 slots 1 in c\n"

static const char text[] = HOSTS "bcast bytes 1k..2k root a1\n"
                                 "  tree share 2\n"
                                 "    a1: c1 b1 a2\n"
                                 "    b1: b2\n"
                                 "  tree\n"
                                 "    a1: b2\n"
                                 "    b2: c1 b1\n"
                                 "    c1: a2\n"
                                 "bcast bytes 16\n"
                                 "  use chain:8\n"
                                 "reduce bytes 16..64k root any\n"
                                 "  use binomial\n"
                                 "allreduce bytes 8\n"
                                 "  use doubling\n"
                                 "barrier\n"
                                 "  tree\n"
                                 "    b1: a1 b2\n"
                                 "    a1: c1 a2\n";

struct world {
    struct network network;
    void *image;
    size_t length;
    struct tb_plan_seat seats[8];
    uint32_t seat_count;
    struct tb_plan_cache *cache;
};

/* The hosts that the network's ranks are on. */
static void seats_make(struct world *w)
{
    const struct network *n = &w->network;
    for (uint32_t i = 0; i < n->grid.host_count; i++) {
        char place[64];
        struct tb_shape_run run = {.count = 0};
        uint32_t ranks = 0;
        for (uint32_t k = 0; k < n->size; k++)
            if (n->hosts[k] == i && ranks++ == 0)
                network_run(n, k, &run);
        if (ranks == 0)
            continue;
        assert_int_equal(tb_plan_place_print(&n->places, run.place, place, sizeof place), TB_OK);
        w->seats[w->seat_count++] = (struct tb_plan_seat){.key = tb_plan_host_key(place, n->grid.hosts[i].name, ranks),
                                                          .spot = {run.place, run.kind, run.who},
                                                          .ranks = ranks};
    }
}

static void world_open(struct world *w, const char *plan_text, const char *ranks)
{
    struct tb_plan plan;
    *w = (struct world){.seat_count = 0};
    network_open(&w->network, grid, ranks, 0);
    if (tb_plan_parse(&plan, plan_text, strlen(plan_text), "p") != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(tb_plan_image_make(&plan, &w->image, &w->length), TB_OK);
    tb_plan_close(&plan);
    seats_make(w);
}

static void world_follow(struct world *w)
{
    struct tb_followed *followed;
    assert_int_equal(tb_plan_cache_open(&w->cache), TB_OK);
    if (tb_followed_open(&followed, w->image, w->length, w->seats, w->seat_count) != TB_OK)
        fail_msg("%s", tb_error_story());
    tb_plan_cache_follow(w->cache, followed, true);
}

static void world_close(struct world *w)
{
    tb_plan_cache_close(w->cache);
    free(w->image);
    network_close(&w->network);
}

static struct tb_collective call_of(enum tb_operation operation, uint32_t size, uint32_t root, uint64_t bytes)
{
    return (struct tb_collective){.operation = operation,
                                  .size = size,
                                  .root = root,
                                  .elements = bytes,
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .common = true};
}

/* What all ranks of a shape choose for a call: the same. */
static struct tb_choice chosen(struct world *w, const struct tb_group_shape *shape, const char *wish,
                               struct tb_collective c)
{
    struct tb_choice choice, other;
    for (c.rank = 0; c.rank < shape->size; c.rank++) {
        struct tb_planner *planner;
        assert_int_equal(tb_planner_open(w->cache, shape, shape->size, c.rank, &planner), TB_OK);
        assert_int_equal(tb_planner_prefer(planner, c.operation, wish), TB_OK);
        assert_int_equal(tb_planner_choice(planner, &c, c.rank == 0 ? &choice : &other), TB_OK);
        const struct tb_program *program;
        assert_int_equal(tb_planner_program(planner, &c, &program), TB_OK);
        tb_planner_release(planner, program);
        tb_planner_close(planner);
        if (c.rank > 0)
            assert_ptr_equal(other.best.algorithm, choice.best.algorithm);
    }
    return choice;
}

static void assert_planned(struct tb_choice choice, const char *name)
{
    assert_string_equal(choice.best.algorithm->name, name);
    assert_int_equal(choice.reason, TB_REASON_PLAN);
}

static void calls_follow_the_plan(void **state)
{
    struct world w;
    world_open(&w, text, RANKS);
    world_follow(&w);
    const struct tb_group_shape *shape = w.network.shape;
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_BCAST, 7, 0, 1024)), "planned");
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_BCAST, 7, 1, 2100)), "planned"); /* second rank of a1 */
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_BCAST, 7, 2, 2048)), "planned"); /* a2: beside it */
    assert_int_not_equal(chosen(&w, shape, "", call_of(TB_OPERATION_BCAST, 7, 3, 2048)).reason,
                         TB_REASON_PLAN); /* b1 */
    assert_int_not_equal(chosen(&w, shape, "", call_of(TB_OPERATION_BCAST, 7, 0, 4096)).reason, TB_REASON_PLAN);
    struct tb_choice chain = chosen(&w, shape, "", call_of(TB_OPERATION_BCAST, 7, 3, 16));
    assert_planned(chain, "chain");
    assert_int_equal(chain.best.argument, 8);
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_BCAST, 7, 0, 16)), "chain");
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_REDUCE, 7, 6, 64)), "binomial");
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_ALLREDUCE, 7, 0, 8)), "doubling");
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_BARRIER, 7, 0, 0)), "planned");
    assert_int_not_equal(chosen(&w, shape, "", call_of(TB_OPERATION_GATHER, 7, 0, 16)).reason, TB_REASON_PLAN);
    world_close(&w);
}

/* The forest that a row becomes: each host's parent by its name. */
static void forest_print(const struct world *w, const struct tb_forest *f, char *out, size_t size)
{
    const struct network *n = &w->network;
    *out = 0;
    for (uint32_t t = 0; t < f->trees; t++)
        for (uint32_t i = 0; i < f->nodes; i++) {
            uint32_t parent = f->parents[t * f->nodes + i];
            snprintf(out + strlen(out), size - strlen(out), "%s<%s ",
                     n->grid.hosts[n->hosts[n->shape->hosts[i].first_rank]].name,
                     n->grid.hosts[n->hosts[n->shape->hosts[parent].first_rank]].name);
        }
}

/* Trees lead where the text says, whatever the order of ranks; with a root beside the planned one the two change
 * places. */
static void trees_are_those_of_the_text(void **state)
{
    static const struct {
        const char *ranks, *trees;
        uint32_t root;
    } rows[] = {
        {RANKS, "a1<a1 a2<a1 b1<a1 b2<b1 c1<a1 a1<a1 a2<c1 b1<b2 b2<a1 c1<b2 ", 0},
        {RANKS, "a1<a2 a2<a2 b1<a2 b2<b1 c1<a2 a1<c1 a2<a2 b1<b2 b2<a2 c1<b2 ", 2},
        {"c1 b2 b1 a2 a1 b1 a1", "c1<a1 b2<b1 b1<a1 a2<a1 a1<a1 c1<b2 b2<a1 b1<b2 a2<c1 a1<a1 ", 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w;
        struct tb_followed *followed;
        struct tb_forest *forest;
        struct tb_choice choice;
        uint32_t *hosts;
        char out[512];
        world_open(&w, text, rows[i].ranks);
        assert_int_equal(tb_followed_open(&followed, w.image, w.length, w.seats, w.seat_count), TB_OK);
        assert_int_equal(tb_followed_match(followed, w.network.shape, &hosts), TB_OK);
        assert_non_null(hosts);
        struct tb_collective c = call_of(TB_OPERATION_BCAST, 7, rows[i].root, 1024);
        c.shape = w.network.shape;
        const struct tb_plan_row *row = tb_followed_find(followed, hosts, &c);
        assert_non_null(row);
        assert_int_equal(tb_followed_choose(followed, hosts, row, &c, &choice, &forest), TB_OK);
        forest_print(&w, forest, out, sizeof out);
        assert_string_equal(out, rows[i].trees);
        assert_int_equal(forest->shares[0], 2);
        /* In the order in which they are served. */
        const uint32_t *first = forest->first + forest->root;
        uint32_t served = forest->children[first[0]];
        assert_string_equal(w.network.grid.hosts[w.network.hosts[w.network.shape->hosts[served].first_rank]].name,
                            "c1");
        tb_forest_close(forest);
        free(hosts);
        tb_followed_close(followed);
        world_close(&w);
    }
}

static void the_user_goes_first(void **state)
{
    struct world w;
    world_open(&w, text, RANKS);
    const struct tb_group_shape *shape = w.network.shape;
    assert_int_equal(tb_param_set("reduce", "linear", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_param_set("rules", "allreduce ring", TB_PARAM_LAUNCHER), TB_OK);
    world_follow(&w);
    struct tb_collective bcast = call_of(TB_OPERATION_BCAST, 7, 0, 1024);
    assert_int_equal(chosen(&w, shape, "binomial", bcast).reason, TB_REASON_INFO);
    assert_int_equal(chosen(&w, shape, "", call_of(TB_OPERATION_REDUCE, 7, 0, 64)).reason, TB_REASON_PARAMETER);
    assert_planned(chosen(&w, shape, "", call_of(TB_OPERATION_ALLREDUCE, 7, 0, 8)), "doubling"); /* before rules */
    world_close(&w);
    assert_int_equal(tb_param_load(), TB_OK);
}

static void other_groups_have_no_plan(void **state)
{
    struct world w;
    const struct tb_group_shape *part, *turned;
    static const uint32_t some[] = {0, 2, 3, 5, 6}, back[] = {6, 5, 4, 3, 2, 1, 0};
    world_open(&w, text, RANKS);
    world_follow(&w);
    assert_int_equal(tb_group_shape_part(&part, w.network.shape, some, 5), TB_OK);
    assert_int_not_equal(chosen(&w, part, "", call_of(TB_OPERATION_BCAST, 5, 0, 1024)).reason, TB_REASON_PLAN);
    assert_int_equal(tb_group_shape_part(&turned, w.network.shape, back, 7), TB_OK);
    assert_planned(chosen(&w, turned, "", call_of(TB_OPERATION_BCAST, 7, 6, 1024)), "planned");
    tb_group_shape_release(part);
    tb_group_shape_release(turned);
    world_close(&w);
}

/* Whether there is a plan for a call is known from the beginning, or the communicator gets no planner: a rank that
 * lacks memory does not go another way than the others. */
static void rows_are_found_without_memory(void **state)
{
    struct world w;
    struct tb_shape_plans *plans = NULL;
    struct tb_collective c = call_of(TB_OPERATION_BCAST, 7, 0, 1024);
    int error = TB_ERR_MEMORY;
    world_open(&w, text, RANKS);
    world_follow(&w);
    for (uint32_t n = 1; error != TB_OK; n++) {
        countdown = n;
        error = tb_shape_plans_get(w.cache, w.network.shape, &plans);
        countdown = 0;
        if (error != TB_OK)
            assert_int_equal(error, TB_ERR_MEMORY);
        assert_true(n < 20);
    }
    countdown = 1;
    bool planned = tb_shape_plans_planned(w.cache, plans, &c);
    countdown = 0;
    assert_true(planned);
    tb_shape_plans_release(w.cache, plans);
    world_close(&w);
}

/* Other hosts, or as many ranks in other places. */
static void plans_for_other_jobs_are_refused(void **state)
{
    static const char *const others[] = {"a1 a2 b1 b1 b2 c1", "a1 a1 a1 a2 b1 b1 b2 c1", "a1 a1 b1 b1 b2 c1",
                                         "a1 a2 a2 b1 b1 b2 c1"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct world w;
        struct tb_followed *followed;
        world_open(&w, text, others[i]);
        assert_int_equal(tb_followed_open(&followed, w.image, w.length, w.seats, w.seat_count), TB_ERR_MISMATCH);
        assert_null(followed);
        assert_non_null(strstr(tb_error_story(), "digest"));
        world_close(&w);
    }
}

/* An algorithm for commutative operations, one that is not reproducible, and one that nobody knows: the call goes on
 * without, and that is told once. */
static void what_does_not_fit_is_told_once(void **state)
{
    static const char odd[] = HOSTS "allreduce bytes 1..1m\n  use ring\nbcast bytes 1\n use chain:1\n";
    struct world w;
    world_open(&w, odd, RANKS);
    struct tb_plan_row *rows = (struct tb_plan_row *)((char *)w.image + ((struct tb_plan_head *)w.image)->rows);
    assert_string_equal(rows[0].name, "chain");
    strcpy(rows[0].name, "unknown");
    world_follow(&w);
    int ends[2], kept = dup(STDERR_FILENO);
    char told[4096] = "";
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    struct tb_collective call = call_of(TB_OPERATION_ALLREDUCE, 7, 0, 4096);
    assert_planned(chosen(&w, w.network.shape, "", call), "ring");
    struct tb_choice plain = chosen(&w, w.network.shape, "", call_of(TB_OPERATION_BCAST, 7, 0, 1));
    call.commutative = false;
    call.reproducible = true;
    struct tb_choice ordered = chosen(&w, w.network.shape, "", call);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    assert_true(read(ends[0], told, sizeof told - 1) > 0);
    close(ends[0]);
    assert_int_not_equal(plain.reason, TB_REASON_PLAN);
    assert_int_not_equal(ordered.reason, TB_REASON_PLAN);
    const char *first = strstr(told, "does not fit");
    assert_non_null(first);
    assert_non_null(strstr(told, "unknown"));
    assert_null(strstr(first + 1, "does not fit"));
    world_close(&w);
}

/* However long they take, planned calls are not measured. */
static void feedback_leaves_plans_alone(void **state)
{
    struct world w;
    struct tb_planner *planner;
    world_open(&w, text, RANKS);
    assert_int_equal(tb_param_set("feedback", "1", TB_PARAM_LAUNCHER), TB_OK);
    world_follow(&w);
    assert_int_equal(tb_planner_open(w.cache, w.network.shape, 7, 0, &planner), TB_OK);
    uint32_t due[2] = {0, 0};
    for (uint32_t i = 0; i < 20; i++)
        for (int k = 0; k < 2; k++) {
            struct tb_collective c = call_of(TB_OPERATION_BCAST, 7, 0, k == 0 ? 1024 : 65536);
            const struct tb_program *program;
            assert_int_equal(tb_planner_program(planner, &c, &program), TB_OK);
            due[k] += tb_planner_due(planner, &c);
            tb_planner_release(planner, program);
        }
    assert_int_equal(due[0], 0);
    assert_true(due[1] > 0);
    tb_planner_close(planner);
    world_close(&w);
    assert_int_equal(tb_param_load(), TB_OK);
}

static struct world changed;

/* Whatever the image says, each call gets a program. */
static int take_image(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_followed *followed;
    uint8_t *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    int error = tb_followed_open(&followed, copy, length, changed.seats, changed.seat_count);
    if (error == TB_OK) {
        struct tb_planner *planner;
        assert_int_equal(tb_plan_cache_open(&changed.cache), TB_OK);
        tb_plan_cache_follow(changed.cache, followed, false);
        assert_int_equal(tb_planner_open(changed.cache, changed.network.shape, 7, 0, &planner), TB_OK);
        static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_BARRIER, TB_OPERATION_REDUCE};
        for (int i = 0; i < 3; i++) {
            struct tb_collective c = call_of(operations[i], 7, 0, i == 1 ? 0 : 1024);
            const struct tb_program *program;
            assert_int_equal(tb_planner_program(planner, &c, &program), TB_OK);
            tb_planner_release(planner, program);
        }
        tb_planner_close(planner);
        tb_plan_cache_close(changed.cache);
        changed.cache = NULL;
    }
    free(copy);
    return error;
}

static void changed_images_do_no_harm(void **state)
{
    world_open(&changed, text, RANKS);
    struct changed_bytes sweep = {
        .kind = "a plan", .take = take_image, .bytes = changed.image, .length = changed.length};
    changed_bytes_sweep(&sweep);
    world_close(&changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_follow_the_plan),
        cmocka_unit_test(trees_are_those_of_the_text),
        cmocka_unit_test(the_user_goes_first),
        cmocka_unit_test(other_groups_have_no_plan),
        cmocka_unit_test(rows_are_found_without_memory),
        cmocka_unit_test(plans_for_other_jobs_are_refused),
        cmocka_unit_test(what_does_not_fit_is_told_once),
        cmocka_unit_test(feedback_leaves_plans_alone),
        cmocka_unit_test(changed_images_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
