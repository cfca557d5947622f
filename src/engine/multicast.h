/* The driver of composite steps by multicast: one member sends, all others hear it at once. What a member misses it
 * gets by repair, in the worst case over a connection, so a step ends in any case, or with an error that names a
 * process that is gone. Which datagrams belong to which step follows from the number of the collective, the place and
 * the item, which are the same on all members (docs/architecture.md, section 6).
 *
 * Of a channel: the ranks of it that are in this process's cluster, whose group they have in common. */
#ifndef TB_ENGINE_MULTICAST_H
#define TB_ENGINE_MULTICAST_H

#include "engine/driver.h"

extern const struct tb_driver_table tb_driver_multicast;

#endif
