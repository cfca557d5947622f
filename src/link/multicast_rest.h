/* Rests: what members are sent of a message by control messages, because datagrams do not bring it: whatever a control
 * ASK wishes for, or what a root has repeated in vain. Slow, but always right. One that is wished for before the root
 * has begun waits for that, if the member says that it is deaf; any other is told how far the root is, and that it is
 * over if it is: that ends a wait for what cannot come, should somebody have said that all have it. Places are bounded:
 * for whom there is none is told when the message has begun and there is one, and asks anew. */
#ifndef TB_LINK_MULTICAST_REST_H
#define TB_LINK_MULTICAST_REST_H

#include "link/multicast_source.h"

/* A control ASK. */
void tb_multicast_rest_ask(struct tb_multicast *m, uint32_t from, const struct tb_multicast_name *name, uint8_t flags,
                           const struct tb_multicast_wish *wish);
/* One fragment goes to a process. False: there is no memory for that. */
bool tb_multicast_rest_add(struct tb_multicast *m, uint32_t process, const struct tb_multicast_source *s,
                           uint32_t fragment);
void tb_multicast_rest_advance(struct tb_multicast *m);
/* Somebody waits for what is not begun here, or not sent yet. */
bool tb_multicast_rest_waits(const struct tb_multicast *m);
/* Of a context all before this number; of a process everything. */
void tb_multicast_rest_pass(struct tb_multicast *m, uint64_t context, uint64_t number);
void tb_multicast_rest_lose(struct tb_multicast *m, uint32_t process);
void tb_multicast_rest_close(struct tb_multicast *m);

#endif
