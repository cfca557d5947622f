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

/* Datagrams that came: right ones; others, of strangers; right ones that brought nothing new, as those do that somebody
 * repeats. */
struct tb_multicast_flow {
    uint64_t right, strange, repeated;
};

/* All zero at first. */
struct tb_multicast_health {
    struct tb_multicast_seen sample; /* when the sample began */
    uint64_t second, foreign;        /* when this second began, and datagrams of other jobs until then */
    uint64_t told;                   /* when trouble was last told; 0: never */
    struct tb_multicast_flow flow;   /* until this interval began, */
    uint64_t interval;               /* at this time */
    bool drowns;                     /* in the last whole interval; */
    uint64_t deaf_until;             /* repeated ones are not listened to until then; 0: they are */
};

enum tb_engine_trouble tb_multicast_health_look(struct tb_multicast_health *h, const struct tb_multicast_seen *seen,
                                                uint64_t now);
/* Whether so many datagrams come that are nothing to this process, a thousand in a tenth of a second and all but an
 * eighth of them, that it had better do without: what is right drowns among them. With those of strangers that holds as
 * long as they come. Repeated ones cannot be told from those that others need, or that have come otherwise just because
 * this process does without: it listens again after a second, and looks anew. */
bool tb_multicast_health_drowns(struct tb_multicast_health *h, const struct tb_multicast_flow *flow, uint64_t now);
/* What was before does not count, as after a test. */
void tb_multicast_health_renew(struct tb_multicast_health *h, const struct tb_multicast_seen *seen, uint64_t now);

#endif
