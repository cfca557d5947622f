#include "engine/multicast_health.h"

#define SECOND        UINT64_C(1000000000)
#define TOLD_APART    (2 * SECOND)
#define MESSAGES      4u    /* of a sample: a few may be bad because this process had not listened before */
#define FRAGMENTS     4096u /* or so many, of long messages */
#define FOREIGN_BEARS 100u  /* datagrams of other jobs in a second */

void tb_multicast_health_renew(struct tb_multicast_health *h, const struct tb_multicast_seen *seen, uint64_t now)
{
    h->sample = *seen;
    h->second = now;
    h->foreign = seen->foreign;
}

static bool meets_others(struct tb_multicast_health *h, const struct tb_multicast_seen *seen, uint64_t now)
{
    if (now - h->second < SECOND)
        return false;
    bool many = seen->foreign - h->foreign > FOREIGN_BEARS * ((now - h->second) / SECOND);
    h->second = now;
    h->foreign = seen->foreign;
    return many;
}

static bool is_unheard(struct tb_multicast_health *h, const struct tb_multicast_seen *seen)
{
    uint64_t used = seen->used - h->sample.used, rested = seen->rested - h->sample.rested;
    if (seen->messages - h->sample.messages < MESSAGES && used + rested < FRAGMENTS)
        return false;
    h->sample = *seen;
    return rested > used;
}

enum tb_engine_trouble tb_multicast_health_look(struct tb_multicast_health *h, const struct tb_multicast_seen *seen,
                                                uint64_t now)
{
    bool others = meets_others(h, seen, now), unheard = is_unheard(h, seen);
    if ((!others && !unheard) || (h->told != 0 && now - h->told < TOLD_APART))
        return TB_TROUBLE_NONE;
    h->told = now;
    return others ? TB_TROUBLE_OTHERS : TB_TROUBLE_UNHEARD;
}
