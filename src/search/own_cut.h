/* Where messages may be cut: pieces, and several trees, each with its share. */
#ifndef TB_SEARCH_OWN_CUT_H
#define TB_SEARCH_OWN_CUT_H

#include "search/own_walk.h"

/* Rates lengths of pieces on the best tree so far, on lines and binary trees, which suit many pieces better, and on
 * trees that are packed into the wires, where these are known. The best of all is where the search goes on. */
int tb_own_cut(struct tb_own_walk *walk);
/* Of so many nodes that nothing else is tried: lengths of pieces on the best tree so far, the fewer pieces the more
 * nodes there are. */
int tb_own_cut_large(struct tb_own_walk *walk);

#endif
