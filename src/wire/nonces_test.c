/* What was heard once is known, for as long as the promise goes, and the memory stays bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/wire.h"

/* The i-th of a row of numbers that look random. */
static void make(uint8_t nonce[TB_NONCE_BYTES], uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
    memset(nonce, 0, TB_NONCE_BYTES);
    memcpy(nonce, &x, sizeof x);
}

static void each_is_new_once(void **state)
{
    struct tb_nonces nonces = {0};
    uint8_t nonce[TB_NONCE_BYTES];
    for (uint64_t round = 0; round < 2; round++)
        for (uint64_t i = 0; i < TB_NONCES_MOST / 2; i++) {
            make(nonce, i);
            assert_int_equal(tb_nonces_add(&nonces, nonce), round == 0 ? TB_OK : TB_ERR_FORBIDDEN);
        }
    tb_nonces_close(&nonces);
    assert_int_equal(tb_nonces_add(&nonces, nonce), TB_OK);
    tb_nonces_close(&nonces);
}

static void zero_is_a_number(void **state)
{
    struct tb_nonces nonces = {0};
    static const uint8_t zero[TB_NONCE_BYTES];
    assert_int_equal(tb_nonces_add(&nonces, zero), TB_OK);
    assert_int_equal(tb_nonces_add(&nonces, zero), TB_ERR_FORBIDDEN);
    tb_nonces_close(&nonces);
}

/* The last 32,768 are always known, whatever came before. */
static void the_oldest_are_forgotten(void **state)
{
    enum { ALL = 5 * TB_NONCES_MOST / 2 + 77 };
    struct tb_nonces nonces = {0};
    uint8_t nonce[TB_NONCE_BYTES];
    for (uint64_t i = 0; i < ALL; i++) {
        make(nonce, i);
        assert_int_equal(tb_nonces_add(&nonces, nonce), TB_OK);
        assert_true(nonces.young.count + nonces.old.count <= TB_NONCES_MOST);
        assert_true(nonces.young.room + nonces.old.room <= 2 * TB_NONCES_MOST);
    }
    for (uint64_t i = ALL - TB_NONCES_MOST / 2; i < ALL; i++) {
        make(nonce, i);
        assert_int_equal(tb_nonces_add(&nonces, nonce), TB_ERR_FORBIDDEN);
    }
    make(nonce, 0);
    assert_int_equal(tb_nonces_add(&nonces, nonce), TB_OK);
    tb_nonces_close(&nonces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_new_once),
        cmocka_unit_test(zero_is_a_number),
        cmocka_unit_test(the_oldest_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
