/* Steps of the local search: small changes of trees at random places, mostly where the time goes; and of their shares,
 * their number, and the length of pieces. */
#ifndef TB_SEARCH_OWN_MOVES_H
#define TB_SEARCH_OWN_MOVES_H

#include "search/problem.h"
#include "search/search_tree.h"

#define TB_OWN_PIECE  1024u /* bytes of a piece at least, */
#define TB_OWN_PIECES 2048u /* and pieces at most */

struct tb_own_moves {
    const struct tb_problem *problem;
    bool cuts; /* messages, too, and deals them out to several trees; false at first */
    struct tb_random random;
    uint32_t *members, *first; /* nodes by cluster, see quick.h */
    uint32_t *critical;        /* nodes whose transfers the end of the whole depends on */
    uint32_t critical_count;
    uint64_t *times; /* when each node has the message */
    uint32_t *list;
};

int tb_own_moves_open(struct tb_own_moves *moves, const struct tb_problem *problem, uint64_t seed);
void tb_own_moves_close(struct tb_own_moves *moves);
/* Finds out where the time of a tree goes, as if no link were shared. */
void tb_own_moves_look(struct tb_own_moves *moves, const struct tb_search_tree *tree);
/* Changes one of the trees, or what they have. False: nothing was changed, or it cannot be. */
bool tb_own_moves_change(struct tb_own_moves *moves, struct tb_search_forest *forest);

#endif
