/* Hello, welcome, confirm: what is proved, and that nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/wire.h"
#include "wire/key.h"

static const struct tb_proc alice = {77, 3}, bob = {77, 900000};

/* HMAC-SHA256 with a key of 32 bytes: the value was computed with another implementation (Python's hmac module). */
static void test_known_answer(void **state)
{
    static const uint8_t expect[TB_PROOF_BYTES] = {0xca, 0x80, 0x90, 0x1f, 0x10, 0xcc, 0x99, 0x9b, 0x64, 0x0b, 0xd1,
                                                   0x3a, 0xed, 0x77, 0x28, 0xab, 0xab, 0x2c, 0xee, 0xe2, 0x4d, 0xfe,
                                                   0x35, 0xaa, 0x0c, 0x00, 0xa5, 0x80, 0x0d, 0xce, 0x15, 0xb2};
    struct tb_key key;
    uint8_t proof[TB_PROOF_BYTES];
    for (unsigned i = 0; i < sizeof(key.bytes); i++)
        key.bytes[i] = (uint8_t)i;
    assert_int_equal(tb_key_prove(&key, "a bar of sand", 13, proof), TB_OK);
    assert_memory_equal(proof, expect, sizeof(expect));
}

static void test_handshake(void **state)
{
    struct tb_key key;
    struct tb_hello hello, hello_seen;
    struct tb_welcome welcome, welcome_seen;
    struct tb_confirm confirm;
    uint8_t bytes[sizeof(struct tb_hello)];

    assert_int_equal(tb_key_make(&key), TB_OK);
    assert_int_equal(tb_hello_make(&hello, &key, alice, bob, TB_STREAM_BULK), TB_OK);
    tb_wire_put_hello(bytes, &hello);
    tb_wire_get_hello(bytes, &hello_seen);
    assert_int_equal(tb_hello_verify(&hello_seen, &key), TB_OK);
    assert_int_equal(hello_seen.stream, TB_STREAM_BULK);
    assert_memory_equal(&hello_seen.source, &alice, sizeof(alice));
    assert_memory_equal(&hello_seen.destination, &bob, sizeof(bob));

    assert_int_equal(tb_welcome_make(&welcome, &key, &hello_seen, TB_WELCOME_BUSY), TB_OK);
    tb_wire_put_welcome(bytes, &welcome);
    tb_wire_get_welcome(bytes, &welcome_seen);
    assert_int_equal(tb_welcome_verify(&welcome_seen, &key, &hello), TB_OK);
    assert_int_equal(welcome_seen.status, TB_WELCOME_BUSY);

    assert_int_equal(tb_confirm_make(&confirm, &key, &hello, &welcome_seen), TB_OK);
    assert_int_equal(tb_confirm_verify(&confirm, &key, &hello_seen, &welcome), TB_OK);
}

/* Any changed bit of any of the three is noticed, wherever it is. */
static void test_changed(void **state)
{
    struct tb_key key;
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_confirm confirm;
    uint8_t bytes[sizeof(struct tb_hello)];
    assert_int_equal(tb_key_make(&key), TB_OK);
    assert_int_equal(tb_hello_make(&hello, &key, alice, bob, TB_STREAM_SHORT), TB_OK);
    assert_int_equal(tb_welcome_make(&welcome, &key, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_confirm_make(&confirm, &key, &hello, &welcome), TB_OK);

    for (size_t bit = 0; bit < 8 * sizeof(struct tb_hello); bit++) {
        struct tb_hello bad;
        tb_wire_put_hello(bytes, &hello);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        tb_wire_get_hello(bytes, &bad);
        assert_int_equal(tb_hello_verify(&bad, &key), TB_ERR_FORBIDDEN);
        assert_int_equal(tb_welcome_verify(&welcome, &key, &bad), TB_ERR_FORBIDDEN);
        assert_int_equal(tb_confirm_verify(&confirm, &key, &bad, &welcome), TB_ERR_FORBIDDEN);
    }
    for (size_t bit = 0; bit < 8 * sizeof(struct tb_welcome); bit++) {
        struct tb_welcome bad;
        tb_wire_put_welcome(bytes, &welcome);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        tb_wire_get_welcome(bytes, &bad);
        assert_int_equal(tb_welcome_verify(&bad, &key, &hello), TB_ERR_FORBIDDEN);
        assert_int_equal(tb_confirm_verify(&confirm, &key, &hello, &bad), TB_ERR_FORBIDDEN);
    }
    for (size_t bit = 0; bit < 8 * sizeof(confirm); bit++) {
        struct tb_confirm bad = confirm;
        bad.proof[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(tb_confirm_verify(&bad, &key, &hello, &welcome), TB_ERR_FORBIDDEN);
    }
}

/* Another key proves nothing; neither does an old hello, whose confirm does not fit the new welcome; nor one word used
 * as another. */
static void test_strangers(void **state)
{
    struct tb_key key, other;
    struct tb_hello hello;
    struct tb_welcome first, second;
    struct tb_confirm confirm;
    assert_int_equal(tb_key_make(&key), TB_OK);
    assert_int_equal(tb_key_make(&other), TB_OK);
    assert_int_equal(tb_hello_make(&hello, &other, alice, bob, TB_STREAM_SHORT), TB_OK);
    assert_int_equal(tb_hello_verify(&hello, &key), TB_ERR_FORBIDDEN);
    memset(&hello, 0, sizeof(hello));
    assert_int_equal(tb_hello_verify(&hello, &key), TB_ERR_FORBIDDEN);

    assert_int_equal(tb_hello_make(&hello, &key, alice, bob, TB_STREAM_SHORT), TB_OK);
    assert_int_equal(tb_welcome_make(&first, &other, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_welcome_verify(&first, &key, &hello), TB_ERR_FORBIDDEN);

    assert_int_equal(tb_welcome_make(&first, &key, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_welcome_make(&second, &key, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_confirm_make(&confirm, &key, &hello, &first), TB_OK);
    assert_int_equal(tb_confirm_verify(&confirm, &key, &hello, &second), TB_ERR_FORBIDDEN);
    memcpy(confirm.proof, hello.proof, sizeof(confirm.proof));
    assert_int_equal(tb_confirm_verify(&confirm, &key, &hello, &second), TB_ERR_FORBIDDEN);
    memcpy(confirm.proof, second.proof, sizeof(confirm.proof));
    assert_int_equal(tb_confirm_verify(&confirm, &key, &hello, &second), TB_ERR_FORBIDDEN);
}

/* Who holds the key and is of another version is told so; who does not hold it learns nothing. */
static void test_other_version(void **state)
{
    struct tb_key key;
    struct tb_hello hello;
    struct tb_welcome welcome;
    uint8_t text[8 + sizeof(struct tb_hello) + sizeof(struct tb_welcome)] = "hello";
    assert_int_equal(tb_key_make(&key), TB_OK);
    assert_int_equal(tb_hello_make(&hello, &key, alice, bob, TB_STREAM_SHORT), TB_OK);
    hello.version = 99;
    assert_int_equal(tb_hello_verify(&hello, &key), TB_ERR_FORBIDDEN);
    tb_wire_put_hello(text + 8, &hello);
    assert_int_equal(tb_key_prove(&key, text, 8 + offsetof(struct tb_hello, proof), hello.proof), TB_OK);
    assert_int_equal(tb_hello_verify(&hello, &key), TB_ERR_PROTOCOL);
    assert_non_null(strstr(tb_error_story(), "99"));

    hello.version = TB_WIRE_VERSION;
    hello.reserved = 1;
    tb_wire_put_hello(text + 8, &hello);
    assert_int_equal(tb_key_prove(&key, text, 8 + offsetof(struct tb_hello, proof), hello.proof), TB_OK);
    assert_int_equal(tb_hello_verify(&hello, &key), TB_ERR_PROTOCOL);

    assert_int_equal(tb_hello_make(&hello, &key, alice, bob, TB_STREAM_SHORT), TB_OK);
    assert_int_equal(tb_welcome_make(&welcome, &key, &hello, TB_WELCOME_VERSION), TB_OK);
    welcome.version = 98;
    memcpy(text, "welcome", 8);
    tb_wire_put_hello(text + 8, &hello);
    tb_wire_put_welcome(text + 8 + sizeof(hello), &welcome);
    size_t length = 8 + sizeof(hello) + offsetof(struct tb_welcome, proof);
    assert_int_equal(tb_key_prove(&key, text, length, welcome.proof), TB_OK);
    assert_int_equal(tb_welcome_verify(&welcome, &key, &hello), TB_ERR_PROTOCOL);
    assert_non_null(strstr(tb_error_story(), "98"));
}

/* The proofs cover what docs/wire.md says, put together here a second time. */
static void test_texts(void **state)
{
    struct tb_key key;
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_confirm confirm;
    uint8_t text[8 + 88 + 72] = "hello", proof[TB_PROOF_BYTES];
    assert_int_equal(tb_key_make(&key), TB_OK);
    assert_int_equal(tb_hello_make(&hello, &key, alice, bob, TB_STREAM_BULK), TB_OK);
    assert_int_equal(tb_welcome_make(&welcome, &key, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_confirm_make(&confirm, &key, &hello, &welcome), TB_OK);
    tb_wire_put_hello(text + 8, &hello);
    tb_wire_put_welcome(text + 8 + 88, &welcome);
    assert_int_equal(tb_key_prove(&key, text, 8 + 56, proof), TB_OK);
    assert_memory_equal(proof, hello.proof, sizeof(proof));
    memcpy(text, "welcome", 8);
    assert_int_equal(tb_key_prove(&key, text, 8 + 88 + 40, proof), TB_OK);
    assert_memory_equal(proof, welcome.proof, sizeof(proof));
    memcpy(text, "confirm", 8);
    assert_int_equal(tb_key_prove(&key, text, sizeof(text), proof), TB_OK);
    assert_memory_equal(proof, confirm.proof, sizeof(proof));
}

static void test_fresh(void **state)
{
    struct tb_key one, two;
    struct tb_hello a, b;
    struct tb_welcome c, d;
    assert_int_equal(tb_key_make(&one), TB_OK);
    assert_int_equal(tb_key_make(&two), TB_OK);
    assert_memory_not_equal(&one, &two, sizeof(one));
    assert_int_equal(tb_hello_make(&a, &one, alice, bob, TB_STREAM_SHORT), TB_OK);
    assert_int_equal(tb_hello_make(&b, &one, alice, bob, TB_STREAM_SHORT), TB_OK);
    assert_memory_not_equal(a.nonce, b.nonce, sizeof(a.nonce));
    assert_int_equal(tb_welcome_make(&c, &one, &a, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_welcome_make(&d, &one, &a, TB_WELCOME_OK), TB_OK);
    assert_memory_not_equal(c.nonce, d.nonce, sizeof(c.nonce));
}

static void test_equal(void **state)
{
    uint8_t a[TB_PROOF_BYTES] = {0}, b[TB_PROOF_BYTES] = {0};
    assert_true(tb_key_equal(a, b, sizeof(a)));
    for (size_t bit = 0; bit < 8 * sizeof(a); bit++) {
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(tb_key_equal(a, b, sizeof(a)));
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* What somebody types gives the same key however it is written, and another one for any other letter. */
static void test_typed(void **state)
{
    struct tb_key a, b;
    assert_int_equal(tb_key_derive(&a, "abcd-efgh-2345"), TB_OK);
    assert_int_equal(tb_key_derive(&b, " ABCD EFGH 2345\n"), TB_OK);
    assert_memory_equal(a.bytes, b.bytes, sizeof(a.bytes));
    assert_int_equal(tb_key_derive(&b, "abcd-efgh-2346"), TB_OK);
    assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
}

/* Without libcrypto the story says what to install. */
static void test_no_library(void **state)
{
    struct tb_crypto crypto;
    tb_crypto_open(&crypto, "libtombolo-is-not-there.so.3");
    assert_null(crypto.hmac);
    assert_non_null(strstr(crypto.trouble, "libtombolo-is-not-there.so.3"));
    assert_non_null(strstr(crypto.trouble, "install"));
    tb_crypto_open(&crypto, "libm.so.6"); /* is there, but has no HMAC */
    assert_non_null(strstr(crypto.trouble, "libm.so.6"));
    tb_crypto_open(&crypto, "libcrypto.so.3");
    assert_string_equal(crypto.trouble, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answer), cmocka_unit_test(test_handshake),     cmocka_unit_test(test_changed),
        cmocka_unit_test(test_strangers),    cmocka_unit_test(test_other_version), cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_texts),        cmocka_unit_test(test_equal),         cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_typed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
