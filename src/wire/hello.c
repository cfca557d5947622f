/* Hello, welcome and confirm: the three words by which two sides prove to each other that they hold the job key. */
#include "wire/wire.h"
#include "wire/key.h"
#include "wire/order.h"

static const uint8_t magic[8] = {'t', 'o', 'm', 'b', 'o', 'l', 'o', '\n'};

void tb_wire_put_hello(void *to, const struct tb_hello *hello)
{
    uint8_t *at = to;
    memmove(at + offsetof(struct tb_hello, magic), hello->magic, sizeof(hello->magic));
    tb_order_put32(at + offsetof(struct tb_hello, version), hello->version);
    tb_order_put32(at + offsetof(struct tb_hello, stream), hello->stream);
    tb_order_put32(at + offsetof(struct tb_hello, features), hello->features);
    tb_order_put32(at + offsetof(struct tb_hello, reserved), hello->reserved);
    tb_order_put32(at + offsetof(struct tb_hello, source.job), hello->source.job);
    tb_order_put32(at + offsetof(struct tb_hello, source.index), hello->source.index);
    tb_order_put32(at + offsetof(struct tb_hello, destination.job), hello->destination.job);
    tb_order_put32(at + offsetof(struct tb_hello, destination.index), hello->destination.index);
    memmove(at + offsetof(struct tb_hello, nonce), hello->nonce, sizeof(hello->nonce));
    memmove(at + offsetof(struct tb_hello, proof), hello->proof, sizeof(hello->proof));
}

void tb_wire_get_hello(const void *from, struct tb_hello *hello)
{
    const uint8_t *at = from;
    memmove(hello->magic, at + offsetof(struct tb_hello, magic), sizeof(hello->magic));
    hello->version = tb_order_get32(at + offsetof(struct tb_hello, version));
    hello->stream = tb_order_get32(at + offsetof(struct tb_hello, stream));
    hello->features = tb_order_get32(at + offsetof(struct tb_hello, features));
    hello->reserved = tb_order_get32(at + offsetof(struct tb_hello, reserved));
    hello->source.job = tb_order_get32(at + offsetof(struct tb_hello, source.job));
    hello->source.index = tb_order_get32(at + offsetof(struct tb_hello, source.index));
    hello->destination.job = tb_order_get32(at + offsetof(struct tb_hello, destination.job));
    hello->destination.index = tb_order_get32(at + offsetof(struct tb_hello, destination.index));
    memmove(hello->nonce, at + offsetof(struct tb_hello, nonce), sizeof(hello->nonce));
    memmove(hello->proof, at + offsetof(struct tb_hello, proof), sizeof(hello->proof));
}

void tb_wire_put_welcome(void *to, const struct tb_welcome *welcome)
{
    uint8_t *at = to;
    memmove(at + offsetof(struct tb_welcome, magic), welcome->magic, sizeof(welcome->magic));
    tb_order_put32(at + offsetof(struct tb_welcome, version), welcome->version);
    tb_order_put32(at + offsetof(struct tb_welcome, status), welcome->status);
    tb_order_put32(at + offsetof(struct tb_welcome, features), welcome->features);
    tb_order_put32(at + offsetof(struct tb_welcome, reserved), welcome->reserved);
    memmove(at + offsetof(struct tb_welcome, nonce), welcome->nonce, sizeof(welcome->nonce));
    memmove(at + offsetof(struct tb_welcome, proof), welcome->proof, sizeof(welcome->proof));
}

void tb_wire_get_welcome(const void *from, struct tb_welcome *welcome)
{
    const uint8_t *at = from;
    memmove(welcome->magic, at + offsetof(struct tb_welcome, magic), sizeof(welcome->magic));
    welcome->version = tb_order_get32(at + offsetof(struct tb_welcome, version));
    welcome->status = tb_order_get32(at + offsetof(struct tb_welcome, status));
    welcome->features = tb_order_get32(at + offsetof(struct tb_welcome, features));
    welcome->reserved = tb_order_get32(at + offsetof(struct tb_welcome, reserved));
    memmove(welcome->nonce, at + offsetof(struct tb_welcome, nonce), sizeof(welcome->nonce));
    memmove(welcome->proof, at + offsetof(struct tb_welcome, proof), sizeof(welcome->proof));
}

/* Each text begins with a word that no other one begins with, so that none can stand for another. */
#define LABEL_BYTES 8

static int hello_prove(const struct tb_hello *hello, const struct tb_key *key, uint8_t proof[TB_PROOF_BYTES])
{
    uint8_t text[LABEL_BYTES + sizeof(struct tb_hello)] = "hello";
    tb_wire_put_hello(text + LABEL_BYTES, hello);
    return tb_key_prove(key, text, LABEL_BYTES + offsetof(struct tb_hello, proof), proof);
}

static int welcome_prove(const struct tb_welcome *welcome, const struct tb_key *key, const struct tb_hello *hello,
                         uint8_t proof[TB_PROOF_BYTES])
{
    uint8_t text[LABEL_BYTES + sizeof(struct tb_hello) + sizeof(struct tb_welcome)] = "welcome";
    tb_wire_put_hello(text + LABEL_BYTES, hello);
    tb_wire_put_welcome(text + LABEL_BYTES + sizeof(struct tb_hello), welcome);
    return tb_key_prove(key, text, LABEL_BYTES + sizeof(struct tb_hello) + offsetof(struct tb_welcome, proof), proof);
}

/* Of everything that was said so far, under a label. */
static int talk_prove(const char label[LABEL_BYTES], const struct tb_key *key, const struct tb_hello *hello,
                      const struct tb_welcome *welcome, uint8_t proof[TB_PROOF_BYTES])
{
    uint8_t text[LABEL_BYTES + sizeof(struct tb_hello) + sizeof(struct tb_welcome)];
    memcpy(text, label, LABEL_BYTES);
    tb_wire_put_hello(text + LABEL_BYTES, hello);
    tb_wire_put_welcome(text + LABEL_BYTES + sizeof(struct tb_hello), welcome);
    return tb_key_prove(key, text, sizeof(text), proof);
}

int tb_hello_make(struct tb_hello *hello, const struct tb_key *key, struct tb_proc source, struct tb_proc destination,
                  enum tb_stream stream)
{
    memset(hello, 0, sizeof(*hello));
    memcpy(hello->magic, magic, sizeof(magic));
    hello->version = TB_WIRE_VERSION;
    hello->stream = stream;
    hello->source = source;
    hello->destination = destination;
    int error = tb_random_secret(hello->nonce, sizeof(hello->nonce));
    if (error != TB_OK)
        return error;
    return hello_prove(hello, key, hello->proof);
}

int tb_hello_offer(struct tb_hello *hello, const struct tb_key *key, uint32_t features)
{
    hello->features = features;
    return hello_prove(hello, key, hello->proof);
}

int tb_hello_verify(const struct tb_hello *hello, const struct tb_key *key)
{
    uint8_t proof[TB_PROOF_BYTES];
    if (memcmp(hello->magic, magic, sizeof(magic)) != 0)
        return tb_error(TB_ERR_FORBIDDEN, "somebody who does not speak Tombolo's language has connected");
    int error = hello_prove(hello, key, proof);
    if (error != TB_OK)
        return error;
    if (!tb_key_equal(proof, hello->proof, sizeof(proof)))
        return tb_error(TB_ERR_FORBIDDEN, "somebody without the job's key has connected");
    if (hello->version != TB_WIRE_VERSION)
        return tb_error(TB_ERR_PROTOCOL,
                        "process %u connects with wire version %u, this is version %u: use the same Tombolo on all "
                        "hosts",
                        hello->source.index, hello->version, TB_WIRE_VERSION);
    if (hello->reserved != 0)
        return tb_error(TB_ERR_PROTOCOL, "the hello of process %u has a reserved field set", hello->source.index);
    return TB_OK;
}

int tb_welcome_make(struct tb_welcome *welcome, const struct tb_key *key, const struct tb_hello *hello, uint32_t status)
{
    memset(welcome, 0, sizeof(*welcome));
    memcpy(welcome->magic, magic, sizeof(magic));
    welcome->version = TB_WIRE_VERSION;
    welcome->status = status;
    int error = tb_random_secret(welcome->nonce, sizeof(welcome->nonce));
    if (error != TB_OK)
        return error;
    return welcome_prove(welcome, key, hello, welcome->proof);
}

int tb_welcome_grant(struct tb_welcome *welcome, const struct tb_key *key, const struct tb_hello *hello,
                     uint32_t features)
{
    welcome->features = features;
    return welcome_prove(welcome, key, hello, welcome->proof);
}

int tb_welcome_verify(const struct tb_welcome *welcome, const struct tb_key *key, const struct tb_hello *hello)
{
    uint8_t proof[TB_PROOF_BYTES];
    if (memcmp(welcome->magic, magic, sizeof(magic)) != 0)
        return tb_error(TB_ERR_FORBIDDEN, "the answer to a connection does not speak Tombolo's language");
    int error = welcome_prove(welcome, key, hello, proof);
    if (error != TB_OK)
        return error;
    if (!tb_key_equal(proof, welcome->proof, sizeof(proof)))
        return tb_error(TB_ERR_FORBIDDEN, "the answer to a connection comes from somebody without the job's key");
    if (welcome->version != TB_WIRE_VERSION)
        return tb_error(TB_ERR_PROTOCOL,
                        "the host of process %u has wire version %u, this is version %u: use the same Tombolo on all "
                        "hosts",
                        hello->destination.index, welcome->version, TB_WIRE_VERSION);
    return TB_OK;
}

int tb_confirm_make(struct tb_confirm *confirm, const struct tb_key *key, const struct tb_hello *hello,
                    const struct tb_welcome *welcome)
{
    return talk_prove("confirm", key, hello, welcome, confirm->proof);
}

int tb_confirm_verify(const struct tb_confirm *confirm, const struct tb_key *key, const struct tb_hello *hello,
                      const struct tb_welcome *welcome)
{
    uint8_t proof[TB_PROOF_BYTES];
    int error = talk_prove("confirm", key, hello, welcome, proof);
    if (error != TB_OK)
        return error;
    if (!tb_key_equal(proof, confirm->proof, sizeof(proof)))
        return tb_error(TB_ERR_FORBIDDEN, "a connection was opened with the repetition of an old hello");
    return TB_OK;
}

int tb_stream_secret(struct tb_key *secret, const struct tb_key *key, const struct tb_hello *hello,
                     const struct tb_welcome *welcome)
{
    _Static_assert(sizeof(secret->bytes) == TB_PROOF_BYTES, "a hash is a key");
    return talk_prove((const char[LABEL_BYTES]){"tls"}, key, hello, welcome, secret->bytes);
}
