/* Whole handshakes without sockets: in all splits, with bytes changed and left out, with strangers, repetitions and
 * other versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/wire.h"
#include "wire/key.h"

#define STREAM (TB_STREAM_BULK | 3u << 8)

static const struct tb_proc alice = {77, 3}, bob = {77, 900000};
static struct tb_key key, other_key;

static int setup(void **state)
{
    return tb_key_make(&key) == TB_OK && tb_key_make(&other_key) == TB_OK ? 0 : -1;
}

/* What one side has said, as it would be on its way. */
struct saying {
    uint8_t bytes[sizeof(struct tb_hello)];
    size_t length;
};

static struct saying take(struct tb_handshake *h)
{
    struct saying saying = {.length = 0};
    const void *bytes = tb_handshake_output(h, &saying.length);
    assert_true(saying.length <= sizeof(saying.bytes));
    memcpy(saying.bytes, bytes, saying.length);
    size_t again;
    tb_handshake_output(h, &again);
    assert_int_equal(again, 0); /* given once */
    return saying;
}

/* Only what it wants, `piece` bytes at a time; says how it went at the end. */
static enum tb_handshake_verdict hear(struct tb_handshake *h, const struct saying *saying, size_t piece)
{
    for (size_t at = 0; at < saying->length;) {
        size_t wants = tb_handshake_wants(h), length = saying->length - at < piece ? saying->length - at : piece;
        assert_int_equal(wants, saying->length - at); /* all of this word, and nothing of what follows */
        enum tb_handshake_verdict verdict = tb_handshake_feed(h, saying->bytes + at, length);
        at += length;
        assert_int_equal(verdict, h->verdict);
        assert_true(at == saying->length || verdict == TB_HANDSHAKE_MORE);
    }
    return h->verdict;
}

static struct saying greet(struct tb_handshake *connector)
{
    assert_int_equal(tb_handshake_connect(connector, &key, alice, bob, STREAM, TB_FEATURE_TLS | TB_FEATURE_LZ4), TB_OK);
    assert_int_equal(connector->verdict, TB_HANDSHAKE_MORE);
    struct saying hello = take(connector);
    assert_int_equal(hello.length, sizeof(struct tb_hello));
    return hello;
}

/* Both have come to where the connector has the welcome. */
static struct saying meet(struct tb_handshake *connector, struct tb_handshake *acceptor, enum tb_welcome_status status,
                          uint32_t features)
{
    struct saying hello = greet(connector);
    tb_handshake_accept(acceptor, &key);
    assert_int_equal(hear(acceptor, &hello, hello.length), TB_HANDSHAKE_ASKED);
    assert_int_equal(tb_handshake_answer(acceptor, status, features, false), TB_OK);
    struct saying welcome = take(acceptor);
    assert_int_equal(welcome.length, sizeof(struct tb_welcome));
    return welcome;
}

static struct saying confirm(struct tb_handshake *connector, const struct saying *welcome)
{
    assert_int_equal(hear(connector, welcome, welcome->length), TB_HANDSHAKE_WELCOMED);
    assert_int_equal(tb_handshake_confirm(connector), TB_OK);
    struct saying confirm = take(connector);
    assert_int_equal(confirm.length, sizeof(struct tb_confirm));
    return confirm;
}

static void assert_over(const struct tb_handshake *h, enum tb_handshake_verdict verdict, int error)
{
    assert_int_equal(h->verdict, verdict);
    assert_int_equal(h->error, error);
    assert_int_equal(tb_handshake_wants(h), 0);
}

static void assert_silent(struct tb_handshake *h)
{
    assert_int_equal(take(h).length, 0);
}

/* From the first byte to the last, in pieces of every size. */
static void test_whole(void **state)
{
    for (size_t piece = 1; piece <= sizeof(struct tb_hello); piece++) {
        struct tb_handshake connector, acceptor;
        struct saying word = greet(&connector);
        tb_handshake_accept(&acceptor, &key);
        assert_int_equal(hear(&acceptor, &word, piece), TB_HANDSHAKE_ASKED);
        assert_int_equal(tb_handshake_wants(&acceptor), 0);
        assert_silent(&acceptor);
        assert_memory_equal(&acceptor.hello, &connector.hello, sizeof(struct tb_hello));
        assert_int_equal(acceptor.hello.stream, STREAM);
        assert_int_equal(acceptor.hello.features, TB_FEATURE_TLS | TB_FEATURE_LZ4);

        assert_int_equal(tb_handshake_answer(&acceptor, TB_WELCOME_OK, TB_FEATURE_LZ4, false), TB_OK);
        word = take(&acceptor);
        assert_int_equal(hear(&connector, &word, piece), TB_HANDSHAKE_WELCOMED);
        assert_int_equal(tb_handshake_wants(&connector), 0);
        assert_silent(&connector);
        assert_int_equal(connector.welcome.features, TB_FEATURE_LZ4);
        assert_memory_equal(&acceptor.welcome, &connector.welcome, sizeof(struct tb_welcome));

        assert_int_equal(tb_handshake_confirm(&connector), TB_OK);
        word = take(&connector);
        assert_int_equal(hear(&acceptor, &word, piece), TB_HANDSHAKE_CONFIRMED);
        assert_int_equal(tb_handshake_wants(&acceptor), 0);
        assert_silent(&acceptor);

        tb_handshake_admit(&acceptor);
        assert_over(&acceptor, TB_HANDSHAKE_DONE, TB_OK);
        word = take(&acceptor);
        assert_int_equal(word.length, 1);
        assert_int_equal(hear(&connector, &word, piece), TB_HANDSHAKE_DONE);
        assert_over(&connector, TB_HANDSHAKE_DONE, TB_OK);
        assert_silent(&connector);

        struct tb_key one, two; /* of TLS */
        assert_int_equal(tb_stream_secret(&one, &key, &connector.hello, &connector.welcome), TB_OK);
        assert_int_equal(tb_stream_secret(&two, &key, &acceptor.hello, &acceptor.welcome), TB_OK);
        assert_memory_equal(&one, &two, sizeof(one));
    }
}

/* In two pieces, cut everywhere; an empty piece between them changes nothing. */
static void test_splits(void **state)
{
    struct tb_handshake connector, acceptor;
    struct saying hello = greet(&connector);
    for (size_t cut = 1; cut < hello.length; cut++) {
        tb_handshake_accept(&acceptor, &key);
        assert_int_equal(tb_handshake_feed(&acceptor, hello.bytes, cut), TB_HANDSHAKE_MORE);
        assert_int_equal(tb_handshake_wants(&acceptor), hello.length - cut);
        assert_int_equal(tb_handshake_feed(&acceptor, hello.bytes, 0), TB_HANDSHAKE_MORE);
        assert_int_equal(tb_handshake_feed(&acceptor, hello.bytes + cut, hello.length - cut), TB_HANDSHAKE_ASKED);
    }
}

/* The bytes are those of hello.c, so that both sides may be of any build. */
static void test_bytes(void **state)
{
    struct tb_handshake connector, acceptor;
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_confirm last;
    struct saying word = greet(&connector);
    tb_wire_get_hello(word.bytes, &hello);
    assert_int_equal(tb_hello_verify(&hello, &key), TB_OK);
    word = meet(&connector, &acceptor, TB_WELCOME_OK, TB_FEATURE_TLS);
    tb_wire_get_welcome(word.bytes, &welcome);
    assert_int_equal(tb_welcome_verify(&welcome, &key, &connector.hello), TB_OK);
    assert_int_equal(welcome.features, TB_FEATURE_TLS);
    word = confirm(&connector, &word);
    memcpy(&last, word.bytes, sizeof(last));
    assert_int_equal(tb_confirm_verify(&last, &key, &connector.hello, &welcome), TB_OK);
    assert_int_equal(hear(&acceptor, &word, word.length), TB_HANDSHAKE_CONFIRMED);
    tb_handshake_admit(&acceptor);
    assert_int_equal(take(&acceptor).bytes[0], TB_ACCEPTED);
}

/* Who does not hold the key is not answered, nor believed. */
static void test_wrong_key(void **state)
{
    struct tb_handshake connector, acceptor;
    struct saying hello = greet(&connector), welcome;
    tb_handshake_accept(&acceptor, &other_key);
    assert_int_equal(hear(&acceptor, &hello, 7), TB_HANDSHAKE_FAILED);
    assert_over(&acceptor, TB_HANDSHAKE_FAILED, TB_ERR_FORBIDDEN);
    assert_silent(&acceptor);
    assert_int_equal(acceptor.hello.source.job, 0); /* nothing of it is believed */

    struct tb_welcome false_welcome;
    assert_int_equal(tb_welcome_make(&false_welcome, &other_key, &connector.hello, TB_WELCOME_OK), TB_OK);
    welcome.length = sizeof(false_welcome);
    tb_wire_put_welcome(welcome.bytes, &false_welcome);
    assert_int_equal(hear(&connector, &welcome, 7), TB_HANDSHAKE_FAILED);
    assert_over(&connector, TB_HANDSHAKE_FAILED, TB_ERR_FORBIDDEN);
    assert_silent(&connector);
}

/* Of several keys the hello proves one. */
static void test_several_keys(void **state)
{
    struct tb_handshake connector, acceptor;
    struct saying hello = greet(&connector);
    tb_handshake_accept(&acceptor, NULL);
    assert_int_equal(hear(&acceptor, &hello, 5), TB_HANDSHAKE_HEARD);
    assert_int_equal(tb_handshake_wants(&acceptor), 0);
    assert_int_equal(tb_handshake_try_key(&acceptor, &other_key), TB_HANDSHAKE_HEARD);
    assert_silent(&acceptor);
    assert_int_equal(tb_handshake_try_key(&acceptor, &key), TB_HANDSHAKE_ASKED);
    assert_int_equal(tb_handshake_answer(&acceptor, TB_WELCOME_OK, 0, false), TB_OK);
    struct saying word = take(&acceptor);
    word = confirm(&connector, &word);
    assert_int_equal(hear(&acceptor, &word, 32), TB_HANDSHAKE_CONFIRMED);

    memset(hello.bytes, 0, sizeof(hello.bytes)); /* nonsense proves none of them */
    tb_handshake_accept(&acceptor, NULL);
    assert_int_equal(hear(&acceptor, &hello, 5), TB_HANDSHAKE_HEARD);
    assert_int_equal(tb_handshake_try_key(&acceptor, &key), TB_HANDSHAKE_HEARD);
    assert_silent(&acceptor);
}

/* Every byte of every word counts, and an unfinished word is none. */
static void test_changed(void **state)
{
    struct tb_handshake connector, acceptor, copy;
    struct saying word = greet(&connector);
    for (size_t i = 0; i < word.length; i++) {
        struct saying bad = word;
        bad.bytes[i] ^= 0x10;
        tb_handshake_accept(&acceptor, &key);
        assert_int_equal(hear(&acceptor, &bad, bad.length), TB_HANDSHAKE_FAILED);
        assert_over(&acceptor, TB_HANDSHAKE_FAILED, TB_ERR_FORBIDDEN);
        assert_silent(&acceptor);
    }
    word = meet(&connector, &acceptor, TB_WELCOME_OK, 0);
    for (size_t i = 0; i < word.length; i++) {
        struct saying bad = word;
        bad.bytes[i] ^= 0x10;
        copy = connector;
        assert_int_equal(hear(&copy, &bad, bad.length), TB_HANDSHAKE_FAILED);
        assert_over(&copy, TB_HANDSHAKE_FAILED, TB_ERR_FORBIDDEN);
        assert_silent(&copy);
    }
    word = confirm(&connector, &word);
    for (size_t i = 0; i < word.length; i++) {
        struct saying bad = word;
        bad.bytes[i] ^= 0x10;
        copy = acceptor;
        assert_int_equal(hear(&copy, &bad, bad.length), TB_HANDSHAKE_FAILED);
        assert_over(&copy, TB_HANDSHAKE_FAILED, TB_ERR_FORBIDDEN);
        assert_silent(&copy);
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        struct saying accepted = {.bytes = {(uint8_t)byte}, .length = 1};
        copy = connector;
        hear(&copy, &accepted, 1);
        assert_over(&copy, byte == TB_ACCEPTED ? TB_HANDSHAKE_DONE : TB_HANDSHAKE_FAILED,
                    byte == TB_ACCEPTED ? TB_OK : TB_ERR_PROTOCOL);
    }
}

static void test_truncated(void **state)
{
    struct tb_handshake connector, acceptor;
    struct saying word = greet(&connector);
    tb_handshake_accept(&acceptor, &key);
    word.length--;
    assert_int_equal(tb_handshake_feed(&acceptor, word.bytes, word.length), TB_HANDSHAKE_MORE);
    assert_int_equal(tb_handshake_wants(&acceptor), 1);
    assert_silent(&acceptor);
    word = meet(&connector, &acceptor, TB_WELCOME_OK, 0);
    assert_int_equal(tb_handshake_feed(&connector, word.bytes, word.length - 1), TB_HANDSHAKE_MORE);
    assert_int_equal(tb_handshake_wants(&connector), 1);
    assert_silent(&connector);
    word = meet(&connector, &acceptor, TB_WELCOME_OK, 0);
    word = confirm(&connector, &word);
    assert_int_equal(tb_handshake_feed(&acceptor, word.bytes, word.length - 1), TB_HANDSHAKE_MORE);
    assert_int_equal(tb_handshake_wants(&acceptor), 1);
    assert_silent(&acceptor);
}

/* Proves a hello again after something in it was changed. */
static void prove_again(struct saying *word, struct tb_hello *hello)
{
    uint8_t text[8 + sizeof(struct tb_hello)] = "hello";
    tb_wire_put_hello(text + 8, hello);
    assert_int_equal(tb_key_prove(&key, text, 8 + offsetof(struct tb_hello, proof), hello->proof), TB_OK);
    tb_wire_put_hello(word->bytes, hello);
}

/* Who holds the key is told that the versions differ, with or without a choice of keys. */
static void test_other_version(void **state)
{
    for (int several = 0; several < 2; several++)
        for (int reserved = 0; reserved < 2; reserved++) {
            struct tb_handshake connector, acceptor;
            struct saying word = greet(&connector);
            if (reserved)
                connector.hello.reserved = 1;
            else
                connector.hello.version = 99;
            prove_again(&word, &connector.hello);
            tb_handshake_accept(&acceptor, several ? NULL : &key);
            hear(&acceptor, &word, 40);
            if (several)
                tb_handshake_try_key(&acceptor, &key);
            assert_over(&acceptor, TB_HANDSHAKE_FAILED, TB_ERR_PROTOCOL);
            assert_int_equal(acceptor.hello.source.index, alice.index);
            word = take(&acceptor);
            assert_int_equal(word.length, sizeof(struct tb_welcome));
            assert_int_equal(hear(&connector, &word, 40), TB_HANDSHAKE_REFUSED);
            assert_over(&connector, TB_HANDSHAKE_REFUSED, TB_OK);
            assert_int_equal(connector.welcome.status, TB_WELCOME_VERSION);
            assert_int_equal(connector.welcome.features, 0);
        }
}

/* A welcome that is proved and yet makes no sense: of another version, or with more than was offered. */
static void test_odd_welcome(void **state)
{
    for (int odd = 0; odd < 2; odd++) {
        struct tb_handshake connector, acceptor;
        struct saying word = meet(&connector, &acceptor, TB_WELCOME_OK, 0);
        uint8_t text[8 + sizeof(struct tb_hello) + sizeof(struct tb_welcome)] = "welcome";
        struct tb_welcome welcome = acceptor.welcome;
        if (odd == 0)
            welcome.version = 98;
        else
            welcome.features = TB_FEATURE_ZSTD;
        tb_wire_put_hello(text + 8, &connector.hello);
        tb_wire_put_welcome(text + 8 + sizeof(struct tb_hello), &welcome);
        size_t length = 8 + sizeof(struct tb_hello) + offsetof(struct tb_welcome, proof);
        assert_int_equal(tb_key_prove(&key, text, length, welcome.proof), TB_OK);
        tb_wire_put_welcome(word.bytes, &welcome);
        assert_int_equal(hear(&connector, &word, 72), TB_HANDSHAKE_FAILED);
        assert_over(&connector, TB_HANDSHAKE_FAILED, TB_ERR_PROTOCOL);
        assert_silent(&connector);
    }
}

static void test_refusals(void **state)
{
    static const enum tb_welcome_status why[] = {TB_WELCOME_VERSION, TB_WELCOME_NO_SUCH_PROCESS, TB_WELCOME_BUSY,
                                                 TB_WELCOME_OTHER_HOST, TB_WELCOME_BORDER};
    for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
        struct tb_handshake connector, acceptor;
        struct saying welcome = meet(&connector, &acceptor, why[i], 0);
        assert_over(&acceptor, TB_HANDSHAKE_FAILED, TB_ERR_PEER);
        assert_int_equal(hear(&connector, &welcome, 9), TB_HANDSHAKE_REFUSED);
        assert_over(&connector, TB_HANDSHAKE_REFUSED, TB_OK);
        assert_int_equal(connector.welcome.status, why[i]);
        assert_silent(&connector);
    }
}

/* A question ends with the welcome, on both sides. */
static void test_question(void **state)
{
    struct tb_handshake connector, acceptor;
    assert_int_equal(tb_handshake_connect(&connector, &key, alice, bob, TB_STREAM_PROBE, 0), TB_OK);
    struct saying word = take(&connector);
    tb_handshake_accept(&acceptor, &key);
    assert_int_equal(hear(&acceptor, &word, 88), TB_HANDSHAKE_ASKED);
    assert_int_equal(acceptor.hello.stream, TB_STREAM_PROBE);
    assert_int_equal(tb_handshake_answer(&acceptor, TB_WELCOME_OK, 0, true), TB_OK);
    assert_over(&acceptor, TB_HANDSHAKE_DONE, TB_OK);
    word = take(&acceptor);
    assert_int_equal(hear(&connector, &word, 72), TB_HANDSHAKE_WELCOMED);

    tb_handshake_accept(&acceptor, &key);
    assert_int_equal(tb_handshake_connect(&connector, &key, alice, bob, TB_STREAM_PROBE, 0), TB_OK);
    word = take(&connector);
    assert_int_equal(hear(&acceptor, &word, 88), TB_HANDSHAKE_ASKED);
    assert_int_equal(tb_handshake_answer(&acceptor, TB_WELCOME_NO_SUCH_PROCESS, 0, true), TB_OK);
    assert_over(&acceptor, TB_HANDSHAKE_FAILED, TB_ERR_PEER);
    assert_int_equal(take(&acceptor).length, sizeof(struct tb_welcome));
}

/* An old hello is answered, because it proves the key; but the old confirm does not fit the new welcome. */
static void test_replay(void **state)
{
    struct tb_handshake connector, acceptor, second;
    struct saying hello = greet(&connector);
    tb_handshake_accept(&acceptor, &key);
    hear(&acceptor, &hello, 88);
    assert_int_equal(tb_handshake_answer(&acceptor, TB_WELCOME_OK, 0, false), TB_OK);
    struct saying welcome = take(&acceptor), last = confirm(&connector, &welcome);

    tb_handshake_accept(&second, &key);
    assert_int_equal(hear(&second, &hello, 88), TB_HANDSHAKE_ASKED);
    assert_int_equal(tb_handshake_answer(&second, TB_WELCOME_OK, 0, false), TB_OK);
    assert_int_equal(take(&second).length, sizeof(struct tb_welcome));
    assert_int_equal(hear(&second, &last, 32), TB_HANDSHAKE_FAILED);
    assert_over(&second, TB_HANDSHAKE_FAILED, TB_ERR_FORBIDDEN);
    assert_silent(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_splits),        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_wrong_key), cmocka_unit_test(test_several_keys),  cmocka_unit_test(test_changed),
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_other_version), cmocka_unit_test(test_odd_welcome),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_question),      cmocka_unit_test(test_replay),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
