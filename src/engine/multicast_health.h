/* Whether multicast does what it is for, as one process sees it: most of what it receives should come in datagrams, and
 * few of another job. What is counted is looked at now and then, a sample at a time; trouble is told at most once in
 * two seconds, since whoever is told tests the group, which takes longer. */
#ifndef TB_ENGINE_MULTICAST_HEALTH_H
#define TB_ENGINE_MULTICAST_HEALTH_H

#include "engine/engine.h"

/* As counters of the process have it, from its beginning. */
struct tb_multicast_seen {
    uint64_t messages; /* that were received */
    uint64_t used;     /* fragments that datagrams brought */
    uint64_t rested;   /* fragments that connections brought */
    uint64_t foreign;  /* datagrams of other jobs */
};

/* All zero at first. */
struct tb_multicast_health {
    struct tb_multicast_seen sample; /* when the sample began */
    uint64_t second, foreign;        /* when this second began, and datagrams of other jobs until then */
    uint64_t told;                   /* when trouble was last told; 0: never */
};

enum tb_engine_trouble tb_multicast_health_look(struct tb_multicast_health *h, const struct tb_multicast_seen *seen,
                                                uint64_t now);
/* What was before does not count, as after a test. */
void tb_multicast_health_renew(struct tb_multicast_health *h, const struct tb_multicast_seen *seen, uint64_t now);

#endif
