/* Which transports a process has: what its user names, of what it can use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "transport/null_test.h"

static int asked(void *context, struct tb_proc to, enum tb_stream stream)
{
    return TB_OK;
}

static const struct tb_transport_table *const all[] = {&null_table, &tb_transport_tcp, &tb_transport_relay, NULL};
static const struct tb_transport_config with_agent = {.connect = asked};

static void chosen_are(const char *list, const struct tb_transport_config *config,
                       const struct tb_transport_table *const *expected, uint32_t expected_count)
{
    const struct tb_transport_table *chosen[TB_TRANSPORTS_LIMIT];
    uint32_t count;
    assert_int_equal(tb_transports_choose(all, list, config, chosen, &count), TB_OK);
    assert_int_equal(count, expected_count);
    for (uint32_t i = 0; i < count; i++)
        assert_ptr_equal(chosen[i], expected[i]);
}

/* In the order of the array, whatever that of the names is. */
static void names_choose(void **state)
{
    const struct tb_transport_table *const some[] = {&null_table, &tb_transport_relay};
    chosen_are("all", &with_agent, all, 3);
    chosen_are("null,tcp", &with_agent, all, 2);
    chosen_are("tcp,null", &with_agent, all, 2);
    chosen_are("relay,null", &with_agent, some, 2);
    chosen_are("tcp", &with_agent, all + 1, 1);
    chosen_are("", &with_agent, all, 0);
}

/* Without an agent nobody connects, and without memory of its host, or anybody else there, shm leads nowhere. */
static void what_cannot_be_used_is_left_out(void **state)
{
    static char memory;
    const struct tb_transport_config bare = {.local_count = 2};
    struct tb_transport_config host = {.segment = &memory, .local_count = 2, .connect = asked};
    chosen_are("all", &bare, all, 1);
    const struct tb_transport_table *chosen[TB_TRANSPORTS_LIMIT];
    uint32_t count;
    assert_int_equal(tb_transports_choose(tb_transports, "all", &host, chosen, &count), TB_OK);
    assert_int_equal(count, 4);
    assert_ptr_equal(chosen[0], &tb_transport_shm);
    assert_ptr_equal(chosen[1], &tb_transport_pair);
    host.local_count = 1;
    assert_int_equal(tb_transports_choose(tb_transports, "all", &host, chosen, &count), TB_OK);
    assert_int_equal(count, 3);
    assert_int_equal(tb_transports_choose(tb_transports, "shm,tcp", &host, chosen, &count), TB_OK);
    assert_int_equal(count, 1);
    assert_ptr_equal(chosen[0], &tb_transport_tcp);
    assert_int_equal(tb_transports_choose(tb_transports, "all", &bare, chosen, &count), TB_OK);
    assert_int_equal(count, 0);
}

static void unknown_names_are_refused(void **state)
{
    static const char *const bad[] = {"tcp,shmm", "nul", "tcpp", "all,tcp", ",tcp"};
    const struct tb_transport_table *chosen[TB_TRANSPORTS_LIMIT];
    uint32_t count;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tb_transports_choose(all, bad[i], &with_agent, chosen, &count), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), bad[i]));
        assert_non_null(strstr(tb_error_story(), "; there are null, tcp and relay"));
    }
}

static void there_is_a_limit(void **state)
{
    const struct tb_transport_table *many[TB_TRANSPORTS_LIMIT + 2] = {NULL}, *chosen[TB_TRANSPORTS_LIMIT];
    uint32_t count;
    for (uint32_t i = 0; i <= TB_TRANSPORTS_LIMIT; i++)
        many[i] = &null_table;
    assert_int_equal(tb_transports_choose(many, "all", &with_agent, chosen, &count), TB_ERR_LIMIT);
    many[TB_TRANSPORTS_LIMIT] = NULL;
    assert_int_equal(tb_transports_choose(many, "all", &with_agent, chosen, &count), TB_OK);
    assert_int_equal(count, TB_TRANSPORTS_LIMIT);
}

/* What the engine and link go by before anything is open. */
static void tables_are_whole(void **state)
{
    for (uint32_t i = 0; tb_transports[i] != NULL; i++) {
        const struct tb_transport_table *t = tb_transports[i];
        assert_true(t->open && t->close && t->endpoint && t->send && t->poll && t->arm && t->disarm);
        assert_true(t->descriptor && t->deadline && t->idle);
        assert_true(t->capabilities & TB_CAP_RELIABLE);
        assert_int_equal(t->adopts != NULL, t->adopt != NULL);
        assert_int_equal(t->adopts != NULL, t->refused != NULL);
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(tb_transports[k]->name, t->name);
    }
}

/* Each brings its parameters, which are settled with all others. */
static void parameters_come_with_them(void **state)
{
    static const char *const names[] = {"shm_ring", "shm_single_copy", "cross_memory", "pair_ring", "tcp_buffer"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tb_transports_load_params(), TB_OK);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            assert_non_null(tb_param_find(names[k]));
    }
    char text[32];
    assert_int_equal(tb_param_set("tcp_buffer", "64k", TB_PARAM_LAUNCHER), TB_OK);
    tb_param_print(tb_param_find("tcp_buffer"), text, sizeof text);
    assert_string_equal(text, "64k");
    assert_int_equal(tb_param_set("shm_ring", "1k", TB_PARAM_LAUNCHER), TB_ERR_ARGUMENT);
    assert_int_equal(tb_transports_load_params(), TB_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_choose),
        cmocka_unit_test(what_cannot_be_used_is_left_out),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(there_is_a_limit),
        cmocka_unit_test(tables_are_whole),
        cmocka_unit_test(parameters_come_with_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
