/* Keys of multicast groups. */
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct tb_key job_key(void)
{
    struct tb_key key;
    for (unsigned i = 0; i < sizeof key.bytes; i++)
        key.bytes[i] = (uint8_t)i;
    return key;
}

/* As anybody else computes it: HMAC-SHA256 of "multicast" in 16 bytes, u32 7, 239.1.2.3 in 16 bytes, u16 4711. */
static void a_key_is_what_it_should_be(void **state)
{
    static const uint8_t expected[16] = {0x49, 0xef, 0xc5, 0x30, 0xbe, 0x97, 0x59, 0xa5,
                                         0x17, 0xcf, 0x5d, 0x3f, 0x6f, 0x99, 0xae, 0xf8};
    const struct tb_key job = job_key();
    const uint8_t address[16] = {239, 1, 2, 3};
    struct tb_siphash_key key;
    assert_int_equal(tb_group_key_derive(&key, &job, 7, address, 4711), TB_OK);
    assert_memory_equal(key.bytes, expected, sizeof expected);
}

static void whatever_differs_makes_another_key(void **state)
{
    struct tb_key job = job_key();
    uint8_t address[16] = {239, 1, 2, 3};
    struct tb_siphash_key keys[5];
    assert_int_equal(tb_group_key_derive(&keys[0], &job, 7, address, 4711), TB_OK);
    assert_int_equal(tb_group_key_derive(&keys[1], &job, 8, address, 4711), TB_OK);
    assert_int_equal(tb_group_key_derive(&keys[2], &job, 7, address, 4712), TB_OK);
    address[15] = 1;
    assert_int_equal(tb_group_key_derive(&keys[3], &job, 7, address, 4711), TB_OK);
    address[15] = 0;
    job.bytes[31] ^= 1;
    assert_int_equal(tb_group_key_derive(&keys[4], &job, 7, address, 4711), TB_OK);
    for (unsigned i = 0; i < 5; i++)
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(keys[i].bytes, keys[k].bytes, sizeof keys[i].bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_what_it_should_be),
        cmocka_unit_test(whatever_differs_makes_another_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
