/* TLS over a socket that does not block, for control streams that are connections of our own. It begins where hello
 * ends, as tls.h does. Belongs to whoever has opened it, who also waits for the socket (there is no loop here): when
 * something is there to read it calls receive, then read until that says TB_AGAIN; what it writes is gathered and
 * leaves with flush. One thread. */
#ifndef TB_LINK_TLS_SOCKET_H
#define TB_LINK_TLS_SOCKET_H

#include "link/tls.h"

struct tb_tls_socket;

/* `connector`: we have opened the connection, and say the first words of TLS with the next flush. Takes the socket,
 * unless there is an error: TB_ERR_UNSUPPORTED with a story where libssl cannot be used. */
int tb_tls_socket_open(struct tb_tls_socket **socket, int descriptor, const struct tb_key *secret, bool connector);
/* Tells the other side that nothing more comes, if that is possible at once, and closes the socket. NULL is fine. */
void tb_tls_socket_close(struct tb_tls_socket *socket);

/* What the socket has now, once. TB_OK; TB_AGAIN: nothing; TB_ERR_CLOSED. */
int tb_tls_socket_receive(struct tb_tls_socket *socket);
/* Goes on with the handshake, and gives at least 1 byte of what was received. TB_AGAIN: all of it is used;
 * TB_ERR_CLOSED: the other side has ended in good order; TB_ERR_FORBIDDEN, TB_ERR_PROTOCOL: as tb_tls_handshake and
 * tb_tls_read have them. After an error only closing is left. */
int tb_tls_socket_read(struct tb_tls_socket *socket, void *bytes, size_t room, size_t *got);
/* When it is ready. All of it, or an error; TB_ERR_LIMIT: too much waits already. */
int tb_tls_socket_write(struct tb_tls_socket *socket, const void *bytes, size_t length);
/* TB_OK: everything has left; TB_AGAIN: the socket is full; TB_ERR_CLOSED. */
int tb_tls_socket_flush(struct tb_tls_socket *socket);

int tb_tls_socket_descriptor(const struct tb_tls_socket *socket);
bool tb_tls_socket_is_ready(const struct tb_tls_socket *socket); /* the handshake is over */
bool tb_tls_socket_has_room(const struct tb_tls_socket *socket); /* so little waits that more may be written */

#endif
