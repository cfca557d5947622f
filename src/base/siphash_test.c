/* SipHash-2-4 against the values that its authors published, in one part and in several. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* Of the bytes 0, 1, 2 and so on, by their number, with the key 0 to 15. */
static const uint64_t published[64] = {
    0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d, 0xcf2794e0277187b7,
    0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462, 0x9e0082df0ba9e4b0,
    0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7, 0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee,
    0xa129ca6149be45e5, 0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
    0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8, 0xb8ad50c6f649af94,
    0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad, 0xde4daaaca71dc9a5, 0xa6a2506687956571,
    0xad87a3535c49ef28, 0x32d892fad841c342, 0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238,
    0x15e034d40fa197ae, 0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
    0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95, 0xf935451de4f21df2,
    0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb, 0xe612a3cb9ecba951, 0xc766e62cfcadaf96,
    0xee64435a9752fe72, 0xa192d576b245165a, 0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea,
    0x245731c13ca42499, 0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
    0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572};

static const struct tb_siphash_key counted = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

static uint64_t hash(const struct tb_siphash_key *key, const void *bytes, size_t length)
{
    struct tb_siphash s;
    tb_siphash_begin(&s, key);
    tb_siphash_add(&s, bytes, length);
    return tb_siphash_end(&s);
}

/* At every alignment, and from memory that ends where the input does. */
static void the_published_values(void **state)
{
    for (size_t n = 0; n < 64; n++) {
        for (size_t shift = 0; shift < 8; shift++) {
            uint8_t *bytes = malloc(shift + n > 0 ? shift + n : 1);
            assert_non_null(bytes);
            for (size_t i = 0; i < n; i++)
                bytes[shift + i] = (uint8_t)i;
            if (hash(&counted, bytes + shift, n) != published[n])
                fail_msg("%zu bytes, %zu beyond an aligned address", n, shift);
            free(bytes);
        }
    }
    assert_true(hash(&counted, NULL, 0) == published[0]);
}

/* Wherever it is cut in three, empty parts included. */
static void parts_make_the_whole(void **state)
{
    uint8_t bytes[63];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t n = 0; n <= sizeof bytes; n++) {
        for (size_t first = 0; first <= n; first++) {
            for (size_t second = first; second <= n; second++) {
                struct tb_siphash s;
                tb_siphash_begin(&s, &counted);
                tb_siphash_add(&s, bytes, first);
                tb_siphash_add(&s, bytes + first, second - first);
                tb_siphash_add(&s, bytes + second, n - second);
                if (tb_siphash_end(&s) != published[n])
                    fail_msg("%zu bytes, cut at %zu and %zu", n, first, second);
            }
        }
    }
}

static void a_long_one_byte_by_byte(void **state)
{
    static const struct tb_siphash_key key = {
        {0xf0, 0xe1, 0xd2, 0xc3, 0xb4, 0xa5, 0x96, 0x87, 0x78, 0x69, 0x5a, 0x4b, 0x3c, 0x2d, 0x1e, 0x0f}};
    static uint8_t bytes[9000];
    struct tb_siphash s;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 3);
    assert_true(hash(&key, bytes, sizeof bytes) == 0x70491b1579ee2f4e); /* as OpenSSL has it */
    tb_siphash_begin(&s, &key);
    for (size_t i = 0; i < sizeof bytes; i++)
        tb_siphash_add(&s, bytes + i, 1);
    assert_true(tb_siphash_end(&s) == 0x70491b1579ee2f4e);
}

/* Every bit of the key and of the input counts, and so does the number of bytes. */
static void all_of_it_counts(void **state)
{
    struct tb_siphash_key key = counted;
    uint8_t bytes[40] = {0};
    uint64_t right = hash(&key, bytes, sizeof bytes);
    for (size_t bit = 0; bit < 128; bit++) {
        key.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(hash(&key, bytes, sizeof bytes) != right);
        key.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(hash(&key, bytes, sizeof bytes) != right);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t n = 0; n < sizeof bytes; n++)
        assert_true(hash(&key, bytes, n) != right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_values),
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(a_long_one_byte_by_byte),
        cmocka_unit_test(all_of_it_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
