/* external32: sizes, known bytes, and the way back, for predefined and derived types. */
#include "data/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <wchar.h>

#include <cmocka.h>

static const struct tb_type *type_of(uintptr_t handle)
{
    return tb_type_predefined(handle);
}

static void expect_bytes(uintptr_t handle, const void *value, const char *expected, uint64_t length)
{
    char packed[64], back[64];
    uint64_t bytes = 0;
    const struct tb_type *type = type_of(handle);
    struct tb_buffer b = {(void *)value, 1, type};
    assert_int_equal(tb_external_size(type, 1, &bytes), TB_OK);
    assert_int_equal(bytes, length);
    memset(packed, 0x55, sizeof packed);
    assert_int_equal(tb_external_pack(&b, packed), TB_OK);
    assert_memory_equal(packed, expected, length);
    assert_int_equal(packed[length], 0x55);
    memset(back, 0, sizeof back);
    b.base = back;
    tb_external_unpack(&b, packed);
    /* A long double may have bytes that no value uses. */
    assert_memory_equal(back, value, type->basic == TB_BASIC_FLOAT && type->size == 16 ? 10 : type->size);
}

static void test_known_bytes(void **state)
{
    int32_t i = -2;
    int64_t l = 0x0102030405060708;
    long small = -3;
    unsigned long large = 0xfffffffe;
    short s = 0x1234;
    double d = 1.0;
    float _Complex c = 1.0f;
    long double ld = -2.0L;
    wchar_t w = 0x20ac;
    char byte = 'x';
    bool yes = true;
    struct {
        short value;
        int index;
    } pair = {0x0102, 7};
    (void)state;
    expect_bytes(0x209, &i, "\xff\xff\xff\xfe", 4);
    expect_bytes(0x258, &l, "\1\2\3\4\5\6\7\10", 8);
    expect_bytes(0x20b, &l, "\1\2\3\4\5\6\7\10", 8);
    expect_bytes(0x20a, &small, "\xff\xff\xff\xfd", 4);
    expect_bytes(0x20e, &large, "\xff\xff\xff\xfe", 4);
    expect_bytes(0x208, &s, "\x12\x34", 2);
    expect_bytes(0x214, &d, "\x3f\xf0\0\0\0\0\0\0", 8);
    expect_bytes(0x212, &c, "\x3f\x80\0\0\0\0\0\0", 8);
    expect_bytes(0x220, &ld, "\xc0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    expect_bytes(0x23c, &w, "\x20\xac", 2);
    expect_bytes(0x247, &byte, "x", 1);
    expect_bytes(0x238, &yes, "\1", 1);
    uint64_t bytes = 0;
    char packed[8];
    struct tb_buffer b = {&pair, 1, type_of(0x22c)};
    assert_int_equal(tb_external_size(b.type, 1, &bytes), TB_OK);
    assert_int_equal(bytes, 6);
    assert_int_equal(tb_external_pack(&b, packed), TB_OK);
    assert_memory_equal(packed, "\1\2\0\0\0\7", 6);
    pair.value = 0;
    pair.index = 0;
    tb_external_unpack(&b, packed);
    assert_int_equal(pair.value, 0x0102);
    assert_int_equal(pair.index, 7);
}

static void test_out_of_range(void **state)
{
    char packed[16];
    long low = -2147483649L, high = 2147483648L;
    unsigned long over = 0x100000000;
    wchar_t w = 0x10000;
    (void)state;
    struct tb_buffer b = {&low, 1, type_of(0x20a)};
    assert_int_equal(tb_external_pack(&b, packed), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "MPI_LONG"));
    b.base = &high;
    assert_int_equal(tb_external_pack(&b, packed), TB_ERR_ARGUMENT);
    b = (struct tb_buffer){&over, 1, type_of(0x20e)};
    assert_int_equal(tb_external_pack(&b, packed), TB_ERR_ARGUMENT);
    b = (struct tb_buffer){&w, 1, type_of(0x23c)};
    assert_int_equal(tb_external_pack(&b, packed), TB_ERR_ARGUMENT);
}

/* Every predefined type, more than one stage of it, there and back. */
static void test_every_type(void **state)
{
    enum { COUNT = 1500 };
    (void)state;
    for (uintptr_t handle = 0x201; handle < 0x300; handle++) {
        const struct tb_type *type = type_of(handle);
        if (type == NULL)
            continue;
        uint64_t bytes = 0, room = (uint64_t)type->extent * COUNT;
        char *data = calloc(1, room), *back = calloc(1, room);
        for (uint64_t i = 0; i < COUNT; i++) /* small numbers of any kind: only the lowest byte is set */
            data[i * (uint64_t)type->extent] = (char)(i % 100);
        if (handle == 0x220 || handle == 0x224 || handle == 0x225)
            for (uint64_t i = 0; i < room / sizeof(long double); i++)
                ((long double *)data)[i] = (long double)i / 3;
        assert_int_equal(tb_external_size(type, COUNT, &bytes), TB_OK);
        char *packed = malloc(bytes);
        struct tb_buffer b = {data, COUNT, type};
        assert_int_equal(tb_external_pack(&b, packed), TB_OK);
        b.base = back;
        tb_external_unpack(&b, packed);
        if (handle == 0x220 || handle == 0x224 || handle == 0x225)
            for (uint64_t i = 0; i < room / sizeof(long double); i++)
                assert_true(((long double *)back)[i] == ((long double *)data)[i]);
        else
            assert_memory_equal(back, data, room);
        free(data);
        free(back);
        free(packed);
    }
}

struct record {
    char name[3];
    long number;
    double value;
    short last[2];
};

/* An array of structs with types whose size changes, strided. */
static void test_struct(void **state)
{
    enum { COUNT = 700 };
    const int32_t lengths[] = {3, 1, 1, 2, 0};
    const int64_t places[] = {offsetof(struct record, name), offsetof(struct record, number),
                              offsetof(struct record, value), offsetof(struct record, last), 0};
    const struct tb_type *members[] = {type_of(0x243), type_of(0x20a), type_of(0x214), type_of(0x208), type_of(0x209)};
    struct tb_type *record = NULL, *vector = NULL;
    (void)state;
    assert_int_equal(tb_type_struct(5, (struct tb_numbers){lengths, false}, (struct tb_numbers){places, true}, members,
                                    false, &record),
                     TB_OK);
    assert_int_equal(tb_type_vector(COUNT, 1, 2, record, false, &vector), TB_OK);
    uint64_t bytes = 0;
    assert_int_equal(tb_external_size(vector, 1, &bytes), TB_OK);
    assert_int_equal(bytes, COUNT * (3 + 4 + 8 + 4));
    struct record *data = calloc(2 * COUNT, sizeof *data), *back = calloc(2 * COUNT, sizeof *data);
    for (int i = 0; i < COUNT; i++)
        data[2 * i] = (struct record){{'a', 'b', (char)i}, -i, i * 0.5, {(short)i, (short)-i}};
    char *packed = malloc(bytes);
    struct tb_buffer b = {data, 1, vector};
    assert_int_equal(tb_external_pack(&b, packed), TB_OK);
    assert_memory_equal(packed + 19, "ab\1\xff\xff\xff\xff\x3f\xe0\0\0\0\0\0\0\0\1\xff\xff", 19);
    b.base = back;
    tb_external_unpack(&b, packed);
    for (int i = 0; i < COUNT; i++) {
        assert_memory_equal(back[2 * i].name, data[2 * i].name, 3);
        assert_int_equal(back[2 * i].number, data[2 * i].number);
        assert_true(back[2 * i].value == data[2 * i].value);
        assert_memory_equal(back[2 * i].last, data[2 * i].last, sizeof data->last);
        assert_int_equal(back[2 * i + 1].number, 0);
    }
    free(packed);
    free(data);
    free(back);
    tb_type_release(vector);
    tb_type_release(record);
}

static void test_limits(void **state)
{
    struct tb_type *huge = NULL, *empty = NULL;
    uint64_t bytes = 1;
    (void)state;
    assert_int_equal(tb_type_contiguous(0, type_of(0x20a), false, &empty), TB_OK);
    assert_int_equal(tb_external_size(empty, 100, &bytes), TB_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(tb_type_contiguous(INT64_MAX / 8, type_of(0x214), true, &huge), TB_OK);
    assert_int_equal(tb_external_size(huge, 1, &bytes), TB_OK);
    assert_int_equal(tb_external_size(huge, 2, &bytes), TB_ERR_LIMIT);
    tb_type_release(huge);
    tb_type_release(empty);
}

/* Of every number of elements, the bytes, and back. */
static void test_elements(void **state)
{
    const int32_t lengths[] = {2, 0, 3, 1};
    const int64_t places[] = {0, 0, 64, 128};
    const struct tb_type *members[] = {type_of(0x208), type_of(0x214), type_of(0x229), type_of(0x243)};
    struct tb_type *record = NULL, *several = NULL;
    (void)state;
    assert_int_equal(tb_type_struct(4, (struct tb_numbers){lengths, false}, (struct tb_numbers){places, true}, members,
                                    false, &record),
                     TB_OK);
    assert_int_equal(tb_type_contiguous(3, record, false, &several), TB_OK);
    uint64_t last = 0;
    for (uint64_t n = 0; n < 4 * several->elements; n++) {
        int64_t bytes = tb_type_bytes_of(several, n);
        assert_true(bytes >= (int64_t)last);
        assert_int_equal(tb_type_elements_in(several, (uint64_t)bytes), n);
        last = (uint64_t)bytes;
    }
    assert_int_equal(tb_type_bytes_of(several, UINT64_MAX), -1);
    tb_type_release(several);
    tb_type_release(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_bytes), cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_struct),      cmocka_unit_test(test_limits),       cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
