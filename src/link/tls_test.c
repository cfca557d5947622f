/* TLS between two ends in one process. What they say to each other lies in memory between them, in which a test may
 * look and change things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "link/tls.h"
#include "link/tls_library.h"

enum { CONNECTOR, ACCEPTOR, ENDS };

#define WIRE_ROOM (4u << 20)

struct end {
    struct tb_tls *tls;
    uint8_t *sent; /* what this end has put */
    size_t begin, end;
    bool cut; /* put fails */
};

struct pair {
    struct end ends[ENDS];
};

static struct tb_key secret_of(uint8_t seed)
{
    struct tb_key key;
    memset(key.bytes, seed, sizeof(key.bytes));
    return key;
}

static int put(void *context, const void *bytes, size_t length)
{
    struct end *end = context;
    if (end->cut)
        return tb_error(TB_ERR_PEER, "cut");
    assert_true(length <= WIRE_ROOM - end->end);
    memcpy(end->sent + end->end, bytes, length);
    end->end += length;
    return TB_OK;
}

static void pair_open(struct pair *pair, struct tb_key connector, struct tb_key acceptor)
{
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < ENDS; i++) {
        struct end *end = &pair->ends[i];
        end->sent = malloc(WIRE_ROOM);
        assert_non_null(end->sent);
        assert_int_equal(tb_tls_open(&end->tls, i == CONNECTOR ? &connector : &acceptor, i == CONNECTOR, put, end),
                         TB_OK);
    }
}

static void pair_close(struct pair *pair)
{
    for (int i = 0; i < ENDS; i++) {
        tb_tls_close(pair->ends[i].tls);
        free(pair->ends[i].sent);
    }
}

/* Gives this end up to `most` bytes of what the other one has sent. */
static size_t carry(struct pair *pair, int to, size_t most)
{
    struct end *from = &pair->ends[!to];
    size_t length = from->end - from->begin;
    length = length < most ? length : most;
    tb_tls_feed(pair->ends[to].tls, from->sent + from->begin, length);
    from->begin += length;
    if (from->begin == from->end)
        from->begin = from->end = 0;
    return length;
}

/* Until both are through, in pieces of `most` bytes. */
static void pair_shake(struct pair *pair, size_t most)
{
    int results[ENDS] = {TB_AGAIN, TB_AGAIN};
    for (int turn = 0; turn < 4000 && (results[0] == TB_AGAIN || results[1] == TB_AGAIN); turn++)
        for (int end = 0; end < ENDS; end++)
            if (results[end] == TB_AGAIN) {
                carry(pair, end, most);
                results[end] = tb_tls_handshake(pair->ends[end].tls);
            }
    assert_int_equal(results[CONNECTOR], TB_OK);
    assert_int_equal(results[ACCEPTOR], TB_OK);
}

static void pair_ready(struct pair *pair)
{
    pair_open(pair, secret_of(1), secret_of(1));
    pair_shake(pair, SIZE_MAX);
}

/* A byte of the test's data: no power of two repeats it. */
static uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

static void send_word(struct pair *pair, int end, const char *word)
{
    assert_int_equal(tb_tls_write(pair->ends[end].tls, word, strlen(word)), TB_OK);
}

static void expect_word(struct pair *pair, int end, const char *word)
{
    char text[100];
    size_t got;
    carry(pair, end, SIZE_MAX);
    assert_int_equal(tb_tls_read(pair->ends[end].tls, text, sizeof(text), &got), TB_OK);
    assert_int_equal(got, strlen(word));
    assert_memory_equal(text, word, got);
    assert_int_equal(tb_tls_read(pair->ends[end].tls, text, sizeof(text), &got), TB_AGAIN);
}

static void test_both_ways(void **state)
{
    struct pair pair;
    pair_ready(&pair);
    send_word(&pair, CONNECTOR, "there");
    send_word(&pair, ACCEPTOR, "and back");
    expect_word(&pair, ACCEPTOR, "there");
    expect_word(&pair, CONNECTOR, "and back");
    assert_non_null(strstr(tb_tls_cipher(pair.ends[CONNECTOR].tls), "SHA256"));
    assert_string_equal(tb_tls_cipher(pair.ends[CONNECTOR].tls), tb_tls_cipher(pair.ends[ACCEPTOR].tls));
    assert_int_equal(tb_tls_handshake(pair.ends[CONNECTOR].tls), TB_OK); /* once more does no harm */
    pair_close(&pair);
}

/* What lies between the ends is not what was said, and saying it twice looks different. */
static void test_secret(void **state)
{
    static const char word[] = "a word that nobody may read";
    struct pair pair;
    struct end *end = &pair.ends[CONNECTOR];
    pair_ready(&pair);
    send_word(&pair, CONNECTOR, word);
    size_t half = end->end;
    send_word(&pair, CONNECTOR, word);
    assert_true(half > strlen(word));
    assert_int_equal(end->end, 2 * half);
    assert_null(memmem(end->sent, end->end, "word", 4));
    assert_memory_not_equal(end->sent + 5, end->sent + half + 5, half - 5);
    pair_close(&pair);
}

static uint64_t drain(struct tb_tls *tls, uint64_t at, size_t room)
{
    uint8_t bytes[40000];
    size_t got;
    int rc;
    while ((rc = tb_tls_read(tls, bytes, room, &got)) == TB_OK)
        for (size_t i = 0; i < got; i++)
            if (bytes[i] != pattern(at++))
                fail_msg("byte %llu is wrong", (unsigned long long)at - 1);
    assert_int_equal(rc, TB_AGAIN);
    return at;
}

/* Pieces that fit nothing are written, arrive in pieces that fit nothing either, and so are they read; both ways. */
static void test_pieces(void **state)
{
    static const size_t pieces[] = {1, 7, 1000, 16383, 16384, 16385, 100000};
    static const size_t steps[] = {SIZE_MAX, 1000, 1, 65537}, rooms[] = {1, 13, 40000};
    static uint8_t bytes[100000];
    for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
        struct pair pair;
        uint64_t in[ENDS] = {0}, out = 0, end = pieces[p] < 100 ? 3000 : 300000;
        pair_open(&pair, secret_of(1), secret_of(1));
        pair_shake(&pair, steps[p % 4]);
        for (; out < end; out += pieces[p]) {
            for (size_t i = 0; i < pieces[p]; i++)
                bytes[i] = pattern(out + i);
            for (int i = 0; i < ENDS; i++) {
                assert_int_equal(tb_tls_write(pair.ends[i].tls, bytes, pieces[p]), TB_OK);
                while (carry(&pair, !i, steps[p % 4]) > 0)
                    in[!i] = drain(pair.ends[!i].tls, in[!i], rooms[p % 3]);
            }
        }
        assert_int_equal(in[CONNECTOR], out);
        assert_int_equal(in[ACCEPTOR], out);
        pair_close(&pair);
    }
}

static void test_wrong_key(void **state)
{
    struct pair pair;
    pair_open(&pair, secret_of(1), secret_of(2));
    assert_int_equal(tb_tls_handshake(pair.ends[CONNECTOR].tls), TB_AGAIN);
    carry(&pair, ACCEPTOR, SIZE_MAX);
    assert_int_equal(tb_tls_handshake(pair.ends[ACCEPTOR].tls), TB_ERR_FORBIDDEN);
    assert_non_null(strstr(tb_error_story(), "different keys"));
    assert_true(carry(&pair, CONNECTOR, SIZE_MAX) > 0);
    assert_int_equal(tb_tls_handshake(pair.ends[CONNECTOR].tls), TB_ERR_FORBIDDEN);
    assert_non_null(strstr(tb_error_story(), "different keys"));
    pair_close(&pair);
}

static void test_ending(void **state)
{
    struct pair pair;
    char bytes[20];
    size_t n;
    pair_ready(&pair);
    send_word(&pair, CONNECTOR, "last words");
    assert_int_equal(tb_tls_end(pair.ends[CONNECTOR].tls), TB_OK);
    carry(&pair, ACCEPTOR, SIZE_MAX);
    assert_int_equal(tb_tls_read(pair.ends[ACCEPTOR].tls, bytes, sizeof(bytes), &n), TB_OK);
    assert_int_equal(n, 10);
    for (int i = 0; i < 2; i++) /* whoever asks again hears it again */
        assert_int_equal(tb_tls_read(pair.ends[ACCEPTOR].tls, bytes, sizeof(bytes), &n), TB_ERR_CLOSED);
    pair_close(&pair);
    tb_tls_close(NULL);
}

/* An error of the owner comes back as it is. */
static void test_cut(void **state)
{
    struct pair pair;
    pair_ready(&pair);
    pair.ends[CONNECTOR].cut = true;
    assert_int_equal(tb_tls_write(pair.ends[CONNECTOR].tls, "x", 1), TB_ERR_PEER);
    assert_string_equal(tb_error_story(), "cut");
    pair_close(&pair);

    pair_open(&pair, secret_of(1), secret_of(1));
    pair.ends[CONNECTOR].cut = true;
    assert_int_equal(tb_tls_handshake(pair.ends[CONNECTOR].tls), TB_ERR_PEER);
    pair_close(&pair);
}

/* Bytes that are no TLS. */
static void test_noise(void **state)
{
    static const char noise[] = "GET / HTTP/1.1\r\nHost: tombolo\r\n\r\n and some more, so that it is long enough";
    for (int end = 0; end < ENDS; end++) {
        struct pair pair;
        pair_open(&pair, secret_of(1), secret_of(1));
        tb_tls_feed(pair.ends[end].tls, noise, sizeof(noise));
        assert_int_equal(tb_tls_handshake(pair.ends[end].tls), TB_ERR_PROTOCOL);
        assert_true(tb_error_story()[0] != '\0');
        pair_close(&pair);
    }
}

/* A bit of a record is changed on the way, in any byte: nothing of it comes out. */
static void test_changed_record(void **state)
{
    for (size_t place = 0; place < 60; place++) {
        struct pair pair;
        uint8_t bytes[200];
        size_t got;
        pair_ready(&pair);
        send_word(&pair, CONNECTOR, "forty bytes or so, of which one is changed");
        assert_true(pair.ends[CONNECTOR].end >= 60);
        pair.ends[CONNECTOR].sent[place] ^= 1;
        carry(&pair, ACCEPTOR, SIZE_MAX);
        int rc = tb_tls_read(pair.ends[ACCEPTOR].tls, bytes, sizeof(bytes), &got);
        assert_true(rc == TB_ERR_PROTOCOL || (rc == TB_AGAIN && (place == 3 || place == 4))); /* a length: waits */
        assert_int_equal(got, 0);
        pair_close(&pair);
    }
}

/* Or of the handshake: it ends with an error, or never, but not well. */
static void test_changed_handshake(void **state)
{
    for (size_t place = 5; place < 400; place += 3) {
        struct pair pair;
        pair_open(&pair, secret_of(1), secret_of(1));
        assert_int_equal(tb_tls_handshake(pair.ends[CONNECTOR].tls), TB_AGAIN);
        if (place >= pair.ends[CONNECTOR].end) {
            pair_close(&pair);
            break;
        }
        pair.ends[CONNECTOR].sent[place] ^= 1;
        carry(&pair, ACCEPTOR, SIZE_MAX);
        int rc = tb_tls_handshake(pair.ends[ACCEPTOR].tls);
        assert_true(rc == TB_ERR_PROTOCOL || rc == TB_ERR_FORBIDDEN || rc == TB_AGAIN);
        if (rc == TB_AGAIN) {
            carry(&pair, CONNECTOR, SIZE_MAX);
            assert_int_not_equal(tb_tls_handshake(pair.ends[CONNECTOR].tls), TB_OK);
        }
        pair_close(&pair);
    }
}

/* So many records that new keys must have come in between. */
static void test_new_keys(void **state)
{
    struct pair pair;
    pair_ready(&pair);
    for (uint32_t i = 0; i < 140000; i++) {
        uint32_t word = 0;
        size_t got;
        assert_int_equal(tb_tls_write(pair.ends[CONNECTOR].tls, &i, sizeof(i)), TB_OK);
        carry(&pair, ACCEPTOR, SIZE_MAX);
        assert_int_equal(tb_tls_read(pair.ends[ACCEPTOR].tls, &word, sizeof(word), &got), TB_OK);
        assert_int_equal(word, i);
        assert_int_equal(tb_tls_read(pair.ends[ACCEPTOR].tls, &word, sizeof(word), &got), TB_AGAIN);
    }
    pair_close(&pair);
}

/* Each connection has a secret of its own; both ends find the same one. */
static void test_secrets(void **state)
{
    const struct tb_proc one = {7, 0}, two = {7, 1};
    struct tb_key key, other, a, b;
    struct tb_hello hello;
    struct tb_welcome welcome, again;
    assert_int_equal(tb_key_make(&key), TB_OK);
    assert_int_equal(tb_key_make(&other), TB_OK);
    assert_int_equal(tb_hello_make(&hello, &key, one, two, TB_STREAM_BULK), TB_OK);
    assert_int_equal(tb_hello_offer(&hello, &key, TB_FEATURE_TLS | TB_FEATURE_ZSTD), TB_OK);
    assert_int_equal(tb_hello_verify(&hello, &key), TB_OK);
    assert_int_equal(tb_welcome_make(&welcome, &key, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_welcome_grant(&welcome, &key, &hello, TB_FEATURE_TLS), TB_OK);
    assert_int_equal(tb_welcome_verify(&welcome, &key, &hello), TB_OK);
    welcome.features = TB_FEATURE_ZSTD; /* somebody on the way takes the encryption out */
    assert_int_equal(tb_welcome_verify(&welcome, &key, &hello), TB_ERR_FORBIDDEN);
    welcome.features = TB_FEATURE_TLS;
    assert_int_equal(tb_stream_secret(&a, &key, &hello, &welcome), TB_OK);
    assert_int_equal(tb_stream_secret(&b, &key, &hello, &welcome), TB_OK);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(tb_welcome_make(&again, &key, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_stream_secret(&b, &key, &hello, &again), TB_OK);
    assert_memory_not_equal(&a, &b, sizeof(a));
    assert_int_equal(tb_stream_secret(&b, &other, &hello, &welcome), TB_OK);
    assert_memory_not_equal(&a, &b, sizeof(a));
    struct tb_confirm confirm;
    assert_int_equal(tb_confirm_make(&confirm, &key, &hello, &welcome), TB_OK);
    assert_memory_not_equal(&a, &confirm, sizeof(a));
}

/* Without libssl, or with a library that is something else, the story says what to do. */
static void test_no_library(void **state)
{
    struct tb_tls_library library;
    tb_tls_library_open(&library, "libtombolo-is-not-there.so.3");
    assert_non_null(strstr(library.trouble, "install"));
    tb_tls_library_open(&library, "libc.so.6");
    assert_non_null(strstr(library.trouble, "libc.so.6"));
    tb_tls_library_open(&library, "libssl.so.3");
    assert_string_equal(library.trouble, "");
}

/* TOMBOLO_TEST_RATES=1 prints how fast it is; nothing depends on it. */
static void test_rate(void **state)
{
    if (getenv("TOMBOLO_TEST_RATES") == NULL)
        skip();
    static uint8_t bytes[16384];
    struct pair pair;
    uint64_t begin = tb_clock_now_real(), amount = 0;
    pair_ready(&pair);
    uint64_t shaken = tb_clock_now_real();
    for (; amount < 512u << 20; amount += sizeof(bytes)) {
        size_t n;
        tb_tls_write(pair.ends[CONNECTOR].tls, bytes, sizeof(bytes));
        carry(&pair, ACCEPTOR, SIZE_MAX);
        while (tb_tls_read(pair.ends[ACCEPTOR].tls, bytes, sizeof(bytes), &n) == TB_OK)
            continue;
    }
    printf("%s: handshake %.0f us, both ends in one thread %.0f MB/s\n", tb_tls_cipher(pair.ends[CONNECTOR].tls),
           (double)(shaken - begin) / 1e3, (double)amount * 1e3 / (double)(tb_clock_now_real() - shaken));
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_secret),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_ending),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_changed_record),
        cmocka_unit_test(test_changed_handshake),
        cmocka_unit_test(test_new_keys),
        cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
