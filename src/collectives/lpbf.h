/* LPBF, longest parallel branch first: the broadcast schedule of the MPITH thesis for parts that are joined by unlike
 * links (Vorakosit 2006, algorithms 6 and 7). The tree comes from the edge that completes earliest, again and again
 * (ECEF); then every part serves first the child behind whom most is still to be done. A pure function; any thread. */
#ifndef TB_COLLECTIVES_LPBF_H
#define TB_COLLECTIVES_LPBF_H

#include "base/base.h"

#define TB_LPBF_PARTS 32u

struct tb_lpbf {
    uint32_t count, root;
    uint64_t arrive[TB_LPBF_PARTS][TB_LPBF_PARTS]; /* from one part to another: until it has got everything, */
    uint64_t send[TB_LPBF_PARTS][TB_LPBF_PARTS];   /* and until the sender can go on with the next */
    uint64_t inside[TB_LPBF_PARTS];                /* what a part takes itself from then on */
    /* Finds the times from one part to those of the others that are not yet told, when it is; NULL: all are given. */
    void (*ways)(struct tb_lpbf *l, uint32_t from, const bool *told);
    void *context;

    uint32_t parent[TB_LPBF_PARTS]; /* of the root: itself */
    uint64_t branch[TB_LPBF_PARTS]; /* time from when a part has it until all behind it have */
    uint64_t last;                  /* when the last part has it */
    uint64_t busiest;               /* how long the part sends that sends most */
};

/* Finds parents, branches and what follows; the rest is given. */
void tb_lpbf_find(struct tb_lpbf *l);
/* The children of a part, in the order in which they are served; how many. */
uint32_t tb_lpbf_children(const struct tb_lpbf *l, uint32_t part, uint32_t *children);

#endif
