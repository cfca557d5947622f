/* By levels, and inside a cluster each host multicasts the blocks of its own ranks, in turns: a host sends when it has
 * what the one `argument` turns before it has sent, so that no more wait in front of any port than its queue holds.
 * Each block takes the port of its host once and that of every other host once: (p - 1) m G + h L / k for k at a time
 * on h hosts, half of what it takes to bring all blocks to one host and from there to all. What comes from other
 * clusters is multicast by who stands for this one. Also for blocks of different sizes, which all ranks know. */
#include "collectives/allgather/levels.h"

#define RANKS_MOST  32768u  /* whose bundles have numbers of edges */
#define PARTS_MOST  64u     /* of the widest place: each sends to each other one */
#define WAIT_MOST   131072u /* bytes on their way to a host at a time: less than its sockets hold */
#define SHORT_BYTES 65536u  /* up to so many leave at once, more than that as ports and members take them */
#define LONG_TURNS  4u /* of those at a time: so that one is on the wire while another begins, or waits for reports */

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* How many may send at a time, if nobody says: as many as half of a queue holds, others being on the wire, too. */
static uint32_t senders_of(const struct tb_collective *c)
{
    uint64_t bytes = c->elements * c->element_bytes * c->shape->most, half = tb_param.switch_queue / 2;
    half = half > 0 && half < WAIT_MOST ? half : WAIT_MOST;
    uint64_t many = bytes > SHORT_BYTES ? LONG_TURNS : half / (bytes > 0 ? bytes : 1);
    many = c->argument != 0 ? c->argument : many;
    return many == 0 ? 1 : many < TB_CAST_PLACES ? (uint32_t)many : TB_CAST_PLACES;
}

void tb_allgather_turns(const struct tb_bundles *x, enum tb_symbol room, const struct tb_stage *s)
{
    const uint32_t senders = senders_of(x->levels->call), first = x->builder->program.step_count;
    struct tb_stage turn = *s;
    for (turn.root = 0; turn.root < s->count && x->builder->error == TB_OK; turn.root++) {
        const struct tb_bundle blocks = tb_bundles_of_part(x, &s->parts[turn.root]);
        tb_stage_cast(x->builder, &turn, (uint16_t)turn.root, tb_bundles_slice(x, room, blocks));
        if (turn.root == s->mine && turn.root >= senders)
            tb_builder_after(x->builder, first + turn.root - senders);
    }
}

void tb_allgather_rest(const struct tb_bundles *x, enum tb_symbol room, const struct tb_stage *s)
{
    const struct tb_bundle all = tb_bundles_of_all(x), ours = tb_bundles_of_stage(x, s);
    const uint32_t end = ours.first + ours.count;
    const struct tb_bundle others[] = {{all.first, ours.first - all.first}, {end, all.first + all.count - end}};
    for (uint32_t i = 0; i < 2; i++)
        if (others[i].count > 0)
            tb_stage_cast(x->builder, s, (uint16_t)(s->count + i), tb_bundles_slice(x, room, others[i]));
}

/* ---- where ------------------------------------------------------------------------------------------------------- */

bool tb_allgather_alone(const struct tb_collective *c)
{
    return c->shape->most == 1 && c->shape->cluster_count == 1;
}

/* Each host of a cluster has a place, and so has what comes before and after its blocks. */
static bool has_places(const struct tb_group_shape *s)
{
    uint32_t more = s->cluster_count > 1 ? 2 : 0;
    for (uint32_t i = 0; i < s->place_count; i++)
        if (s->places[i].multicast != 0 && s->places[i].hosts + more > TB_CAST_PLACES)
            return false;
    return true;
}

bool tb_fits_turns(const struct tb_collective *c)
{
    return c->size <= RANKS_MOST && tb_fits_cast(c) && has_places(c->shape) &&
           (tb_allgather_alone(c) || c->elements * c->element_bytes <= TB_BUNDLE_LIMIT / c->size) &&
           (c->shape->cluster_count == 1 || tb_levels_widest(c, NULL, NULL) <= PARTS_MOST);
}

/* Fewer than may be are slower, though predictions do not always show it: hosts need time between their turns. */
uint32_t tb_candidates_turns(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    if (room > 0)
        values[0] = senders_of(c);
    return room > 0 ? 1 : 0;
}
