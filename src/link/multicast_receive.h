/* Receiving: fragments come by datagrams, or by control messages, or have waited, and go to where they belong in the
 * message, each once. */
#ifndef TB_LINK_MULTICAST_RECEIVE_H
#define TB_LINK_MULTICAST_RECEIVE_H

#include "link/multicast_state.h"

/* TB_OK: it is all here; or TB_PENDING. */
int tb_multicast_receive_start(struct tb_multicast *m, struct tb_multicast_operation *o);
/* A fragment. True: it is new, and where it comes from is where the root is. */
bool tb_multicast_receive_data(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                               size_t length);
/* What a root says of a message that it has not begun. True: it is new. */
bool tb_multicast_receive_status(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                                 size_t length);
bool tb_multicast_receive_poll(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                               size_t length);
/* Control messages of the root. */
void tb_multicast_receive_rest(struct tb_multicast *m, uint32_t from, const struct tb_multicast_rest_head *rest,
                               const void *data, size_t length);
/* One that comes along the tree, `from` a process, for a receive that may not have been begun. */
void tb_multicast_receive_control(struct tb_multicast *m, uint32_t from, enum tb_multicast_control kind,
                                  const void *bytes, size_t length);
/* Datagrams are not to be relied on from now on. */
void tb_multicast_receive_deafen(struct tb_multicast *m, struct tb_multicast_operation *o);
void tb_multicast_receive_advance(struct tb_multicast *m, struct tb_multicast_operation *o);
/* Where a fragment of it belongs; NULL: that is no single place. */
void *tb_multicast_receive_place(const struct tb_multicast_operation *o, uint32_t fragment, uint16_t piece);

#endif
