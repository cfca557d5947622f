/* Trees that are packed into wires: several of them, each with a share of the message, so that all wires together are
 * busy for as short as possible. What is known of a wire is how long a piece keeps it busy; trees do not wait for each
 * other, but what they do to a wire adds up. So a message in pieces takes about as long as the busiest wire, and as the
 * first piece needs to come there and the last one from there on. That is an estimate, within a few parts of a hundred
 * of what a simulation says, and takes far less time.
 *
 * The message is dealt out in equal parts. Each gets a tree that grows where the wires, with what they carry for the
 * others, are soonest done; and again, until every part has seen all others. Those that pass between the same clusters
 * become one tree. With them compete trees in which the root's cluster tells all others, or one that tells the rest.
 * Shares then move from one to another as long as that helps. Deterministic; one thread at a time. */
#ifndef TB_SEARCH_PACKING_H
#define TB_SEARCH_PACKING_H

#include "search/problem.h"
#include "search/search_tree.h"

#define TB_PACKING_NODES 128u /* at most */

struct tb_packing;

/* Of a problem that knows its wires, for pieces of so many bytes; at most so many trees. On a wire that trees share
 * they take turns, or, if not, those go first whose pieces have further to go: many short pieces behave in the one way,
 * few long ones rather in the other. Close it also after an error. */
int tb_packing_open(struct tb_packing **packing, const struct tb_problem *problem, uint64_t piece, bool turns,
                    uint32_t trees);
void tb_packing_close(struct tb_packing *packing); /* NULL: nothing */
/* How many trees there are, and about how long they take. */
uint32_t tb_packing_trees(const struct tb_packing *packing);
uint64_t tb_packing_time(const struct tb_packing *packing);
/* One tree less; there are several. */
void tb_packing_reduce(struct tb_packing *packing);
/* They become those of a forest with room for them, and its pieces. */
void tb_packing_give(const struct tb_packing *packing, struct tb_search_forest *forest);

#endif
