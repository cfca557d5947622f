#include "agent/group_probe.h"

#define MS      1000000u
#define WINDOW  (100u * (uint64_t)MS)
#define TURN_NS 250000u /* between the first datagrams of two probers, so that not all meet in front of one port */
#define ROUNDS  7u

/* From one round to the next, so that one who was late makes them all. The last three are for networks that lose a
 * third of what they carry: 2 of 10,000 hosts do not hear another one there. */
static const uint64_t gaps[ROUNDS] = {
    0, 2 * (uint64_t)MS, 8 * (uint64_t)MS, 30 * (uint64_t)MS, 15 * (uint64_t)MS, 15 * (uint64_t)MS, 15 * (uint64_t)MS};

void tb_group_probe_open(struct tb_group_probe *probe, const struct tb_address_book *book, uint32_t place,
                         uint32_t host)
{
    *probe = (struct tb_group_probe){.test = 0};
    tb_multicast_probers_find(&probe->probers, book, place);
    probe->self = tb_multicast_probers_index(&probe->probers, host);
    probe->all = tb_multicast_probers_all(&probe->probers);
    if (probe->self < TB_MULTICAST_PROBERS)
        probe->all &= ~(UINT64_C(1) << probe->self);
}

void tb_group_probe_begin(struct tb_group_probe *probe, uint32_t test, uint64_t now)
{
    probe->test = test;
    probe->began = now;
    probe->rounds = probe->self < TB_MULTICAST_PROBERS ? 0 : ROUNDS;
    probe->sent = now + probe->self * (uint64_t)TURN_NS;
    probe->heard = probe->longest = probe->confirmed = 0;
    probe->over = probe->whole = probe->told = false;
}

static bool hears_all(const struct tb_group_probe *probe)
{
    return probe->heard == probe->all && probe->longest == probe->all;
}

/* All have heard this host, and that it has heard them: nobody needs anything more of it. Of hosts that only listen
 * that is never known. */
static bool is_confirmed(const struct tb_group_probe *probe)
{
    return probe->told && probe->confirmed == probe->all && probe->probers.member_count == probe->probers.count;
}

static uint64_t round_due(const struct tb_group_probe *probe)
{
    if (probe->test == 0 || probe->rounds == ROUNDS || is_confirmed(probe))
        return TB_NEVER;
    return probe->sent + gaps[probe->rounds];
}

static uint64_t end_due(const struct tb_group_probe *probe)
{
    return probe->test == 0 || probe->over || probe->whole ? TB_NEVER : probe->began + WINDOW;
}

uint64_t tb_group_probe_due(const struct tb_group_probe *probe)
{
    uint64_t round = round_due(probe), end = end_due(probe);
    return round < end ? round : end;
}

unsigned tb_group_probe_act(struct tb_group_probe *probe, uint64_t now)
{
    unsigned act = 0;
    if (round_due(probe) <= now) {
        probe->rounds++;
        probe->sent = now;
        probe->told = hears_all(probe);
        act |= TB_GROUP_PROBE_SEND;
    }
    if (end_due(probe) <= now) {
        probe->over = true;
        act |= TB_GROUP_PROBE_REPORT;
    }
    return act;
}

unsigned tb_group_probe_hear(struct tb_group_probe *probe, uint32_t host, uint32_t test, bool is_long, uint64_t heard,
                             uint64_t longest)
{
    uint32_t prober = tb_multicast_probers_index(&probe->probers, host);
    if (test != probe->test || test == 0 || prober >= TB_MULTICAST_PROBERS || prober == probe->self)
        return 0;
    uint64_t bit = UINT64_C(1) << prober;
    probe->heard |= bit;
    if (is_long)
        probe->longest |= bit;
    if (probe->self < TB_MULTICAST_PROBERS && (heard & longest) >> probe->self & 1)
        probe->confirmed |= bit;
    if (probe->whole || !hears_all(probe))
        return 0;
    probe->whole = true;
    return TB_GROUP_PROBE_REPORT;
}
