#include "launch/tested_group.h"

#include <string.h>

#define HEADERS 100u /* of IPv6, UDP and a datagram of ours */

void tb_tested_group_open(struct tb_tested_group *group, const struct tb_group_choice *choice,
                          struct tb_tested_host *hosts)
{
    *group = (struct tb_tested_group){.choice = choice, .hosts = hosts, .due = TB_NEVER};
    memset(hosts, 0, choice->count * sizeof *hosts);
    tb_multicast_probers_spread(&group->probers, choice->hosts, choice->count);
    group->probing = tb_multicast_probers_all(&group->probers);
    group->living = choice->count;
}

void tb_tested_group_reopen(struct tb_tested_group *group)
{
    for (uint32_t i = 0; i < group->choice->count; i++)
        group->hosts[i].open = false;
    group->open = 0;
    group->piece = tb_param.mcast_piece > 0 ? (uint32_t)tb_param.mcast_piece : UINT32_MAX;
    group->buffer = 0;
    group->shorter = 0;
    group->phase = TB_GROUP_OPENING;
}

void tb_tested_group_retest(struct tb_tested_group *group)
{
    for (uint32_t i = 0; i < group->choice->count; i++) {
        struct tb_tested_host *host = &group->hosts[i];
        host->reported = false;
        host->heard = host->longest = 0;
    }
    group->reported = 0;
    group->phase = TB_GROUP_TESTING;
}

void tb_tested_group_take_open(struct tb_tested_group *group, uint32_t index, const struct tb_multicast_fit *fit)
{
    struct tb_tested_host *host = &group->hosts[index];
    group->open += !host->gone && !host->open;
    host->open = true;
    if (fit->piece < group->piece)
        group->piece = fit->piece;
    if (fit->buffer > 0 && (group->buffer == 0 || fit->buffer < group->buffer))
        group->buffer = fit->buffer;
}

void tb_tested_group_take_heard(struct tb_tested_group *group, uint32_t index, uint64_t heard, uint64_t longest)
{
    struct tb_tested_host *host = &group->hosts[index];
    group->reported += !host->gone && !host->reported;
    host->reported = true;
    host->heard |= heard;
    host->longest |= longest;
}

void tb_tested_group_lose(struct tb_tested_group *group, uint32_t index)
{
    uint32_t prober = tb_multicast_probers_index(&group->probers, group->choice->hosts[index]);
    struct tb_tested_host *host = &group->hosts[index];
    if (host->gone)
        return;
    host->gone = true;
    group->living--;
    group->open -= host->open;
    group->reported -= host->reported;
    if (prober < TB_MULTICAST_PROBERS)
        group->probing &= ~(UINT64_C(1) << prober);
}

uint64_t tb_tested_group_misses(const struct tb_tested_group *group, uint32_t index, bool longest)
{
    const struct tb_tested_host *host = &group->hosts[index];
    uint32_t own = tb_multicast_probers_index(&group->probers, group->choice->hosts[index]);
    uint64_t needed = own < TB_MULTICAST_PROBERS ? group->probing & ~(UINT64_C(1) << own) : group->probing;
    return host->gone ? 0 : needed & ~(longest ? host->longest : host->heard);
}

static bool hear(const struct tb_tested_group *group, bool longest)
{
    uint64_t missed = 0;
    for (uint32_t i = 0; i < group->choice->count && missed == 0; i++)
        missed = tb_tested_group_misses(group, i, longest);
    return missed == 0;
}

bool tb_tested_group_hears_all(const struct tb_tested_group *group)
{
    return hear(group, false);
}

bool tb_tested_group_hears_longest(const struct tb_tested_group *group)
{
    return hear(group, true);
}

uint32_t tb_tested_group_shorter(const struct tb_tested_group *group)
{
    static const uint32_t usual[] = {1500 - HEADERS, 1280 - HEADERS, 576 - HEADERS};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (usual[i] < group->piece)
            return usual[i];
    return 0;
}
