/* Bytes of encrypted and of compressed streams, changed on the way. What is said in TLS differs from time to time, so
 * its bytes are changed while two ends speak. */
#include "base/changed_bytes_test.h"
#include "link/squeeze.h"
#include "link/tls.h"

#define PLAIN_BYTES 65536u
#define RECORD      16384u

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

enum { CONNECTOR, ACCEPTOR, ENDS };

struct end {
    struct tb_tls *tls;
    uint8_t wire[2 * PLAIN_BYTES]; /* what it has put, */
    size_t put, carried;           /* and how much of it has gone to the other end */
    size_t written, read;          /* bytes of what is said in it */
    int error;
};

struct pair {
    struct end ends[ENDS];
    int from;      /* what this one says is changed, */
    size_t offset; /* here; */
    uint8_t bits;  /* or, if this is 0, ends here */
    uint8_t plain[PLAIN_BYTES];
};

static int put(void *context, const void *bytes, size_t length)
{
    struct end *end = context;
    assert_true(length <= sizeof end->wire - end->put);
    memcpy(end->wire + end->put, bytes, length);
    end->put += length;
    return TB_OK;
}

static bool is_cut(const struct pair *p, int from)
{
    return p->from == from && p->bits == 0 && p->ends[from].carried >= p->offset;
}

/* What one end has said comes to the other, which reads. */
static void carry(struct pair *p, int from)
{
    static uint8_t bytes[RECORD];
    struct end *f = &p->ends[from], *t = &p->ends[!from];
    size_t length = f->put - f->carried, got;
    if (p->from == from && p->bits == 0 && f->carried + length > p->offset)
        length = p->offset - f->carried;
    if (length == 0 || t->error != TB_OK)
        return;
    if (p->from == from && p->offset >= f->carried && p->offset < f->carried + length)
        f->wire[p->offset] ^= p->bits;
    tb_tls_feed(t->tls, f->wire + f->carried, length);
    f->carried += length;
    int rc = tb_tls_handshake(t->tls);
    while (rc == TB_OK && (rc = tb_tls_read(t->tls, bytes, sizeof bytes, &got)) == TB_OK) {
        assert_true(got <= PLAIN_BYTES - t->read);
        assert_memory_equal(bytes, p->plain + t->read, got); /* whatever happens, nothing wrong comes out */
        t->read += got;
    }
    t->error = rc == TB_AGAIN ? TB_OK : rc;
}

static void speak(struct pair *p, int from)
{
    struct end *end = &p->ends[from];
    if (end->error == TB_OK && end->written < PLAIN_BYTES && tb_tls_handshake(end->tls) == TB_OK) {
        assert_int_equal(tb_tls_write(end->tls, p->plain + end->written, RECORD), TB_OK);
        end->written += RECORD;
    }
}

/* They say all that they have to say; true: it has come. */
static bool talk(struct pair *p, int from, size_t offset, uint8_t bits)
{
    static const struct tb_key secret = {.bytes = {1, 2, 3}};
    p->from = from;
    p->offset = offset;
    p->bits = bits;
    tb_error(TB_ERR_INTERNAL, "%s", "");
    for (int i = 0; i < ENDS; i++) {
        struct end *end = &p->ends[i];
        end->put = end->carried = end->written = end->read = 0;
        end->error = TB_OK;
        int rc = tb_tls_open(&end->tls, &secret, i == CONNECTOR, put, end);
        if (rc == TB_ERR_UNSUPPORTED)
            skip(); /* there is no libssl here */
        assert_int_equal(rc, TB_OK);
    }
    assert_int_equal(tb_tls_handshake(p->ends[CONNECTOR].tls), TB_AGAIN);
    for (int turn = 0; turn < 12; turn++)
        for (int i = 0; i < ENDS; i++) {
            /* What is behind the change does not matter any more. */
            if (p->ends[!i].error == TB_OK && !is_cut(p, i))
                carry(p, i);
            speak(p, i);
        }
    bool whole = true;
    for (int i = 0; i < ENDS; i++) {
        struct end *end = &p->ends[i];
        whole = whole && end->error == TB_OK && end->read == PLAIN_BYTES;
        if (end->error != TB_OK && end->error != TB_ERR_CLOSED)
            assert_true(tb_error_story()[0] != 0);
        tb_tls_write(end->tls, "more", 4); /* whoever goes on with it gets an answer */
        tb_tls_end(end->tls);
        tb_tls_close(end->tls);
    }
    return whole;
}

static void sweep_tls(int from)
{
    static struct pair p;
    for (size_t i = 0; i < PLAIN_BYTES; i++)
        p.plain[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_true(talk(&p, from, SIZE_MAX, 1));
    bool all = changed_bytes_step() == 1; /* each try is a handshake, which takes its time */
    uint32_t unnoticed = 0;
    for (size_t offset = 0; offset < PLAIN_BYTES; offset += all ? 3 : offset < 400 ? 2 : 1021) {
        unnoticed += talk(&p, from, offset, (uint8_t)(1u << offset % 8));
        if (offset % 8 == 0)
            assert_false(talk(&p, from, offset, 0));
    }
    assert_true(unnoticed <= 4); /* the versions in front of the first records, which mean nothing */
}

static void tls_of_the_connector(void **state)
{
    sweep_tls(CONNECTOR);
}

static void tls_of_the_acceptor(void **state)
{
    sweep_tls(ACCEPTOR);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static int take_frame(void *context, char *bytes, size_t length)
{
    *(size_t *)context += length;
    return TB_OK;
}

static int take_blocks(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    static char room[128 + 65536 + 1024]; /* some before, as tb_unsqueeze_feed wants it */
    struct tb_unsqueeze *unsqueeze;
    size_t came = 0;
    int rc = tb_unsqueeze_open(&unsqueeze, take_frame, &came);
    assert_int_equal(rc, TB_OK);
    for (size_t at = 0, part; at < length && rc == TB_OK; at += part) {
        part = piece < length - at ? piece : length - at;
        part = part < 65536 ? part : 65536;
        memcpy(room + 128, bytes + at, part);
        rc = tb_unsqueeze_feed(unsqueeze, room + 128, part);
    }
    if (rc != TB_OK)
        assert_int_equal(tb_unsqueeze_feed(unsqueeze, room + 128, 1), TB_ERR_PROTOCOL); /* once more */
    tb_unsqueeze_close(unsqueeze);
    return rc;
}

static uint64_t no_time(void *context)
{
    return 0;
}

static void blocks(void **state)
{
    static const uint32_t features[] = {TB_FEATURE_ZSTD, TB_FEATURE_LZ4};
    static uint8_t recording[70000];
    static char text[3000];
    for (size_t k = 0; k < 2; k++) {
        const struct tb_clock clock = {.now = no_time};
        struct tb_squeeze_group group = {0};
        const struct tb_squeeze_config config = {features[k], 3, &clock, &clock, &group};
        struct tb_squeeze *squeeze;
        uint32_t offered;
        if (tb_squeeze_offer(k == 0 ? "zstd" : "lz4", &offered) != TB_OK)
            continue; /* not built with it */
        assert_int_equal(tb_squeeze_open(&squeeze, &config), TB_OK);
        size_t length = 0;
        for (uint32_t i = 0; i < 40 && length < 60000; i++) {
            const void *block;
            size_t bytes;
            for (size_t at = 0; at < sizeof text; at++)
                text[at] = (char)("numbers "[at % 8] + (at * i >> 8));
            tb_squeeze_pack(squeeze, i == 0 ? TB_SQUEEZE_IDLE : TB_SQUEEZE_FULL, text, sizeof text, &block, &bytes);
            memcpy(recording + length, block, bytes);
            length += bytes;
        }
        tb_squeeze_close(squeeze);
        const struct changed_bytes c = {
            .kind = k == 0 ? "blocks, zstd" : "blocks, LZ4", .take = take_blocks, .bytes = recording, .length = length};
        changed_bytes_sweep(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_of_the_connector),
        cmocka_unit_test(tls_of_the_acceptor),
        cmocka_unit_test(blocks),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
