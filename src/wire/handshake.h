/* The proof of the job key on a new connection, as a state machine without input or output: it is fed the bytes that
 * have come, gives the bytes that are to be sent, and says how it went. Its owner has the socket, the time limits and
 * the choice whom to let in. The order on the wire is hello, welcome, confirm, accepted (wire.h); what follows them on
 * the same stream belongs to somebody else, so it never wants a byte more.
 *
 * A connector: tb_handshake_connect, send what it gives, feed; after TB_HANDSHAKE_WELCOMED the owner decides whether
 * this is the connection that he wants (of several attempts one is confirmed) and calls tb_handshake_confirm, or
 * closes. An acceptor: tb_handshake_accept, feed; after TB_HANDSHAKE_ASKED the owner looks at `hello` and calls
 * tb_handshake_answer; after TB_HANDSHAKE_CONFIRMED he calls tb_handshake_admit if whom the hello asks for is still
 * there, or closes. An acceptor with several keys, of which the hello proves one, gives none at first.
 *
 * After each call that may have made some, tb_handshake_output has the bytes to be sent; after
 * TB_HANDSHAKE_FAILED there may be some too. Whoever owns the struct owns everything in it; there is nothing to free.
 * It points to the key, which must live as long. No thread, no clock: any one thread at a time.
 *
 * Part of wire.h, which includes it. Over a socket: tb_handshake_socket_* (job.h). */
#ifndef TB_WIRE_HANDSHAKE_H
#define TB_WIRE_HANDSHAKE_H

enum tb_handshake_verdict {
    TB_HANDSHAKE_MORE,     /* more bytes are wanted */
    TB_HANDSHAKE_WELCOMED, /* connector: the other side has proved the key and said yes; tb_handshake_confirm is next */
    TB_HANDSHAKE_HEARD,    /* acceptor without a key: the hello is there; tb_handshake_try_key is next */
    TB_HANDSHAKE_ASKED,    /* acceptor: the hello proves the key; tb_handshake_answer is next */
    TB_HANDSHAKE_CONFIRMED, /* acceptor: it is no replay; tb_handshake_admit is next */
    TB_HANDSHAKE_DONE,      /* frames may follow; or the question was answered */
    TB_HANDSHAKE_REFUSED,   /* connector: the right process has said no; `welcome.status` says why */
    TB_HANDSHAKE_FAILED     /* `error` says why; the connection is to be closed, after the output if there is some */
};

struct tb_handshake {
    const struct tb_key *key;
    enum tb_handshake_verdict verdict; /* of the last call */
    int error;                         /* of TB_HANDSHAKE_FAILED: TB_ERR_FORBIDDEN (no proof), TB_ERR_PROTOCOL (another
                                        * version, or nonsense after the proof), TB_ERR_PEER (the owner has refused), or
                                        * what a call returned. The first two have a story */
    uint8_t state;
    uint8_t have;          /* bytes of `in` */
    uint8_t out_length;    /* bytes of `out` that are to be sent */
    struct tb_hello hello; /* in the order of this machine, once sent or verified */
    struct tb_welcome welcome;
    uint8_t in[sizeof(struct tb_hello)], out[sizeof(struct tb_hello)];
};

/* Makes the hello. `stream` is the whole field of struct tb_hello, `features` what is offered. TB_OK, or an error with
 * its story (libcrypto). */
int tb_handshake_connect(struct tb_handshake *h, const struct tb_key *key, struct tb_proc source,
                         struct tb_proc destination, uint32_t stream, uint32_t features);
/* `key` is NULL if the owner has several: then he tries them when the hello is there. */
void tb_handshake_accept(struct tb_handshake *h, const struct tb_key *key);

/* How many bytes it wants now, and not one more; 0: it waits for its owner, or is at its end. */
size_t tb_handshake_wants(const struct tb_handshake *h);
/* `length` is at most what it wants. A hello of another version that proves the key is answered by itself (the answer
 * is in the output) and fails with TB_ERR_PROTOCOL. */
enum tb_handshake_verdict tb_handshake_feed(struct tb_handshake *h, const void *bytes, size_t length);

/* The owner's decisions, each only after its verdict. They return TB_OK, or an error with its story. */
int tb_handshake_confirm(struct tb_handshake *h);
/* Still TB_HANDSHAKE_HEARD: the hello does not prove this key, and another may be tried. */
enum tb_handshake_verdict tb_handshake_try_key(struct tb_handshake *h, const struct tb_key *key);
/* With a `status` other than TB_WELCOME_OK this was all, and the verdict is TB_HANDSHAKE_FAILED; with `last` (a
 * question that the welcome answers) likewise, but TB_HANDSHAKE_DONE. `features` must be a part of those that the hello
 * offers. */
int tb_handshake_answer(struct tb_handshake *h, enum tb_welcome_status status, uint32_t features, bool last);
void tb_handshake_admit(struct tb_handshake *h);

/* What is to be sent; at most sizeof(struct tb_hello) bytes, which a new connection always has room for. Given once,
 * and stays where it is until the next call. */
const void *tb_handshake_output(struct tb_handshake *h, size_t *length);

#endif
