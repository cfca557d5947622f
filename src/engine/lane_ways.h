/* What all lanes (laned.h) have in common of the way to one process, with an end of it for each. What transports call
 * up goes to the trays of lanes from here, with the transports locked; and from there to the lane's engine. */
#ifndef TB_ENGINE_LANE_WAYS_H
#define TB_ENGINE_LANE_WAYS_H

#include "engine/laned.h"

struct tb_way_shared;

struct tb_way_end {
    struct tb_endpoint head; /* what the lane's engine sees */
    struct tb_way_shared *way;
    bool known;         /* it sees it */
    const void *placed; /* where a frame of it is being read to, or was, until it has come; NULL: nowhere */
};

struct tb_way_shared {
    struct tb_list in_ends;
    struct tb_endpoint *real;
    uint32_t hub;
    int broken; /* TB_OK: it is not */
    char *story;
    uint64_t allowed, credit; /* as those of a peer (peer.h), but for what the lanes have taken */
    _Atomic uint32_t items;   /* in trays; any thread */
    _Atomic bool claimed;     /* a lane tells the owner that it is broken; any thread */
    struct tb_way_end ends[TB_LANES_LIMIT];
};

/* The rest with the transports locked. NULL: no memory. */
struct tb_way_shared *tb_way_make(struct tb_lanes *lanes, struct tb_endpoint *real);
/* Nothing passes any more: all lanes are told but for one, which knows it; TB_LANES_LIMIT: none does. The story is the
 * thread's last one. */
void tb_way_break(struct tb_lanes *lanes, struct tb_way_shared *way, int error, uint32_t knows);
/* The same, of one that was broken before a lane has heard of it. */
void tb_way_tell(struct tb_lanes *lanes, struct tb_way_shared *way, uint32_t lane);
void tb_way_free(struct tb_way_shared *way);

#endif
