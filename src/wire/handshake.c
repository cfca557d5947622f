#include "wire/wire.h"

/* What is awaited: a word of the other side, or a decision of the owner. */
enum state {
    AWAITS_HELLO,
    AWAITS_KEY,    /* decision */
    AWAITS_ANSWER, /* decision */
    AWAITS_CONFIRM,
    AWAITS_ADMISSION, /* decision */
    AWAITS_WELCOME,
    AWAITS_CHOICE, /* decision */
    AWAITS_ACCEPTED,
    AT_END
};

static enum tb_handshake_verdict move(struct tb_handshake *h, enum state state, enum tb_handshake_verdict verdict)
{
    h->state = (uint8_t)state;
    h->have = 0;
    h->verdict = verdict;
    return verdict;
}

static enum tb_handshake_verdict fail(struct tb_handshake *h, int error)
{
    h->error = error;
    return move(h, AT_END, TB_HANDSHAKE_FAILED);
}

/* Makes the welcome and puts it out. */
static int put_welcome(struct tb_handshake *h, enum tb_welcome_status status, uint32_t features)
{
    int rc = tb_welcome_make(&h->welcome, h->key, &h->hello, status);
    if (rc == TB_OK && features != 0)
        rc = tb_welcome_grant(&h->welcome, h->key, &h->hello, features);
    if (rc != TB_OK)
        return rc;
    tb_wire_put_welcome(h->out, &h->welcome);
    h->out_length = sizeof(h->welcome);
    return TB_OK;
}

static enum tb_handshake_verdict take_hello(struct tb_handshake *h)
{
    struct tb_hello hello;
    tb_wire_get_hello(h->in, &hello);
    int rc = tb_hello_verify(&hello, h->key);
    if (rc != TB_OK && rc != TB_ERR_PROTOCOL)
        return fail(h, rc);
    h->hello = hello;
    if (rc == TB_OK)
        return move(h, AWAITS_ANSWER, TB_HANDSHAKE_ASKED);
    int unsaid = put_welcome(h, TB_WELCOME_VERSION, 0);
    return fail(h, unsaid != TB_OK ? unsaid : rc);
}

static enum tb_handshake_verdict take_confirm(struct tb_handshake *h)
{
    struct tb_confirm confirm;
    memcpy(&confirm, h->in, sizeof(confirm));
    int rc = tb_confirm_verify(&confirm, h->key, &h->hello, &h->welcome);
    return rc == TB_OK ? move(h, AWAITS_ADMISSION, TB_HANDSHAKE_CONFIRMED) : fail(h, rc);
}

static enum tb_handshake_verdict take_welcome(struct tb_handshake *h)
{
    struct tb_welcome welcome;
    tb_wire_get_welcome(h->in, &welcome);
    int rc = tb_welcome_verify(&welcome, h->key, &h->hello);
    if (rc == TB_OK && (welcome.features & ~h->hello.features) != 0)
        rc = tb_error(TB_ERR_PROTOCOL, "the host of process %u grants what it was not offered",
                      h->hello.destination.index);
    if (rc != TB_OK)
        return fail(h, rc);
    h->welcome = welcome;
    return welcome.status == TB_WELCOME_OK ? move(h, AWAITS_CHOICE, TB_HANDSHAKE_WELCOMED)
                                           : move(h, AT_END, TB_HANDSHAKE_REFUSED);
}

static enum tb_handshake_verdict take_accepted(struct tb_handshake *h)
{
    if (h->in[offsetof(struct tb_accepted, word)] != TB_ACCEPTED)
        return fail(h, tb_error(TB_ERR_PROTOCOL, "process %u does not say that it has accepted a connection",
                                h->hello.destination.index));
    return move(h, AT_END, TB_HANDSHAKE_DONE);
}

int tb_handshake_connect(struct tb_handshake *h, const struct tb_key *key, struct tb_proc source,
                         struct tb_proc destination, uint32_t stream, uint32_t features)
{
    *h = (struct tb_handshake){.key = key};
    int rc = tb_hello_make(&h->hello, key, source, destination, (enum tb_stream)stream);
    if (rc == TB_OK && features != 0)
        rc = tb_hello_offer(&h->hello, key, features);
    if (rc != TB_OK) {
        fail(h, rc);
        return rc;
    }
    tb_wire_put_hello(h->out, &h->hello);
    h->out_length = sizeof(h->hello);
    move(h, AWAITS_WELCOME, TB_HANDSHAKE_MORE);
    return TB_OK;
}

void tb_handshake_accept(struct tb_handshake *h, const struct tb_key *key)
{
    *h = (struct tb_handshake){.key = key};
    move(h, AWAITS_HELLO, TB_HANDSHAKE_MORE);
}

size_t tb_handshake_wants(const struct tb_handshake *h)
{
    static const uint8_t sizes[] = {[AWAITS_HELLO] = sizeof(struct tb_hello),
                                    [AWAITS_CONFIRM] = sizeof(struct tb_confirm),
                                    [AWAITS_WELCOME] = sizeof(struct tb_welcome),
                                    [AWAITS_ACCEPTED] = sizeof(struct tb_accepted),
                                    [AT_END] = 0};
    return (size_t)sizes[h->state] - h->have;
}

enum tb_handshake_verdict tb_handshake_feed(struct tb_handshake *h, const void *bytes, size_t length)
{
    TB_ASSERT(length <= tb_handshake_wants(h));
    if (length == 0)
        return h->verdict;
    memcpy(h->in + h->have, bytes, length);
    h->have = (uint8_t)(h->have + length);
    if (tb_handshake_wants(h) > 0)
        return h->verdict = TB_HANDSHAKE_MORE;
    switch ((enum state)h->state) {
    case AWAITS_HELLO:
        return h->key != NULL ? take_hello(h) : move(h, AWAITS_KEY, TB_HANDSHAKE_HEARD);
    case AWAITS_CONFIRM:
        return take_confirm(h);
    case AWAITS_WELCOME:
        return take_welcome(h);
    case AWAITS_ACCEPTED:
        return take_accepted(h);
    default:
        return h->verdict; /* wants nothing, so nothing was fed */
    }
}

enum tb_handshake_verdict tb_handshake_try_key(struct tb_handshake *h, const struct tb_key *key)
{
    TB_ASSERT(h->state == AWAITS_KEY);
    h->key = key;
    if (take_hello(h) == TB_HANDSHAKE_FAILED && h->error == TB_ERR_FORBIDDEN)
        return move(h, AWAITS_KEY, TB_HANDSHAKE_HEARD);
    return h->verdict;
}

int tb_handshake_confirm(struct tb_handshake *h)
{
    TB_ASSERT(h->state == AWAITS_CHOICE);
    struct tb_confirm confirm;
    int rc = tb_confirm_make(&confirm, h->key, &h->hello, &h->welcome);
    if (rc != TB_OK) {
        fail(h, rc);
        return rc;
    }
    memcpy(h->out, &confirm, sizeof(confirm));
    h->out_length = sizeof(confirm);
    move(h, AWAITS_ACCEPTED, TB_HANDSHAKE_MORE);
    return TB_OK;
}

int tb_handshake_answer(struct tb_handshake *h, enum tb_welcome_status status, uint32_t features, bool last)
{
    TB_ASSERT(h->state == AWAITS_ANSWER && (features & ~h->hello.features) == 0);
    int rc = put_welcome(h, status, features);
    if (rc != TB_OK || status != TB_WELCOME_OK)
        fail(h, rc != TB_OK ? rc : TB_ERR_PEER);
    else if (last)
        move(h, AT_END, TB_HANDSHAKE_DONE);
    else
        move(h, AWAITS_CONFIRM, TB_HANDSHAKE_MORE);
    return rc;
}

void tb_handshake_admit(struct tb_handshake *h)
{
    TB_ASSERT(h->state == AWAITS_ADMISSION);
    h->out[offsetof(struct tb_accepted, word)] = TB_ACCEPTED;
    h->out_length = sizeof(struct tb_accepted);
    move(h, AT_END, TB_HANDSHAKE_DONE);
}

const void *tb_handshake_output(struct tb_handshake *h, size_t *length)
{
    *length = h->out_length;
    h->out_length = 0;
    return h->out;
}
