/* The registry of a job: named groups and published names, asked by processes that are numbers here. */
#include "job/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PROCS     16u
#define QUESTIONS 4096u
#define OPEN      (-1) /* no answer yet */

/* What has been answered, by number of the question. */
struct world {
    struct tb_registry registry;
    uint32_t asked, open;
    int results[QUESTIONS];
    uint32_t askers[QUESTIONS];
    struct tb_registry_answer answers[QUESTIONS]; /* without their members, */
    uint32_t members[QUESTIONS][PROCS];           /* which are here */
};

static void take_answer(void *context, uint32_t proc, const struct tb_registry_answer *answer)
{
    struct world *w = context;
    assert_true(answer->number < w->asked);
    assert_int_equal(w->askers[answer->number], proc);
    assert_int_equal(w->results[answer->number], OPEN); /* each is answered once */
    assert_true(answer->member_count <= PROCS);
    w->results[answer->number] = (int)answer->result;
    w->answers[answer->number] = *answer;
    if (answer->member_count > 0)
        memcpy(w->members[answer->number], answer->members, answer->member_count * sizeof(uint32_t));
    w->open--;
}

static struct world *open_world(void)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    tb_registry_open(&w->registry, take_answer, w);
    return w;
}

static void close_world(struct world *w)
{
    tb_registry_close(&w->registry);
    assert_int_equal(w->registry.groups.group_count, 0);
    assert_int_equal(w->registry.groups.wait_count, 0);
    assert_int_equal(w->registry.names.name_count, 0);
    free(w);
}

/* The number of the question. */
static uint32_t ask_of(struct world *w, uint32_t proc, enum tb_registry_kind kind, const char *name, uint32_t count,
                       uint64_t patience, const char *value, uint8_t flags, uint64_t now)
{
    struct tb_registry_question question = {
        .number = w->asked, .kind = kind, .flags = flags, .count = count, .patience = patience};
    assert_true(w->asked < QUESTIONS);
    snprintf(question.name, sizeof question.name, "%s", name);
    snprintf(question.value, sizeof question.value, "%s", value);
    w->results[w->asked] = OPEN;
    w->askers[w->asked++] = proc;
    w->open++;
    tb_registry_ask(&w->registry, proc, &question, now);
    return question.number;
}

static uint32_t ask(struct world *w, uint32_t proc, enum tb_registry_kind kind, const char *name, uint32_t count)
{
    return ask_of(w, proc, kind, name, count, TB_REGISTRY_FOREVER, "", 0, 0);
}

static int result(struct world *w, uint32_t proc, enum tb_registry_kind kind, const char *name, uint32_t count)
{
    return w->results[ask(w, proc, kind, name, count)];
}

static void groups_begin_and_end(void **state)
{
    struct world *w = open_world();
    assert_int_equal(result(w, 3, TB_REGISTRY_LOOK, "a", 0), TB_REGISTRY_NO_GROUP);
    assert_int_equal(result(w, 3, TB_REGISTRY_LEAVE, "a", 0), TB_REGISTRY_NO_GROUP);
    assert_int_equal(result(w, 3, TB_REGISTRY_JOIN, "a", 0), TB_REGISTRY_DONE);
    assert_int_equal(result(w, 3, TB_REGISTRY_JOIN, "a", 0), TB_REGISTRY_MEMBER);
    assert_int_equal(result(w, 1, TB_REGISTRY_JOIN, "a", 0), TB_REGISTRY_DONE);
    assert_int_equal(result(w, 1, TB_REGISTRY_JOIN, "b", 0), TB_REGISTRY_DONE);
    uint32_t q = ask(w, 9, TB_REGISTRY_LOOK, "a", 0); /* from outside */
    assert_int_equal(w->answers[q].member_count, 2);
    assert_int_equal(w->members[q][0], 3); /* in the order in which they came */
    assert_int_equal(w->members[q][1], 1);
    assert_int_equal(w->answers[q].generation, 2);
    uint32_t first_id = w->answers[q].id;
    assert_int_not_equal(first_id, w->answers[ask(w, 9, TB_REGISTRY_LOOK, "b", 0)].id);
    assert_int_equal(result(w, 9, TB_REGISTRY_LEAVE, "a", 0), TB_REGISTRY_STRANGER);
    q = ask(w, 3, TB_REGISTRY_LEAVE, "a", 0);
    assert_int_equal(w->results[q], TB_REGISTRY_DONE);
    assert_int_equal(w->answers[q].id, first_id); /* which it has left */
    q = ask(w, 9, TB_REGISTRY_LOOK, "a", 0);
    assert_int_equal(w->answers[q].generation, 3);
    assert_int_equal(w->members[q][0], 1);
    q = ask(w, 1, TB_REGISTRY_LEAVE, "a", 0);
    assert_int_equal(w->results[q], TB_REGISTRY_DONE);
    assert_int_equal(w->answers[q].id, first_id); /* also when it was the last one */
    assert_int_equal(result(w, 1, TB_REGISTRY_LOOK, "a", 0), TB_REGISTRY_NO_GROUP);
    assert_int_equal(result(w, 1, TB_REGISTRY_JOIN, "a", 0), TB_REGISTRY_DONE);
    q = ask(w, 9, TB_REGISTRY_LOOK, "a", 0);
    assert_int_not_equal(w->answers[q].id, first_id); /* another group of the same name */
    assert_int_equal(w->answers[q].generation, 1);
    close_world(w);
}

static void frozen_groups_let_nobody_in(void **state)
{
    struct world *w = open_world();
    ask(w, 0, TB_REGISTRY_JOIN, "a", 0);
    ask(w, 1, TB_REGISTRY_JOIN, "a", 0);
    uint32_t many = ask(w, 1, TB_REGISTRY_MEET, "a", 3), stands = ask(w, 0, TB_REGISTRY_BARRIER, "a", 3);
    assert_int_equal(w->open, 2);
    assert_int_equal(result(w, 5, TB_REGISTRY_FREEZE, "a", 0), TB_REGISTRY_STRANGER);
    assert_int_equal(result(w, 0, TB_REGISTRY_FREEZE, "a", 0), TB_REGISTRY_DONE);
    assert_int_equal(result(w, 0, TB_REGISTRY_FREEZE, "a", 0), TB_REGISTRY_DONE);
    assert_int_equal(w->results[many], TB_REGISTRY_UNEQUAL); /* that can never be */
    assert_int_equal(w->results[stands], TB_REGISTRY_UNEQUAL);
    assert_int_equal(result(w, 5, TB_REGISTRY_JOIN, "a", 0), TB_REGISTRY_FROZEN);
    assert_int_equal(result(w, 0, TB_REGISTRY_JOIN, "a", 0), TB_REGISTRY_MEMBER);
    assert_int_equal(result(w, 0, TB_REGISTRY_BARRIER, "a", 3), TB_REGISTRY_UNEQUAL);
    assert_int_equal(result(w, 0, TB_REGISTRY_MEET, "a", 3), TB_REGISTRY_UNEQUAL);
    uint32_t both = ask(w, 0, TB_REGISTRY_BARRIER, "a", 2);
    assert_int_equal(w->results[both], OPEN);
    ask(w, 1, TB_REGISTRY_LEAVE, "a", 0);
    assert_int_equal(w->results[both], TB_REGISTRY_UNEQUAL);
    assert_true(w->answers[ask(w, 7, TB_REGISTRY_LOOK, "a", 0)].frozen);
    close_world(w);
}

static void members_meet(void **state)
{
    struct world *w = open_world();
    for (uint32_t i = 0; i < 3; i++)
        ask(w, i, TB_REGISTRY_JOIN, "a", 0);
    assert_int_equal(result(w, 4, TB_REGISTRY_MEET, "a", 1), TB_REGISTRY_STRANGER);
    uint32_t first = ask(w, 0, TB_REGISTRY_MEET, "a", 1);
    assert_int_equal(result(w, 0, TB_REGISTRY_MEET, "a", 1), TB_REGISTRY_BUSY);
    uint32_t second = ask(w, 2, TB_REGISTRY_MEET, "a", 4);
    uint32_t third = ask(w, 1, TB_REGISTRY_MEET, "a", 1);
    assert_int_equal(w->open, 3); /* one of them wants four members */
    ask(w, 3, TB_REGISTRY_JOIN, "a", 0);
    assert_int_equal(w->open, 3);
    uint32_t fourth = ask(w, 3, TB_REGISTRY_MEET, "a", 1);
    assert_int_equal(w->open, 0);
    const uint32_t all[] = {first, second, third, fourth};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(w->results[all[i]], TB_REGISTRY_DONE);
        assert_int_equal(w->answers[all[i]].member_count, 4);
        assert_int_equal(w->answers[all[i]].round, w->answers[first].round);
        assert_int_equal(w->members[all[i]][3], 3);
    }
    /* Who goes is not waited for, and the next round has another number. */
    for (uint32_t i = 0; i < 3; i++)
        ask(w, i, TB_REGISTRY_MEET, "a", 1);
    assert_int_equal(w->open, 3);
    ask(w, 3, TB_REGISTRY_LEAVE, "a", 0);
    assert_int_equal(w->open, 0);
    assert_int_equal(w->answers[w->asked - 2].round, w->answers[first].round + 1);
    close_world(w);
}

static void barriers_count(void **state)
{
    struct world *w = open_world();
    for (uint32_t i = 0; i < 4; i++)
        ask(w, i, TB_REGISTRY_JOIN, "a", 0);
    ask(w, 0, TB_REGISTRY_BARRIER, "a", 2);
    assert_int_equal(result(w, 0, TB_REGISTRY_BARRIER, "a", 2), TB_REGISTRY_BUSY);
    assert_int_equal(result(w, 1, TB_REGISTRY_BARRIER, "a", 3), TB_REGISTRY_UNEQUAL);
    assert_int_equal(w->open, 1);
    assert_int_equal(result(w, 2, TB_REGISTRY_BARRIER, "a", 2), TB_REGISTRY_DONE);
    assert_int_equal(w->open, 0);
    for (uint32_t i = 0; i < 3; i++)
        ask(w, i, TB_REGISTRY_BARRIER, "a", 0);
    assert_int_equal(w->open, 3);
    ask(w, 3, TB_REGISTRY_LEAVE, "a", 0); /* all that there are: three */
    assert_int_equal(w->open, 0);
    /* One who leaves from another thread while it waits is told. */
    uint32_t q = ask(w, 0, TB_REGISTRY_BARRIER, "a", 0);
    ask(w, 0, TB_REGISTRY_LEAVE, "a", 0);
    assert_int_equal(w->results[q], TB_REGISTRY_STRANGER);
    close_world(w);
}

static void the_dead_are_told_once(void **state)
{
    struct world *w = open_world();
    char names[64];
    for (uint32_t i = 0; i < 4; i++)
        ask(w, i, TB_REGISTRY_JOIN, "a", 0);
    ask(w, 3, TB_REGISTRY_JOIN, "b", 0);
    assert_int_equal(tb_group_table_print(&w->registry.groups, 3, names, sizeof names), 2);
    assert_string_equal(names, "a, b");
    uint32_t waits = ask(w, 0, TB_REGISTRY_MEET, "a", 1), watches = ask(w, 9, TB_REGISTRY_WATCH, "a", 4);
    tb_registry_end(&w->registry, 3, true);
    assert_int_equal(w->results[waits], TB_REGISTRY_DEAD);
    assert_int_equal(w->answers[waits].who, 3);
    assert_int_equal(w->answers[waits].more, 0);
    assert_int_equal(w->results[watches], TB_REGISTRY_DONE);
    assert_int_equal(w->answers[watches].generation, 5);
    assert_int_equal(result(w, 0, TB_REGISTRY_LOOK, "b", 0), TB_REGISTRY_NO_GROUP);
    tb_registry_end(&w->registry, 2, true);
    uint32_t late = ask(w, 1, TB_REGISTRY_BARRIER, "a", 0);
    assert_int_equal(w->results[late], TB_REGISTRY_DEAD);
    assert_int_equal(w->answers[late].who, 3);
    assert_int_equal(w->answers[late].more, 1);
    late = ask(w, 0, TB_REGISTRY_MEET, "a", 1);
    assert_int_equal(w->results[late], TB_REGISTRY_DEAD);
    assert_int_equal(w->answers[late].who, 2);
    ask(w, 7, TB_REGISTRY_JOIN, "a", 0);
    /* Those who were told, and who came later, go on without the dead. */
    const uint32_t alive[] = {0, 1, 7};
    for (size_t i = 0; i < 3; i++)
        ask(w, alive[i], TB_REGISTRY_MEET, "a", 1);
    assert_int_equal(w->open, 0);
    assert_int_equal(w->answers[w->asked - 1].member_count, 3);
    uint32_t q = ask(w, 5, TB_REGISTRY_MISSED, "a", 0);
    assert_int_equal(w->answers[q].member_count, 2);
    assert_int_equal(w->members[q][0], 3);
    assert_int_equal(w->members[q][1], 2);
    /* One that ends in good order has left. */
    uint32_t stays = ask(w, 1, TB_REGISTRY_BARRIER, "a", 0);
    tb_registry_end(&w->registry, 0, false);
    assert_int_equal(w->results[stays], OPEN);
    ask_of(w, 7, TB_REGISTRY_END, "", 0, 0, "", 0, 0); /* the same, said by itself */
    assert_int_equal(w->results[stays], TB_REGISTRY_DONE);
    assert_int_equal(w->answers[stays].member_count, 1);
    close_world(w);
}

/* It waits in two threads, and both are told. */
static void the_dead_are_told_to_all_who_wait(void **state)
{
    struct world *w = open_world();
    for (uint32_t i = 0; i < 3; i++)
        ask(w, i, TB_REGISTRY_JOIN, "a", 0);
    uint32_t meets = ask(w, 0, TB_REGISTRY_MEET, "a", 0), stands = ask(w, 0, TB_REGISTRY_BARRIER, "a", 0);
    ask(w, 2, TB_REGISTRY_MEET, "a", 0); /* of the dead one, which nobody answers */
    tb_registry_end(&w->registry, 2, true);
    assert_int_equal(w->results[meets], TB_REGISTRY_DEAD);
    assert_int_equal(w->results[stands], TB_REGISTRY_DEAD);
    assert_int_equal(w->answers[stands].who, 2);
    assert_int_equal(w->open, 1);
    close_world(w);
}

static void waits_end_in_time(void **state)
{
    struct world *w = open_world();
    ask(w, 0, TB_REGISTRY_JOIN, "a", 0);
    ask(w, 1, TB_REGISTRY_JOIN, "a", 0);
    uint32_t meets = ask_of(w, 0, TB_REGISTRY_MEET, "a", 5, 100, "", 0, 1000);
    uint32_t stands = ask_of(w, 0, TB_REGISTRY_BARRIER, "a", 0, 50, "", 0, 1000);
    uint32_t comes = ask_of(w, 0, TB_REGISTRY_WATCH, "c", 0, 70, "", 0, 1000);
    uint32_t name = ask_of(w, 0, TB_REGISTRY_LOOKUP, "n", 0, 60, "", 0, 1000);
    assert_true(w->registry.next == 1050);
    tb_registry_expire(&w->registry, 1049);
    assert_int_equal(w->open, 4);
    tb_registry_expire(&w->registry, 1050);
    assert_int_equal(w->results[stands], TB_REGISTRY_LATE);
    assert_true(w->registry.next == 1060);
    tb_registry_expire(&w->registry, 1070);
    assert_int_equal(w->results[comes], TB_REGISTRY_LATE);
    assert_int_equal(w->results[name], TB_REGISTRY_LATE);
    assert_true(w->registry.next == 1100);
    tb_registry_expire(&w->registry, 2000);
    assert_int_equal(w->results[meets], TB_REGISTRY_LATE);
    assert_true(w->registry.next == TB_NEVER);
    /* Whoever was late may ask again; what it wanted then counts no more. */
    ask(w, 0, TB_REGISTRY_MEET, "a", 2);
    assert_int_equal(result(w, 1, TB_REGISTRY_MEET, "a", 2), TB_REGISTRY_DONE);
    assert_int_equal(w->open, 0);
    close_world(w);
}

static void changes_are_watched(void **state)
{
    struct world *w = open_world();
    assert_int_equal(result(w, 5, TB_REGISTRY_WATCH, "a", 2), TB_REGISTRY_NO_GROUP);
    uint32_t begins = ask(w, 5, TB_REGISTRY_WATCH, "a", 0);
    ask(w, 0, TB_REGISTRY_JOIN, "ab", 0);
    assert_int_equal(w->results[begins], OPEN);
    ask(w, 0, TB_REGISTRY_JOIN, "a", 0);
    assert_int_equal(w->results[begins], TB_REGISTRY_DONE);
    assert_int_equal(w->answers[begins].generation, 1);
    assert_int_equal(result(w, 5, TB_REGISTRY_WATCH, "a", 0), TB_REGISTRY_DONE);
    uint32_t changes = ask(w, 5, TB_REGISTRY_WATCH, "a", 1), gone = ask(w, 6, TB_REGISTRY_WATCH, "a", 1);
    tb_registry_end(&w->registry, 6, true); /* of it nobody hears: it was no member */
    ask(w, 1, TB_REGISTRY_JOIN, "a", 0);
    assert_int_equal(w->results[changes], TB_REGISTRY_DONE);
    assert_int_equal(w->answers[changes].member_count, 2);
    assert_int_equal(w->results[gone], OPEN);
    uint32_t last = ask(w, 5, TB_REGISTRY_WATCH, "a", 2);
    ask(w, 0, TB_REGISTRY_LEAVE, "a", 0);
    assert_int_equal(w->results[last], TB_REGISTRY_DONE);
    last = ask(w, 5, TB_REGISTRY_WATCH, "a", 3);
    ask(w, 1, TB_REGISTRY_LEAVE, "a", 0);
    assert_int_equal(w->results[last], TB_REGISTRY_NO_GROUP);
    close_world(w);
}

static void names_are_published(void **state)
{
    struct world *w = open_world();
    assert_int_equal(w->results[ask_of(w, 0, TB_REGISTRY_LOOKUP, "s", 0, 0, "", 0, 0)], TB_REGISTRY_UNKNOWN);
    uint32_t waits = ask(w, 4, TB_REGISTRY_LOOKUP, "s", 0);
    ask_of(w, 1, TB_REGISTRY_PUBLISH, "s", 0, 0, "port 1", 0, 0);
    assert_int_equal(w->results[waits], TB_REGISTRY_DONE);
    assert_string_equal(w->answers[waits].value, "port 1");
    assert_int_equal(w->results[ask_of(w, 2, TB_REGISTRY_PUBLISH, "s", 0, 0, "port 2", 0, 0)], TB_REGISTRY_TAKEN);
    assert_string_equal(w->answers[ask(w, 0, TB_REGISTRY_LOOKUP, "s", 0)].value, "port 1");
    ask_of(w, 2, TB_REGISTRY_PUBLISH, "s", 0, 0, "port 2", TB_REGISTRY_REPLACES, 0);
    assert_string_equal(w->answers[ask(w, 0, TB_REGISTRY_LOOKUP, "s", 0)].value, "port 2");
    assert_int_equal(w->results[ask_of(w, 2, TB_REGISTRY_UNPUBLISH, "s", 0, 0, "port 1", 0, 0)], TB_REGISTRY_OTHER);
    assert_int_equal(w->results[ask_of(w, 1, TB_REGISTRY_UNPUBLISH, "s", 0, 0, "port 2", 0, 0)], TB_REGISTRY_DONE);
    assert_int_equal(w->results[ask_of(w, 1, TB_REGISTRY_UNPUBLISH, "s", 0, 0, "port 2", 0, 0)], TB_REGISTRY_UNKNOWN);
    ask_of(w, 3, TB_REGISTRY_PUBLISH, "t", 0, 0, "port 3", 0, 0);
    ask(w, 3, TB_REGISTRY_LOOKUP, "u", 0);
    tb_registry_end(&w->registry, 3, false); /* its names go with it, and what it waits for */
    assert_int_equal(w->results[ask_of(w, 0, TB_REGISTRY_LOOKUP, "t", 0, 0, "", 0, 0)], TB_REGISTRY_UNKNOWN);
    assert_int_equal(w->registry.names.wait_count, 0);
    close_world(w);
}

static void there_is_a_limit(void **state)
{
    struct world *w = open_world();
    char name[32], text[16];
    for (uint32_t i = 0; i < TB_GROUP_TABLE_GROUPS; i++) {
        w->asked = 0;
        snprintf(name, sizeof name, "group %u", i);
        assert_int_equal(result(w, 0, TB_REGISTRY_JOIN, name, 0), TB_REGISTRY_DONE);
    }
    w->asked = 0;
    assert_int_equal(result(w, 1, TB_REGISTRY_JOIN, "one more", 0), TB_REGISTRY_FULL);
    assert_int_equal(result(w, 1, TB_REGISTRY_JOIN, "group 7", 0), TB_REGISTRY_DONE);
    assert_int_equal(tb_group_table_print(&w->registry.groups, 0, text, sizeof text), TB_GROUP_TABLE_GROUPS);
    assert_string_equal(text, "group 0, ...");
    tb_registry_end(&w->registry, 0, true);
    assert_int_equal(w->registry.groups.group_count, 1);
    close_world(w);
}

/* Whatever processes do, in any order: the answers of one round are the same for all, of all members and nobody else,
 * nobody waits for ever, and nothing is left at the end. */
static void storms_pass(void **state)
{
    static const enum tb_registry_kind kinds[] = {TB_REGISTRY_JOIN,    TB_REGISTRY_JOIN,  TB_REGISTRY_LEAVE,
                                                  TB_REGISTRY_MEET,    TB_REGISTRY_MEET,  TB_REGISTRY_MEET,
                                                  TB_REGISTRY_BARRIER, TB_REGISTRY_WATCH, TB_REGISTRY_LOOK,
                                                  TB_REGISTRY_MISSED,  TB_REGISTRY_FREEZE};
    static const char *const names[] = {"a", "b"};
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct world *w = open_world();
        unsigned random = seed;
        for (uint32_t i = 0; i < 1000; i++) {
            uint32_t proc = (uint32_t)rand_r(&random) % 6, before = w->asked;
            unsigned what = (unsigned)rand_r(&random) % 40;
            if (what < 2) {
                tb_registry_end(&w->registry, proc, what == 0);
                for (uint32_t k = 0; k < w->asked; k++) /* a new one takes its index: questions of the old are over */
                    if (w->askers[k] == proc && w->results[k] == OPEN) {
                        w->results[k] = TB_REGISTRY_LATE;
                        w->open--;
                    }
                continue;
            }
            if (what == 2) {
                tb_registry_expire(&w->registry, i);
                continue;
            }
            enum tb_registry_kind kind = kinds[what % 11];
            if (kind == TB_REGISTRY_FREEZE && rand_r(&random) % 8 != 0)
                continue;
            ask_of(w, proc, kind, names[rand_r(&random) % 2], (uint32_t)rand_r(&random) % 3,
                   (uint64_t)rand_r(&random) % 50, "", 0, i);
            for (uint32_t k = 0; k < before; k++) /* those who met now have met with this one */
                if (w->results[before] == TB_REGISTRY_DONE && kind == TB_REGISTRY_MEET && w->answers[k].round > 0 &&
                    w->answers[k].id == w->answers[before].id && w->answers[k].round == w->answers[before].round &&
                    w->answers[k].generation == w->answers[before].generation) {
                    assert_int_equal(w->answers[k].member_count, w->answers[before].member_count);
                    assert_memory_equal(w->members[k], w->members[before],
                                        w->answers[k].member_count * sizeof(uint32_t));
                }
        }
        tb_registry_expire(&w->registry, 2000);
        assert_int_equal(w->open, 0);
        assert_int_equal(w->registry.groups.wait_count, 0);
        for (uint32_t proc = 0; proc < 6; proc++)
            tb_registry_end(&w->registry, proc, proc % 2 == 0);
        assert_int_equal(w->registry.groups.group_count, 0);
        close_world(w);
    }
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(groups_begin_and_end),
        cmocka_unit_test(frozen_groups_let_nobody_in),
        cmocka_unit_test(members_meet),
        cmocka_unit_test(barriers_count),
        cmocka_unit_test(the_dead_are_told_once),
        cmocka_unit_test(the_dead_are_told_to_all_who_wait),
        cmocka_unit_test(waits_end_in_time),
        cmocka_unit_test(changes_are_watched),
        cmocka_unit_test(names_are_published),
        cmocka_unit_test(there_is_a_limit),
        cmocka_unit_test(storms_pass),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
