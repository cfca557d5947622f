/* Rank parcels: packets to one rank of this host that wait until they can be sent, behind its welcome. Part of the rank
 * port, whose struct they stand in; its one thread. */
#ifndef TB_AGENT_RANK_PARCELS_H
#define TB_AGENT_RANK_PARCELS_H

#include "agent/rank_port.h"

/* A packet that is sent when its fields are written: by the next flush. Takes the descriptor, which may be -1. NULL: it
 * cannot be sent, and the descriptor stays the caller's. */
struct tb_writer *tb_rank_parcels_add(struct tb_port_rank *rank, enum tb_control kind, int descriptor);
/* One of a kind of which only the newest counts: it takes the place of the one that still waits. */
struct tb_writer *tb_rank_parcels_renew(struct tb_port_rank *rank, enum tb_control kind, int descriptor);
void tb_rank_parcels_flush(struct tb_port_rank *rank);
void tb_rank_parcels_welcome(struct tb_port_rank *rank); /* what does not fit now follows with the next flush */
void tb_rank_parcels_drop(struct tb_port_rank *rank);    /* nobody will come any more for what waits */

#endif
