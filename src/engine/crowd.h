/* Whether others want the core on which a thread waits: learnt from how long yields take, and never from counting ranks
 * and cores, since a crowded machine has idle moments and an idle one has guests.
 *
 * Where it is so, a waiting thread offers the core after each look in vain, since whoever it waits for may be the one
 * who wants it; where it is not so, looking longer is quicker. Part of the engine, touched with it locked. */
#ifndef TB_ENGINE_CROWD_H
#define TB_ENGINE_CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct tb_crowd {
    bool here;      /* others want the core */
    uint8_t sure;   /* how surely, 0 to TB_CROWD_FULL: at the top one believes it, at 0 no longer */
    uint32_t quick; /* ns: what a yield takes that nobody accepts */
    uint64_t took;  /* ns: what the last one took */
};

#define TB_CROWD_FULL 16

void tb_crowd_init(struct tb_crowd *c);

/* A yield took so many ns. Returns whether somebody else has run meanwhile. */
bool tb_crowd_learn(struct tb_crowd *c, uint64_t took);

#endif
