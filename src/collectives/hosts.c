/* Collectives of two levels: common memory within hosts, messages between them. */
#include "collectives/algorithms.h"

bool tb_fits_hosts(const struct tb_collective *c)
{
    return c->common && !c->inter && (c->skip & 1u << TB_LEVEL_HOST) == 0 && c->shape != NULL &&
           c->shape->host_count > 1 && c->shape->most > 1 && c->shape->most <= TB_HOSTS_RANKS;
}

void tb_hosts_open(struct tb_host_levels *h, const struct tb_collective *c, uint32_t root)
{
    uint32_t mine = tb_group_shape_host(c->shape, c->rank), top = tb_group_shape_host(c->shape, root);
    *h = (struct tb_host_levels){.call = *c, .root = root, .members = c->shape->hosts[mine].rank_count};
    h->call.shape = NULL;
    h->call.size = c->shape->host_count;
    h->call.rank = mine;
    h->call.root = top;
    h->leader = mine == top ? root : c->shape->hosts[mine].first_rank;
}

void tb_hosts_name(struct tb_builder *b, uint32_t first, const struct tb_host_levels *h, const struct tb_collective *c)
{
    for (uint32_t i = first; i < b->program.step_count; i++) {
        struct tb_step *s = &b->program.steps[i];
        if (s->kind == TB_STEP_SEND || s->kind == TB_STEP_RECEIVE)
            s->peer = s->peer == h->call.root ? h->root : c->shape->hosts[s->peer].first_rank;
    }
}

uint32_t tb_hosts_meet(struct tb_builder *b, const struct tb_host_levels *h, const struct tb_collective *c,
                       enum tb_composite what, uint16_t place, struct tb_slice give, struct tb_slice get)
{
    const struct tb_collective here = {.size = h->members};
    bool one = what == TB_COMPOSITE_BCAST || what == TB_COMPOSITE_SCATTER; /* only one is waited for */
    const struct tb_contract contract = {(uint8_t)what, TB_DRIVER_COMMON, one ? 1 : tb_common_rounds(&here),
                                         what == TB_COMPOSITE_BARRIER ? 0
                                         : tb_composite_reduces(what) ? 2
                                                                      : 1};
    uint32_t ranks[TB_HOSTS_RANKS];
    ranks[0] = c->shape->hosts[h->call.rank].first_rank;
    for (uint32_t i = 1; i < h->members; i++)
        ranks[i] = tb_group_shape_next(c->shape, ranks[i - 1]);
    uint32_t step = tb_builder_composite(b, &contract, h->leader, give, get);
    tb_builder_place(b, place);
    tb_builder_members(b, ranks, h->members);
    return step;
}
