/* Which clusters of a job have a multicast group, by which address each host takes part, and which group it is: choices
 * without input or output. A group is drawn at random, so that jobs on one network seldom meet. Belongs to struct
 * tb_group_tests; its one thread. */
#ifndef TB_LAUNCH_GROUP_CHOICE_H
#define TB_LAUNCH_GROUP_CHOICE_H

#include "launch/grid_plan.h"

#define TB_GROUP_WHY_BYTES 400u

/* A cluster with enough hosts that carry ranks: those that stand in the same place of the address book and in no
 * smaller one. Without a grid file and without places that is the world, with all hosts. */
struct tb_group_choice {
    uint32_t place;
    uint32_t count;               /* of its hosts */
    const uint32_t *hosts;        /* of the address book, ascending */
    uint8_t family;               /* 4 or 6; 0: there can be no group, */
    char why[TB_GROUP_WHY_BYTES]; /* for this reason */
};

struct tb_group_choices {
    uint32_t count;
    struct tb_group_choice *all;
    uint32_t *hosts;    /* of all of them */
    uint8_t *addresses; /* by host of the address book: which of its addresses it takes part by */
};

/* `plan` may be NULL: no grid. Nothing is chosen where the parameters forbid it. */
int tb_group_choices_make(struct tb_group_choices *choices, const struct tb_address_book *book,
                          const struct tb_grid_plan *plan);
void tb_group_choices_close(struct tb_group_choices *choices); /* harmless on one that is all zero */

/* A group for a cluster, with a port. `local`: the address by which one of its hosts takes part. */
void tb_group_choice_draw(struct tb_random *random, const struct tb_address *local, struct tb_address *group);

#endif
