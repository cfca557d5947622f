/* Composite steps of some ranks only, several in a program, and item by item. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/schedule.h"

#define RANKS  6
#define PIECES 12
#define OUT(n) ((struct tb_slice){TB_SYMBOL_OUT, 0, 1, (n)})
#define IN(n)  ((struct tb_slice){TB_SYMBOL_IN, 0, 1, (n)})

static uint64_t contents[PIECES];

static struct tb_program *finish(struct tb_builder *b)
{
    struct tb_program *p = NULL;
    assert_int_equal(tb_builder_finish(b, &p), TB_OK);
    return p;
}

static void programs_free(struct tb_program **p)
{
    for (uint32_t i = 0; i < RANKS; i++)
        tb_program_free(p[i]);
}

/* ---- a broadcast through two levels ------------------------------------------------------------------------------ */

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    for (uint32_t i = 0; i < PIECES; i++)
        contents[i] = 100 + i;
    return rank == 0 && symbol == TB_SYMBOL_OUT ? contents : NULL;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return symbol == TB_SYMBOL_OUT ? contents : NULL;
}

/* What one rank does in another way than the others think. */
enum fault {
    NONE,
    LATER,        /* its steps stand in another order, which is right */
    LOOSE,        /* it passes pieces on before they have come */
    FEWER,        /* members */
    OTHER_ITEMS,  /* how many there are */
    OTHER_JOIN,   /* as many items, but not of the same pieces */
    OTHER_ROOT,   /* which is a member */
    OUTSIDE_ROOT, /* which is none */
    OTHER_PLACE,  /* of its step */
    MORE_PLACES,  /* of the program */
    ABSENT,       /* it has no such step */
    FAULTS
};

static const uint32_t leaders[] = {0, 3}, hosts[][3] = {{0, 1, 2}, {3, 4, 5}};
static const struct tb_contract bcast = {.composite = TB_COMPOSITE_BCAST, .rounds = 1, .passes = 1};

/* Rank 3 gets it from rank 0 in items of four pieces. */
static uint32_t between_hosts(struct tb_builder *b, uint32_t rank, enum fault fault)
{
    uint32_t step = tb_builder_composite(b, &bcast, 0, OUT(rank == 0 ? PIECES : 0), OUT(rank == 0 ? 0 : PIECES));
    tb_builder_place(b, 1);
    tb_builder_members(b, leaders, 2);
    tb_builder_cut(b, fault == OTHER_JOIN ? 5 : 4);
    return step;
}

/* Rank 0 and rank 3 give it to those beside them in items of two and of three. */
static uint32_t within_host(struct tb_builder *b, uint32_t rank, enum fault fault)
{
    uint32_t host = rank / 3, root = 3 * host;
    uint32_t named = fault == OTHER_ROOT ? root + 1 : fault == OUTSIDE_ROOT ? 3 - root : root;
    uint32_t step =
        tb_builder_composite(b, &bcast, named, OUT(rank == root ? PIECES : 0), OUT(rank == root ? 0 : PIECES));
    tb_builder_place(b, fault == OTHER_PLACE ? 2 : 0);
    tb_builder_members(b, hosts[host], fault == FEWER ? 2 : 3);
    tb_builder_cut(b, fault == OTHER_ITEMS ? 4 : 2 + host);
    return step;
}

static struct tb_program *level_make(uint32_t rank, enum fault fault)
{
    struct tb_builder b;
    tb_builder_open(&b, PIECES);
    tb_builder_places(&b, fault == MORE_PLACES ? 4 : 3);
    uint32_t come = 0;
    if (rank == 3 || (rank == 0 && fault != LATER))
        come = between_hosts(&b, rank, fault);
    if (fault != ABSENT)
        within_host(&b, rank, fault);
    if (rank == 3 && fault != ABSENT)
        tb_builder_after_lag(&b, come, fault == LOOSE ? 1 : 0);
    if (rank == 0 && fault == LATER)
        between_hosts(&b, rank, fault);
    return finish(&b);
}

static int levels_validate(uint32_t faulty, enum fault fault)
{
    struct tb_program *p[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++)
        p[rank] = level_make(rank, rank == faulty ? fault : NONE);
    struct tb_validation v = {.ranks = RANKS, .programs = p, .initial = initial, .expect = expect};
    int rc = tb_schedule_validate(&v);
    programs_free(p);
    return rc;
}

static void subsets_meet_item_by_item(void **state)
{
    struct tb_program *p = level_make(3, NONE);
    const struct tb_after *after = &p->after[p->steps[1].after];
    assert_int_equal(p->steps[0].items, 3);
    assert_int_equal(p->steps[1].items, 4);
    assert_int_equal(tb_step_needs(&p->steps[1], after, &p->steps[0], 0), 1);
    assert_int_equal(tb_step_needs(&p->steps[1], after, &p->steps[0], 1), 2);
    assert_int_equal(p->places, 3);
    tb_program_free(p);
    assert_int_equal(levels_validate(0, NONE), TB_OK);
    assert_int_equal(levels_validate(0, LATER), TB_OK);
}

static void members_must_agree(void **state)
{
    static const int expected[FAULTS] = {
        [LOOSE] = TB_ERR_ARGUMENT,       [FEWER] = TB_ERR_MISMATCH,       [OTHER_ITEMS] = TB_ERR_MISMATCH,
        [OTHER_ROOT] = TB_ERR_MISMATCH,  [OTHER_PLACE] = TB_ERR_MISMATCH, [OUTSIDE_ROOT] = TB_ERR_ARGUMENT,
        [MORE_PLACES] = TB_ERR_MISMATCH, [ABSENT] = TB_ERR_MISMATCH,      [OTHER_JOIN] = TB_ERR_MISMATCH};
    for (int fault = LOOSE; fault < FAULTS; fault++) {
        if (levels_validate(3, (enum fault)fault) != expected[fault])
            fail_msg("fault %d: %s", fault, tb_error_story());
        const char *story = tb_error_story();
        assert_true(fault != LOOSE || strstr(story, "no order") != NULL);
        assert_true(fault != FEWER || strstr(story, "who takes part") != NULL);
        bool other = fault == OTHER_ITEMS || fault == OTHER_JOIN || fault == OTHER_ROOT;
        assert_true(!other || strstr(story, "another composite step at this place") != NULL);
        assert_true(fault != MORE_PLACES || strstr(story, "places") != NULL);
        assert_true(fault != OUTSIDE_ROOT || strstr(story, "none of the 3 members") != NULL);
    }
    assert_int_equal(levels_validate(5, FEWER), TB_ERR_ARGUMENT); /* it is none of these itself */
}

/* Without the dependency between its two composite steps, rank 3 gives what it has not got. */
static void every_item_waits_for_its_own(void **state)
{
    struct tb_program *p[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++)
        p[rank] = level_make(rank, NONE);
    p[3]->steps[1].after_count = 0;
    struct tb_validation v = {.ranks = RANKS, .programs = p, .initial = initial, .expect = expect};
    assert_int_equal(tb_schedule_validate(&v), TB_ERR_ARGUMENT);
    p[3]->steps[1].after_count = 1;
    assert_int_equal(tb_schedule_validate(&v), TB_OK);
    programs_free(p);
}

/* ---- reductions and blocks --------------------------------------------------------------------------------------- */

/* What a rank gives: a digit for each rank that is in it, in the order in which they were combined. */
static uint64_t *operand(void *context, uint32_t rank, enum tb_symbol symbol)
{
    for (uint32_t i = 0; i < PIECES; i++)
        contents[i] = rank + 1;
    return symbol == TB_SYMBOL_IN ? contents : NULL;
}

static uint64_t append(void *context, uint64_t first, uint64_t second)
{
    uint64_t shift = 10;
    while (shift <= second)
        shift *= 10;
    return first * shift + second;
}

/* Ranks 1, 2 and 4 have the reduction of theirs, the others what they have together. */
static const uint64_t *reduced(void *context, uint32_t rank, enum tb_symbol symbol)
{
    for (uint32_t i = 0; i < PIECES; i++)
        contents[i] = rank == 1 || rank == 2 || rank == 4 ? 235 : 146;
    return symbol == TB_SYMBOL_OUT ? contents : NULL;
}

/* Rank 4 has what ranks 1, 2 and 4 gave, rank 0 what 0, 3 and 5 gave, in the first three pieces. */
static const uint64_t *gathered(void *context, uint32_t rank, enum tb_symbol symbol)
{
    static const uint64_t some[] = {2, 3, 5}, others[] = {1, 4, 6};
    memset(contents, 0, sizeof contents);
    if (rank == 4)
        memcpy(contents, some, sizeof some);
    if (rank == 0)
        memcpy(contents, others, sizeof others);
    return symbol == TB_SYMBOL_OUT ? contents : NULL;
}

/* Two groups that lie between each other. */
static int groups_validate(enum tb_composite composite)
{
    static const uint32_t groups[][3] = {{1, 2, 4}, {0, 3, 5}};
    bool gather = composite == TB_COMPOSITE_GATHER;
    struct tb_program *p[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct tb_contract contract = {.composite = (uint8_t)composite, .rounds = 1, .passes = 1};
        uint32_t group = rank == 1 || rank == 2 || rank == 4 ? 0 : 1, root = group == 0 ? 4 : 0;
        uint32_t gets = !gather ? PIECES : rank == root ? 3 : 0;
        struct tb_builder b;
        tb_builder_open(&b, PIECES);
        tb_builder_composite(&b, &contract, root, IN(gather ? 1 : PIECES), OUT(gets));
        tb_builder_members(&b, groups[group], 3);
        if (!gather)
            tb_builder_cut(&b, 5);
        p[rank] = finish(&b);
    }
    struct tb_validation v = {.ranks = RANKS, .programs = p, .initial = operand, .combine = append};
    v.expect = gather ? gathered : reduced;
    int rc = tb_schedule_validate(&v);
    programs_free(p);
    return rc;
}

static void members_are_numbered(void **state)
{
    assert_int_equal(groups_validate(TB_COMPOSITE_ALLREDUCE), TB_OK);
    assert_int_equal(groups_validate(TB_COMPOSITE_GATHER), TB_OK);
}

/* ---- the builder ------------------------------------------------------------------------------------------------- */

static void places_are_given_one_after_the_other(void **state)
{
    const struct tb_contract barrier = {.composite = TB_COMPOSITE_BARRIER};
    struct tb_builder b;
    tb_builder_open(&b, 0);
    for (uint32_t i = 0; i < 3; i++)
        tb_builder_composite(&b, &barrier, 0, OUT(0), OUT(0));
    struct tb_program *p = finish(&b);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(p->steps[i].edge, i);
    assert_int_equal(p->places, 3);
    tb_program_free(p);
}

enum mistake {
    PLACE_TWICE,
    PLACE_TOO_HIGH,
    MEMBERS_TWICE,
    BLOCKS_CUT,
    NO_COMPOSITE,
    MANY_PLACES,
    MANY_ITEMS,
    MISTAKES
};

static void mistakes_are_refused(void **state)
{
    static const uint32_t twice[] = {1, 1};
    const struct tb_contract gather = {.composite = TB_COMPOSITE_GATHER};
    for (int mistake = 0; mistake < MISTAKES; mistake++) {
        struct tb_builder b;
        struct tb_program *p = NULL;
        tb_builder_open(&b, PIECES);
        for (int i = 0; i < (mistake == MANY_PLACES ? 33 : 2); i++)
            tb_builder_composite(&b, &bcast, 0, OUT(mistake == MANY_ITEMS ? 5000 : 1), OUT(0));
        if (mistake == PLACE_TWICE)
            tb_builder_place(&b, 0);
        if (mistake == PLACE_TOO_HIGH)
            tb_builder_places(&b, 1);
        if (mistake == MEMBERS_TWICE)
            tb_builder_members(&b, twice, 2);
        if (mistake == MANY_ITEMS)
            tb_builder_cut(&b, 1);
        if (mistake == BLOCKS_CUT) {
            tb_builder_composite(&b, &gather, 0, IN(1), OUT(4));
            tb_builder_cut(&b, 1);
        }
        if (mistake == NO_COMPOSITE) {
            tb_builder_send(&b, 1, 0, OUT(1));
            tb_builder_members(&b, hosts[0], 3);
        }
        bool limit = mistake == MANY_PLACES || mistake == MANY_ITEMS;
        assert_int_equal(tb_builder_finish(&b, &p), limit ? TB_ERR_LIMIT : TB_ERR_ARGUMENT);
        assert_null(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(subsets_meet_item_by_item),
                                       cmocka_unit_test(members_must_agree),
                                       cmocka_unit_test(every_item_waits_for_its_own),
                                       cmocka_unit_test(members_are_numbered),
                                       cmocka_unit_test(places_are_given_one_after_the_other),
                                       cmocka_unit_test(mistakes_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
