#include "engine/multicast_health.h"

#define SECOND        UINT64_C(1000000000)
#define TOLD_APART    (2 * SECOND)
#define MESSAGES      4u    /* of a sample: a few may be bad because this process had not listened before */
#define FRAGMENTS     4096u /* or so many, of long messages */
#define FOREIGN_BEARS 100u  /* datagrams of other jobs in a second */
#define INTERVAL      (SECOND / 10)
#define FLOOD_LEAST   1000u /* datagrams of an interval, of which less than this share is of use */
#define FLOOD_SHARE   8u

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

bool tb_multicast_health_drowns(struct tb_multicast_health *h, const struct tb_multicast_flow *flow, uint64_t now)
{
    if (now - h->interval < INTERVAL)
        return h->drowns;
    uint64_t right = flow->right - h->flow.right, repeated = flow->repeated - h->flow.repeated;
    uint64_t all = right + flow->strange - h->flow.strange, fresh = right > repeated ? right - repeated : 0;
    bool many = all > FLOOD_LEAST, waits = h->deaf_until != 0, strangers = many && right < all / FLOOD_SHARE;
    h->flow = *flow;
    h->interval = now;
    if (waits && now >= h->deaf_until)
        h->deaf_until = 0;
    else if (!waits && !strangers && many && fresh < all / FLOOD_SHARE)
        h->deaf_until = now + SECOND;
    h->drowns = strangers || h->deaf_until != 0;
    return h->drowns;
}
