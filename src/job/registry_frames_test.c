/* Questions for the registry of a job, and its answers: they arrive whole, and senseless bytes do no harm. */
#include "job/job.h"

#include "base/changed_bytes_test.h"

#include <stdio.h>
#include <stdlib.h>

static struct tb_registry_question a_question(void)
{
    return (struct tb_registry_question){.kind = TB_REGISTRY_PUBLISH,
                                         .flags = TB_REGISTRY_REPLACES,
                                         .count = 5,
                                         .patience = UINT64_C(1) << 40,
                                         .name = "ocean",
                                         .value = "tombolo:10.0.0.1:4711"};
}

static void questions_arrive_whole(void **state)
{
    struct tb_registry_question sent = a_question(), got;
    memset(&got, 0xee, sizeof got);
    struct tb_writer w;
    struct tb_reader r;
    tb_writer_open(&w);
    tb_registry_question_put(&w, &sent);
    assert_int_equal(w.error, TB_OK);
    for (size_t length = 0; length < w.length; length++) {
        tb_reader_open(&r, w.bytes, length);
        assert_int_equal(tb_registry_question_get(&r, &got), TB_ERR_PROTOCOL);
    }
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_registry_question_get(&r, &got), TB_OK);
    assert_int_equal(got.kind, TB_REGISTRY_PUBLISH);
    assert_int_equal(got.flags, TB_REGISTRY_REPLACES);
    assert_int_equal(got.count, 5);
    assert_true(got.patience == UINT64_C(1) << 40);
    assert_string_equal(got.name, sent.name);
    assert_string_equal(got.value, sent.value);
    tb_writer_close(&w);
}

static int get_question(uint8_t kind, const char *name, size_t name_length, size_t value_length)
{
    static char value[2 * TB_REGISTRY_VALUE_BYTES];
    struct tb_registry_question got;
    struct tb_writer w;
    struct tb_reader r;
    memset(value, 'v', sizeof value);
    tb_writer_open(&w);
    tb_put_u8(&w, kind);
    tb_put_u8(&w, 0);
    tb_put_u32(&w, 0);
    tb_put_u64(&w, 0);
    tb_put_bytes(&w, name, name_length);
    tb_put_bytes(&w, value, value_length);
    tb_reader_open(&r, w.bytes, w.length);
    int rc = tb_registry_question_get(&r, &got);
    tb_writer_close(&w);
    return rc;
}

static void questions_are_checked(void **state)
{
    char name[TB_REGISTRY_NAME_BYTES];
    memset(name, 'n', sizeof name);
    assert_int_equal(get_question(TB_REGISTRY_JOIN, name, 1, 0), TB_OK);
    assert_int_equal(get_question(TB_REGISTRY_JOIN, name, sizeof name - 1, TB_REGISTRY_VALUE_BYTES - 1), TB_OK);
    assert_int_equal(get_question(TB_REGISTRY_JOIN, name, sizeof name, 0), TB_ERR_PROTOCOL);
    assert_int_equal(get_question(TB_REGISTRY_JOIN, name, 1, TB_REGISTRY_VALUE_BYTES), TB_ERR_PROTOCOL);
    assert_int_equal(get_question(TB_REGISTRY_JOIN, name, 0, 0), TB_ERR_PROTOCOL);
    assert_int_equal(get_question(TB_REGISTRY_JOIN, "a\0b", 3, 0), TB_ERR_PROTOCOL);
    assert_int_equal(get_question(TB_REGISTRY_END, name, 0, 0), TB_OK);
    assert_int_equal(get_question(TB_REGISTRY_END, name, 1, 0), TB_ERR_PROTOCOL);
    assert_int_equal(get_question(TB_REGISTRY_KINDS, name, 1, 0), TB_ERR_PROTOCOL);
    assert_int_equal(get_question(255, name, 1, 0), TB_ERR_PROTOCOL);
}

static void answers_arrive_whole(void **state)
{
    static const uint32_t counts[] = {0, 1, 2, 5000};
    static uint32_t members[5000];
    for (uint32_t i = 0; i < 5000; i++)
        members[i] = 7 * i + 1;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        struct tb_registry_answer sent = {.result = TB_REGISTRY_DEAD,
                                          .frozen = true,
                                          .id = 3,
                                          .generation = 4,
                                          .round = 5,
                                          .who = 6,
                                          .more = 7,
                                          .member_count = counts[c],
                                          .members = members,
                                          .value = "port"};
        struct tb_registry_answer got;
        void *bytes;
        size_t length;
        assert_int_equal(tb_registry_answer_pack(&sent, &bytes, &length), TB_OK);
        assert_int_equal(tb_registry_answer_unpack(bytes, length - 1, &got), TB_ERR_PROTOCOL);
        assert_null(got.members);
        assert_int_equal(tb_registry_answer_unpack(bytes, length, &got), TB_OK);
        assert_int_equal(got.result, TB_REGISTRY_DEAD);
        assert_true(got.frozen && got.id == 3 && got.generation == 4 && got.round == 5);
        assert_true(got.who == 6 && got.more == 7 && got.member_count == counts[c]);
        assert_string_equal(got.value, "port");
        assert_true((got.members != NULL) == (counts[c] > 0));
        if (counts[c] > 0)
            assert_memory_equal(got.members, members, counts[c] * sizeof *members);
        free(got.members);
        free(bytes);
    }
}

/* The longest list there can be goes along with a packet. */
static void the_longest_answer_fits(void **state)
{
    struct tb_registry_answer sent = {.member_count = TB_REGISTRY_MEMBERS};
    void *bytes;
    size_t length;
    sent.members = calloc(sent.member_count, sizeof *sent.members);
    assert_non_null(sent.members);
    memset(sent.value, 'v', sizeof sent.value - 1);
    assert_int_equal(tb_registry_answer_pack(&sent, &bytes, &length), TB_OK);
    assert_true(length < TB_SHARED_BYTES_LIMIT);
    free(sent.members);
    assert_int_equal(tb_registry_answer_unpack(bytes, length, &sent), TB_OK);
    free(sent.members);
    free(bytes);
}

static int take_answer(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_registry_answer got;
    int rc = tb_registry_answer_unpack(bytes, length, &got);
    if (rc == TB_OK)
        assert_true(got.member_count <= length && memchr(got.value, 0, sizeof got.value) != NULL);
    free(got.members);
    return rc;
}

static int take_question(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_registry_question got;
    struct tb_reader r;
    tb_reader_open(&r, bytes, length);
    int rc = tb_registry_question_get(&r, &got);
    if (rc == TB_OK)
        assert_true(got.kind < TB_REGISTRY_KINDS && memchr(got.name, 0, sizeof got.name) != NULL &&
                    memchr(got.value, 0, sizeof got.value) != NULL);
    return rc;
}

static void changed_bytes_do_no_harm(void **state)
{
    uint32_t members[] = {3, 1, 2};
    struct tb_registry_answer answer = {.member_count = 3, .members = members, .value = "port"};
    struct tb_registry_question question = a_question();
    struct tb_writer w;
    void *bytes;
    size_t length;
    assert_int_equal(tb_registry_answer_pack(&answer, &bytes, &length), TB_OK);
    changed_bytes_sweep(
        &(struct changed_bytes){.kind = "an answer", .take = take_answer, .bytes = bytes, .length = length});
    free(bytes);
    tb_writer_open(&w);
    tb_registry_question_put(&w, &question);
    changed_bytes_sweep(
        &(struct changed_bytes){.kind = "a question", .take = take_question, .bytes = w.bytes, .length = w.length});
    tb_writer_close(&w);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(questions_arrive_whole),   cmocka_unit_test(questions_are_checked),
        cmocka_unit_test(answers_arrive_whole),     cmocka_unit_test(the_longest_answer_fits),
        cmocka_unit_test(changed_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
