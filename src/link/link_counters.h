/* What a decorator of link has done. */
#ifndef TB_LINK_LINK_COUNTERS_H
#define TB_LINK_LINK_COUNTERS_H

#include "base/base.h"

struct tb_link_counters {
    uint64_t sent, received; /* frames of the owner, each counted once */
    uint64_t repeated;       /* frames sent again */
    uint64_t acknowledged;   /* acknowledgements that had to travel by themselves */
    uint64_t dropped;        /* frames that had arrived before, or for which there was no room */
    uint64_t corrupted;      /* frames whose check was wrong */
    uint64_t reordered;      /* frames that had to wait for an earlier one */
};

#endif
