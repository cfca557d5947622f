/* TLS 1.3 on one stream, for those between two gateways. It begins where hello ends: both sides have proved the job
 * key, and the key of this stream comes from tb_stream_secret. There are no certificates: the secret is TLS's external
 * pre-shared key, and ephemeral keys are mixed in, so that what was recorded stays closed to those who learn the job
 * key later.
 *
 * No socket here: the owner feeds what has arrived and is given what is to be sent. One thread at a time; libssl is
 * loaded by the first tb_tls_open of the process. */
#ifndef TB_LINK_TLS_H
#define TB_LINK_TLS_H

#include "wire/wire.h"

struct tb_tls;

/* Takes encrypted bytes for the other side, all of them; an error breaks the stream. */
typedef int tb_tls_put(void *context, const void *bytes, size_t length);

/* `connector`: this side has opened the connection. TB_ERR_UNSUPPORTED with a story where libssl cannot be used. */
int tb_tls_open(struct tb_tls **tls, const struct tb_key *secret, bool connector, tb_tls_put *put, void *context);
void tb_tls_close(struct tb_tls *tls); /* puts nothing. NULL is fine */
int tb_tls_is_usable(void);            /* TB_OK, or as tb_tls_open; loads libssl */

/* Bytes that have arrived. They are used by the next handshake or reads, and must stay until one of these has answered
 * TB_AGAIN or with an error; only then may more be fed: else the stream is broken. */
void tb_tls_feed(struct tb_tls *tls, const void *bytes, size_t length);

/* Begins or goes on; the connector's first call needs no bytes. TB_AGAIN: the other side must say more.
 * TB_ERR_FORBIDDEN: it has another key; TB_ERR_PROTOCOL: it speaks something else. TB_OK: done, and reads may find
 * bytes already. After an error only closing is left; whatever else is called then answers TB_ERR_PROTOCOL. */
int tb_tls_handshake(struct tb_tls *tls);

/* After the handshake, as all that follow. Encrypts and puts everything. */
int tb_tls_write(struct tb_tls *tls, const void *bytes, size_t length);
/* Gives at least 1 byte. TB_AGAIN: everything that was fed is used up; TB_ERR_CLOSED: the other side has ended in good
 * order; TB_ERR_PROTOCOL: bytes were changed on the way. */
int tb_tls_read(struct tb_tls *tls, void *bytes, size_t room, size_t *got);
int tb_tls_end(struct tb_tls *tls); /* tells the other side that nothing more comes */

const char *tb_tls_cipher(const struct tb_tls *tls); /* its name */

#endif
