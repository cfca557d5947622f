/* Output: datagrams and control messages, handed to the owner of an object. */
#ifndef TB_LINK_MULTICAST_OUTPUT_H
#define TB_LINK_MULTICAST_OUTPUT_H

#include "link/multicast_state.h"

/* Offers datagrams. How many were taken; if not all, the object is full until the owner says that it is writable. */
uint32_t tb_multicast_output(struct tb_multicast *m, struct tb_multicast_out *out, uint32_t count);

/* The writer of the next control message, empty. */
struct tb_writer *tb_multicast_control_begin(struct tb_multicast *m);
/* Sends what was written, and bytes behind it. False: it has to be tried again. */
bool tb_multicast_control_end(struct tb_multicast *m, uint32_t process, enum tb_multicast_control kind,
                              const void *bytes, size_t length);

#endif
