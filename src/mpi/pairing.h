/* Which partitioned send belongs to which receive. Of those between two ranks with one tag, the calls that make them
 * match in the order in which they are made, and both sides count them, so that neither need be told. A table belongs
 * to one communicator; whoever uses it holds the lock of the tables. */
#ifndef TB_MPI_PAIRING_H
#define TB_MPI_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

#define TB_PAIRING_LIMIT (1u << 25) /* numbers begin anew then */

struct tb_pairings;

/* The number of the next one, from 0 on, to or from a rank with a tag. The table is made when it is NULL. False: there
 * is no memory, and nothing was counted. */
bool tb_pairing_next(struct tb_pairings **pairings, uint32_t rank, uint32_t tag, bool receives, uint32_t *number);
void tb_pairings_free(struct tb_pairings *pairings); /* NULL is allowed */

#endif
