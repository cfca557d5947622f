/* Seldom: a line that somebody else can cause as often as they like is written once a minute at most; the next one says
 * how many were left out. Belongs to whoever writes the line; one thread, or under its lock. */
#ifndef TB_MPI_SELDOM_H
#define TB_MPI_SELDOM_H

#include <stdbool.h>
#include <stdint.h>

#define TB_SELDOM_NS UINT64_C(60000000000)

struct tb_seldom {
    uint64_t again;  /* from then on; 0: it was never written */
    uint32_t unsaid; /* since it was written */
};

/* Whether it may be written now; `left_out` lines were not. */
static inline bool tb_seldom_may(struct tb_seldom *seldom, uint64_t now, uint32_t *left_out)
{
    *left_out = seldom->unsaid;
    if (now < seldom->again) {
        seldom->unsaid++;
        return false;
    }
    *seldom = (struct tb_seldom){.again = now + TB_SELDOM_NS};
    return true;
}

#endif
