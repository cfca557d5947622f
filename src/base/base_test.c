#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>

static void stories_quote_the_one_before(void **state)
{
    assert_int_equal(tb_error(TB_ERR_PEER, "no answer from %s", "venus2"), TB_ERR_PEER);
    assert_int_equal(tb_error(TB_ERR_PEER, "rank 3: %s", tb_error_story()), TB_ERR_PEER);
    assert_string_equal(tb_error_story(), "rank 3: no answer from venus2");
    for (int code = TB_ERR_INTERNAL; code <= TB_PENDING; code++)
        assert_string_not_equal(tb_error_name(code), "unknown error");
    assert_string_equal(tb_error_name(-999), "unknown error");
}

static void long_stories_are_cut(void **state)
{
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    tb_error(TB_ERR_SYSTEM, "%s", text);
    assert_true(strlen(tb_error_story()) < 1024);
}

struct item {
    int value;
    struct tb_list node;
};

static void stories_name_the_limit_that_was_met(void **state)
{
    struct rlimit before;
    char text[64];
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, before.rlim_max}), 0);
    errno = EMFILE;
    tb_error_errno("no descriptor");
    assert_non_null(strstr(tb_error_story(), "no descriptor: "));
    assert_non_null(strstr(tb_error_story(), "; `ulimit -n` is 64"));
    tb_error(TB_ERR_SYSTEM, "rank 3: %s", tb_error_story());
    errno = EMFILE;
    tb_error_errno("%s, and again", tb_error_story());
    const char *first = strstr(tb_error_story(), "`ulimit");
    assert_null(strstr(first + 1, "`ulimit")); /* once is enough */
    setrlimit(RLIMIT_NOFILE, &before);
    assert_string_equal(tb_error_limit(ENOENT, text, sizeof text), "");
    errno = ENOENT;
    tb_error_errno("no file");
    assert_null(strstr(tb_error_story(), "ulimit"));
}

static void list_visits_and_removes(void **state)
{
    struct tb_list list;
    struct item items[5], *each;
    tb_list_init(&list);
    assert_true(tb_list_empty(&list));
    for (int i = 0; i < 5; i++) {
        items[i].value = i;
        tb_list_append(&list, &items[i].node);
    }
    int sum = 0;
    TB_LIST_EACH (each, &list, struct item, node) {
        sum += each->value;
        if (each->value % 2)
            tb_list_remove(&each->node);
    }
    assert_int_equal(sum, 10);
    sum = 0;
    TB_LIST_EACH (each, &list, struct item, node)
        sum += each->value;
    assert_int_equal(sum, 6);
    tb_list_remove(&items[1].node); /* again: harmless */
    tb_list_prepend(&list, &items[3].node);
    assert_ptr_equal(TB_CONTAINER(list.next, struct item, node), &items[3]);
}

static void pool_is_bounded_and_reuses(void **state)
{
    struct tb_pool pool;
    tb_pool_open(&pool, 24, 4, 10);
    void *objects[10];
    for (int i = 0; i < 10; i++) {
        objects[i] = tb_pool_take(&pool);
        assert_non_null(objects[i]);
        memset(objects[i], i, 24);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(objects[i], objects[j]);
    }
    assert_null(tb_pool_take(&pool));
    assert_non_null(strstr(tb_error_story(), "10"));
    tb_pool_give(&pool, objects[7]);
    assert_ptr_equal(tb_pool_take(&pool), objects[7]);
    assert_int_equal(pool.used, 10);
    for (int i = 0; i < 10; i++)
        if (i != 7)
            assert_int_equal(((unsigned char *)objects[i])[23], i);
    tb_pool_close(&pool);
}

/* Spans over every second byte of an array. */
static void every_second(struct tb_spans *s)
{
    s->base = (char *)s->owner + 2 * ++s->cursor[0];
    s->length = 1;
}

static void spans_gather_and_scatter(void **state)
{
    char memory[20], packed[10] = {0};
    for (int i = 0; i < 20; i++)
        memory[i] = (char)i;
    struct tb_spans s = {.base = memory, .length = 1, .left = 10, .next = every_second, .owner = memory};
    tb_spans_gather(&s, packed, 3);
    tb_spans_gather(&s, packed + 3, 7);
    assert_int_equal(s.left, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(packed[i], 2 * i);
    memset(memory, 99, sizeof memory);
    s = (struct tb_spans){.base = memory, .length = 1, .left = 10, .next = every_second, .owner = memory};
    tb_spans_scatter(&s, packed, 10);
    for (int i = 0; i < 20; i++)
        assert_int_equal(memory[i], i % 2 ? 99 : i);
    s = tb_spans_of(packed, 0);
    tb_spans_gather(&s, packed, 0);
    assert_int_equal(s.left, 0);
}

/* From each kind of side to each, more than is staged at once. */
static void spans_move_from_any_to_any(void **state)
{
    enum { BYTES = 20001 };
    static char side[2][2 * BYTES];
    for (int kinds = 0; kinds < 4; kinds++) {
        int gaps[2] = {kinds & 1, kinds >> 1};
        struct tb_spans s[2];
        memset(side, 99, sizeof side);
        for (int i = 0; i < BYTES; i++)
            side[0][gaps[0] ? 2 * i : i] = (char)(i % 97);
        for (int k = 0; k < 2; k++)
            s[k] = gaps[k] ? (struct tb_spans){.base = side[k],
                                               .length = 1,
                                               .left = BYTES,
                                               .next = every_second,
                                               .owner = side[k]}
                           : tb_spans_of(side[k], BYTES);
        tb_spans_move(&s[0], &s[1]);
        assert_int_equal(s[0].left, 0);
        assert_int_equal(s[1].left, 0);
        for (int i = 0; i < 2 * BYTES; i++) {
            int at = gaps[1] ? i / 2 : i;
            bool used = gaps[1] ? i % 2 == 0 : i < BYTES;
            assert_int_equal(side[1][i], used ? at % 97 : 99);
        }
    }
}

static void parameters_take_units_and_refuse_nonsense(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_param_set("eager-shm", "16KiB", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_param.eager_shm, 16384);
    assert_int_equal(tb_param_set("SPIN", "1.5ms", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_param.spin, 1500000);
    assert_int_equal(tb_param_set("gateway_tls", "off", TB_PARAM_LAUNCHER), TB_OK);
    assert_false(tb_param.gateway_tls);
    static const char *const bad[][2] = {{"eager_shm", "-1"},      {"eager_shm", "9g"},  {"eager_shm", ""},
                                         {"eager_shm", "12cows"},  {"spin", "3parsecs"}, {"spin", "-1s"},
                                         {"gateway_tls", "maybe"}, {"log", "foo"},       {"spin", "1001h"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tb_param_set(bad[i][0], bad[i][1], TB_PARAM_LAUNCHER), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), bad[i][0]));
    }
    assert_int_equal(tb_param.eager_shm, 16384);
    assert_int_equal(tb_param_set("eager_shn", "1k", TB_PARAM_LAUNCHER), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "eager_shm"));
}

/* Rows that somebody else brings. */
static struct {
    uint64_t room;
    const char *words;
} test_values;
static const struct tb_param_row test_rows[] = {{.name = "test_room",
                                                 .type = TB_PARAM_SIZE,
                                                 .flags = TB_PARAM_OR_ZERO,
                                                 .fallback = "0",
                                                 .low = 1 << 12,
                                                 .high = 1 << 30,
                                                 .help = "room of a test",
                                                 .at = &test_values.room},
                                                {.name = "test_words",
                                                 .type = TB_PARAM_TEXT,
                                                 .fallback = "none",
                                                 .help = "words of a test",
                                                 .at = &test_values.words},
                                                {.name = NULL}};

/* They are as all others, and are added once. */
static void joined_parameters_are_like_all_others(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    size_t before = tb_param_count();
    assert_null(tb_param_find("test_room"));
    setenv("TOMBOLO_TEST_WORDS", "many words", 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tb_param_join(test_rows), TB_OK);
        assert_int_equal(tb_param_count(), before + 2);
    }
    assert_int_equal(tb_param_load(), TB_OK);
    unsetenv("TOMBOLO_TEST_WORDS");
    const struct tb_param_row *room = tb_param_find("test-room"), *words = tb_param_find("test_words");
    assert_ptr_equal(tb_param_row(before), room);
    assert_ptr_equal(tb_param_row(before + 1), words);
    assert_null(tb_param_row(before + 2));
    assert_ptr_equal(tb_param_value(room), &test_values.room);
    assert_int_equal(test_values.room, 0);
    assert_string_equal(test_values.words, "many words");
    assert_int_equal(tb_param_origin(words), TB_PARAM_ENVIRONMENT);
    assert_int_equal(tb_param_origin(room), TB_PARAM_DEFAULT);
    assert_int_equal(tb_param_import("test_room=8k\n", 13), TB_OK);
    assert_int_equal(test_values.room, 8192);
    assert_string_equal(tb_param.log, "warn"); /* the first of the other table is not meant */
    char text[1000];
    tb_param_export(text, sizeof text);
    assert_non_null(strstr(text, "test_room=8k\n"));
    assert_int_equal(tb_param_set("test_roon", "1k", TB_PARAM_LAUNCHER), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "did you mean 'test_room'"));
    assert_int_equal(tb_param_load(), TB_OK);
    assert_string_equal(test_values.words, "none");
}

static void lists_name_some_or_all(void **state)
{
    assert_true(tb_param_lists("all", "anything"));
    assert_true(tb_param_lists("one,two", "two") && tb_param_lists("one,two", "one"));
    assert_false(tb_param_lists("one,two", "tw") || tb_param_lists("one,two", "onet") || tb_param_lists("", "one"));
}

/* What is outside of its range is refused, with the range. */
static void parameters_have_ranges(void **state)
{
    static const struct {
        const char *name, *value, *range;
    } bad[] = {
        {"test_room", "1", "expected 0 or 4k to 1g bytes"},
        {"test_room", "2g", "expected 0 or 4k to 1g bytes"},
        {"heartbeat", "1ms", "expected 0 or 1s to 3600000s"},
        {"try_timeout", "99ms", "expected 0 or 100ms to 3600000s"},
        {"connect_timeout", "0", "expected 100ms to 3600000s"},
        {"start_timeout", "1ns", "expected 100ms to 3600000s"},
        {"link_timeout", "20ms", "expected 1s to 3600000s"},
        {"spin", "3600001s", "expected 0 to 3600000s"},
        {"wide_latency", "1001s", "expected 0 to 1000s"},
        {"eager_memory", "1k", "expected 64k or more bytes"},
        {"gateway_streams", "17", "expected 0 to 16"},
    };
    static const char *const good[][2] = {{"test_room", "0"},      {"test_room", "4k"}, {"heartbeat", "0"},
                                          {"heartbeat", "1s"},     {"spin", "0"},       {"kill_grace", "1000min"},
                                          {"eager_memory", "64k"}, {"log", "DEBUG"}};
    assert_int_equal(tb_param_load(), TB_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tb_param_set(bad[i].name, bad[i].value, TB_PARAM_LAUNCHER), TB_ERR_ARGUMENT);
        if (strstr(tb_error_story(), bad[i].range) == NULL || strstr(tb_error_story(), bad[i].name) == NULL)
            fail_msg("%s", tb_error_story());
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(tb_param_set(good[i][0], good[i][1], TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_param_load(), TB_OK);
}

static void parameters_travel(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    tb_param_set("transports", "tcp", TB_PARAM_ENVIRONMENT);
    tb_param_set("log", "error", TB_PARAM_ENVIRONMENT);
    tb_param_set("kill_grace", "250ms", TB_PARAM_LAUNCHER);
    char text[1000];
    size_t length = tb_param_export(text, sizeof text);
    assert_string_equal(text, "transports=tcp\nkill_grace=250ms\n");
    assert_int_equal(tb_param_load(), TB_OK);
    assert_string_equal(tb_param.transports, "all");
    assert_int_equal(tb_param_import(text, length), TB_OK);
    assert_string_equal(tb_param.transports, "tcp");
    assert_int_equal(tb_param.kill_grace, 250000000);
    assert_int_equal(tb_param_import("nonsense\n", 9), TB_ERR_PROTOCOL);
    assert_int_equal(tb_param_export(NULL, 0), length);
}

static void parameters_come_from_the_environment(void **state)
{
    setenv("TOMBOLO_EAGER_TCP", "1k", 1);
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_param.eager_tcp, 1024);
    assert_int_equal(tb_param_origin(tb_param_find("eager_tcp")), TB_PARAM_ENVIRONMENT);
    setenv("TOMBOLO_EAGER_TCP", "many", 1);
    assert_int_equal(tb_param_load(), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "TOMBOLO_EAGER_TCP=many"));
    unsetenv("TOMBOLO_EAGER_TCP");
}

static void every_parameter_prints_what_it_reads(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    for (size_t i = 0; i < tb_param_count(); i++) {
        const struct tb_param_row *row = tb_param_row(i);
        char text[600], again[600];
        tb_param_print(row, text, sizeof text);
        assert_int_equal(tb_param_set(row->name, text, TB_PARAM_LAUNCHER), TB_OK);
        tb_param_print(row, again, sizeof again);
        assert_string_equal(text, again);
        assert_true(strlen(row->help) > 10);
    }
    assert_null(tb_param_row(tb_param_count()));
}

static void random_numbers_replay_and_stay_in_range(void **state)
{
    struct tb_random a, b;
    tb_random_seed(&a, 7);
    tb_random_seed(&b, 7);
    unsigned seen[10] = {0};
    for (int i = 0; i < 10000; i++) {
        uint64_t x = tb_random_below(&a, 10);
        assert_int_equal(x, tb_random_below(&b, 10));
        seen[x]++;
        double u = tb_random_unit(&a);
        assert_true(u >= 0 && u < 1);
        tb_random_unit(&b);
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(seen[i], 850, 1150);
    uint8_t secret[32] = {0}, zero[32] = {0};
    assert_int_equal(tb_random_secret(secret, sizeof secret), TB_OK);
    assert_memory_not_equal(secret, zero, sizeof zero);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_quote_the_one_before),
        cmocka_unit_test(long_stories_are_cut),
        cmocka_unit_test(stories_name_the_limit_that_was_met),
        cmocka_unit_test(list_visits_and_removes),
        cmocka_unit_test(pool_is_bounded_and_reuses),
        cmocka_unit_test(spans_gather_and_scatter),
        cmocka_unit_test(spans_move_from_any_to_any),
        cmocka_unit_test(parameters_take_units_and_refuse_nonsense),
        cmocka_unit_test(joined_parameters_are_like_all_others),
        cmocka_unit_test(lists_name_some_or_all),
        cmocka_unit_test(parameters_have_ranges),
        cmocka_unit_test(parameters_travel),
        cmocka_unit_test(parameters_come_from_the_environment),
        cmocka_unit_test(every_parameter_prints_what_it_reads),
        cmocka_unit_test(random_numbers_replay_and_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
