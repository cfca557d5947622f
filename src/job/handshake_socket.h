/* A handshake (wire.h) over a socket. */
#ifndef TB_JOB_HANDSHAKE_SOCKET_H
#define TB_JOB_HANDSHAKE_SOCKET_H

#include "wire/wire.h"

/* Receiving waits only where the socket does, and takes not a byte that follows.
 * TB_OK: the next verdict is there; TB_AGAIN; TB_ERR_CLOSED: the other side has ended; TB_ERR_SYSTEM: errno says why.
 * No story. */
int tb_handshake_socket_receive(struct tb_handshake *h, int socket);
/* Sends the output, if there is some. TB_OK, or TB_ERR_CLOSED: a new connection always has room for it. */
int tb_handshake_socket_send(struct tb_handshake *h, int socket);
/* To one whose hello has proved a secret: welcome, unless it repeats what was heard before. */
int tb_handshake_socket_welcome(struct tb_handshake *h, struct tb_nonces *nonces, int socket);

#endif
