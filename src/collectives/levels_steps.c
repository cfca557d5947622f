#include "collectives/levels_fit.h"
#include "collectives/lpbf.h"

#include <stdlib.h>

#define BESIDE_WINDOW 2u  /* messages in flight of each of several shares, so that they leave in turn */
#define FIT_LPBF      16u /* parts of a stage that LPBF is compared for, where others are fitted */

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static void place_note(void *context, const struct tb_level_part *part)
{
    bool *places = context;
    *places = *places || part->kind == TB_PART_PLACE;
}

bool tb_fits_level_tree(const struct tb_collective *c, enum tb_level_tree wide)
{
    bool places = false;
    if (wide == TB_LEVEL_FLAT)
        return true;
    if (!tb_fits_levels(c))
        return false;
    if (wide == TB_LEVEL_FITTED)
        return true;
    uint32_t parts = tb_levels_widest(c, place_note, &places);
    return places && (wide != TB_LEVEL_PACKED || parts <= TB_LEVEL_SHARES) &&
           (wide != TB_LEVEL_LPBF || parts <= tb_lpbf_most(c));
}

bool tb_fits_level_parts(const struct tb_collective *c, uint32_t most)
{
    uint32_t parts = tb_fits_levels(c) ? tb_levels_widest(c, NULL, NULL) : 0;
    return parts > 0 && parts <= most;
}

#define LARGE_RANKS 256u /* of more, each takes so long to rate that fewer are tried */
#define COUNTS_MOST 8u

/* Into how many pieces a message may be cut, at most `room` of them; and how long these are. */
static uint32_t piece_counts(const struct tb_collective *c, uint32_t *counts, uint64_t *pieces, uint32_t room)
{
    static const uint32_t tried[] = {1, 8, 16, 32, 128};
    bool large = c->size > LARGE_RANKS;
    uint64_t bytes = c->elements * c->element_bytes, all[16];
    uint32_t made = 0, count = tb_candidates_piece(c, all, 16);
    uint64_t least = count > 0 ? all[count - 1] : 0;
    for (uint32_t i = 0; i < sizeof tried / sizeof tried[0] && made < room; i++) {
        uint64_t piece = (bytes + tried[i] - 1) / tried[i];
        if (i > 0 && (piece < least || bytes < tried[i] || (large && i % 2 == 0)))
            continue;
        counts[made] = tried[i];
        pieces[made++] = piece;
    }
    return made;
}

uint32_t tb_candidates_levels(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    uint32_t counts[COUNTS_MOST];
    return piece_counts(c, counts, values, room < COUNTS_MOST ? room : COUNTS_MOST);
}

uint32_t tb_candidates_fitted(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    uint32_t counts[COUNTS_MOST], made = piece_counts(c, counts, values, room < COUNTS_MOST ? room : COUNTS_MOST);
    for (uint32_t i = 0; i < made; i++)
        values[i] = tb_argument_counted(values[i], counts[i]);
    return made;
}

/* By how much pieces of wide stages and of narrow ones differ where that is tried. */
#define UNLIKE_TIMES 4u
#define UNLIKE_LEAST 4u /* messages of the longer ones */

uint32_t tb_candidates_pipelines(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    uint64_t alike[16], bytes = c->elements * c->element_bytes;
    uint32_t made = 0, count = tb_candidates_levels(c, alike, 16);
    bool wide = c->shape->cluster_count > 1 && c->size <= LARGE_RANKS;
    for (uint32_t i = 0; i < count && made < room; i++) {
        values[made++] = alike[i];
        bool many = wide && alike[i] * UNLIKE_LEAST * UNLIKE_TIMES <= bytes;
        if (many && made < room)
            values[made++] = tb_argument_of(alike[i], UNLIKE_TIMES * alike[i]);
        if (many && made < room)
            values[made++] = tb_argument_of(UNLIKE_TIMES * alike[i], alike[i]);
    }
    return made;
}

bool tb_levels_common(const struct tb_levels *l)
{
    return l->host && l->call->common && l->stages[l->stage_count - 1].count <= TB_HOSTS_RANKS;
}

uint32_t tb_levels_message_stages(const struct tb_levels *l)
{
    return l->stage_count - (tb_levels_common(l) ? 1 : 0);
}

/* The root tells one other part, and that one all the rest. */
static void packed_find(struct tb_tree *t, uint32_t count, uint32_t root, uint32_t mine, uint32_t share)
{
    uint32_t hub = (root + 1 + share) % count;
    *t = (struct tb_tree){.root = mine == root, .parent = mine == hub ? root : hub};
    if (mine == root)
        t->children[t->count++] = hub;
    for (uint32_t i = 1; mine == hub && i < count; i++) {
        uint32_t other = (hub + i) % count;
        if (other != root)
            t->children[t->count++] = other;
    }
}

static void flat_find(struct tb_tree *t, uint32_t count, uint32_t root, uint32_t mine)
{
    *t = (struct tb_tree){.root = mine == root, .parent = root};
    for (uint32_t i = 1; mine == root && i < count; i++)
        t->children[t->count++] = (root + i) % count;
}

/* One kind of tree; `argument` of those that have one. */
static void kind_find(struct tb_tree *t, const struct tb_stage *s, enum tb_level_tree kind, uint32_t argument)
{
    static const enum tb_tree_kind kinds[] = {
        [TB_LEVEL_FLAT] = TB_TREE_BINOMIAL, /* of very many */
        [TB_LEVEL_BINOMIAL] = TB_TREE_BINOMIAL, [TB_LEVEL_CHAIN] = TB_TREE_CHAIN,
        [TB_LEVEL_EVEN] = TB_TREE_EVEN,         [TB_LEVEL_POSTAL] = TB_TREE_POSTAL,
        [TB_LEVEL_PACKED] = TB_TREE_BINOMIAL,   [TB_LEVEL_LPBF] = TB_TREE_BINOMIAL,
        [TB_LEVEL_FITTED] = TB_TREE_BINOMIAL};
    if ((kind == TB_LEVEL_PACKED || kind == TB_LEVEL_FLAT) && s->count <= TB_LEVEL_FLAT_MOST) {
        flat_find(t, s->count, s->root, s->mine);
    } else {
        uint32_t distance = (s->mine + s->count - s->root) % s->count;
        tb_tree_find(t, kinds[kind], argument, s->count, s->root, distance);
    }
}

static void tree_name(struct tb_tree *t, const struct tb_stage *s)
{
    t->parent = s->parts[t->parent].rank;
    for (uint32_t i = 0; i < t->count; i++)
        t->children[i] = s->parts[t->children[i]].rank;
}

void tb_stage_tree(struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s,
                   const struct tb_level_kinds *k, uint32_t share)
{
    if (s->place == l->top && tb_levels_packed(l, k) && share + 1 < l->parts)
        packed_find(t, s->count, s->root, s->mine, share);
    else
        kind_find(t, s, s->wide ? k->wide : k->narrow, 0);
    tree_name(t, s);
}

/* What fits a stage best. Where the ways of a wide one are unlike, LPBF looks at each of them, which others do not. */
static uint32_t fitted_find(struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s,
                            const struct tb_level_kinds *k)
{
    const struct tb_fit_pieces pieces = tb_fit_pieces(l->call);
    const struct tb_stage_cost cost = tb_stage_cost(l, s, k);
    const struct tb_stage_fit fit = tb_fit_find(&cost, &pieces);
    uint32_t looks = cost.looks;
    bool unlike = s->wide && cost.unlike && s->count <= FIT_LPBF;
    if (!unlike || tb_stage_lpbf(t, l, s, fit.join, &looks) > fit.time) {
        kind_find(t, s, fit.tree, fit.argument);
        tree_name(t, s);
    }
    t->join = fit.join;
    return looks;
}

/* ---- common memory ----------------------------------------------------------------------------------------------- */

bool tb_levels_leads(const struct tb_levels *l)
{
    const struct tb_stage *s = &l->stages[l->stage_count - 1];
    return !tb_levels_common(l) || s->mine == s->root;
}

uint32_t tb_levels_meet(struct tb_builder *b, const struct tb_levels *l, enum tb_composite what, uint16_t place,
                        struct tb_slice give, struct tb_slice get)
{
    const struct tb_stage *s = &l->stages[l->stage_count - 1];
    const struct tb_collective here = {.size = s->count};
    bool one = what == TB_COMPOSITE_BCAST || what == TB_COMPOSITE_SCATTER; /* only one is waited for */
    const struct tb_contract contract = {(uint8_t)what, TB_DRIVER_COMMON, one ? 1 : tb_common_rounds(&here),
                                         what == TB_COMPOSITE_BARRIER ? 0
                                         : tb_composite_reduces(what) ? 2
                                                                      : 1};
    uint32_t ranks[TB_HOSTS_RANKS];
    for (uint32_t i = 0; i < s->count; i++)
        ranks[i] = s->parts[i].number;
    uint32_t step = tb_builder_composite(b, &contract, s->parts[s->root].rank, give, get);
    tb_builder_place(b, place);
    tb_builder_members(b, ranks, s->count);
    return step;
}

/* The same by LPBF, for messages as long as they would be if they were fitted. */
static uint32_t lpbf_find(struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s,
                          const struct tb_level_kinds *k)
{
    const struct tb_fit_pieces pieces = tb_fit_pieces(l->call);
    const struct tb_stage_cost cost = tb_stage_cost(l, s, k);
    uint32_t looks = cost.looks, join = tb_fit_find(&cost, &pieces).join;
    tb_stage_lpbf(t, l, s, join, &looks);
    t->join = join;
    return looks;
}

void tb_levels_tree(struct tb_builder *b, struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s,
                    const struct tb_level_kinds *k, uint32_t share)
{
    uint64_t argument = l->call->argument;
    enum tb_level_tree kind = s->wide ? k->wide : k->narrow;
    if (kind == TB_LEVEL_LPBF && s->count <= tb_lpbf_most(l->call)) {
        b->program.looks += lpbf_find(t, l, s, k);
    } else if (kind == TB_LEVEL_FITTED || kind == TB_LEVEL_LPBF) {
        b->program.looks += fitted_find(t, l, s, k);
    } else {
        tb_stage_tree(t, l, s, k, share);
        if (k->narrow == TB_LEVEL_FITTED) /* whose argument says how long messages may be, not how long they are */
            t->join = 1;
        else
            t->join = s->wide ? tb_argument_wide(argument) : tb_argument_narrow(argument);
    }
}

/* ---- multicast --------------------------------------------------------------------------------------------------- */

#define CAST_PIECE 262144u /* bytes, below which a piece of a multicast is not worth being waited for */

/* The job's limit. Blocks of all ranks go together. */
static bool cast_is_allowed(const struct tb_collective *c)
{
    bool blocks = c->operation == TB_OPERATION_SCATTER || c->operation == TB_OPERATION_ALLGATHER ||
                  c->operation == TB_OPERATION_ALLGATHERV;
    uint64_t most = tb_param.mcast_largest, bytes = c->elements * c->element_bytes;
    return most == 0 || bytes <= (blocks ? most / c->size : most);
}

bool tb_fits_cast(const struct tb_collective *c)
{
    const struct tb_group_shape *s = c->shape;
    if (s == NULL || c->inter || c->guest || c->connected || s->host_count < 2 || (s->most > 1 && !c->common) ||
        s->most > TB_HOSTS_RANKS || (c->skip & 1u << TB_LEVEL_HOST) != 0)
        return false;
    for (uint32_t i = 0; i < s->place_count; i++)
        if (s->places[i].multicast != 0 && s->places[i].child_count == 0 && s->places[i].hosts > 1)
            return cast_is_allowed(c);
    return false;
}

uint32_t tb_candidates_cast(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    uint64_t bytes = c->elements * c->element_bytes;
    uint32_t made = 0;
    bool goes_on = c->shape->cluster_count > 1 || c->shape->most > 1;
    for (uint32_t pieces = 1; made < room && (pieces == 1 || (goes_on && bytes / pieces >= CAST_PIECE)); pieces *= 4)
        values[made++] = (bytes + pieces - 1) / pieces;
    return made;
}

const struct tb_stage *tb_levels_cast_stage(const struct tb_levels *l, const struct tb_level_kinds *k)
{
    for (uint32_t i = 0; k->cast && i < l->stage_count; i++) {
        const struct tb_stage *s = &l->stages[i];
        const struct tb_shape_place *place = s->place != TB_PLACE_NONE ? &l->call->shape->places[s->place] : NULL;
        if (place != NULL && !s->wide && place->multicast != 0 && place->child_count == 0)
            return s;
    }
    return NULL;
}

/* Who of a stage takes part, in the order of ranks. */
static void members_sort(const struct tb_stage *s, uint32_t *ranks)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t rank = s->parts[i].rank, at = i;
        for (; at > 0 && ranks[at - 1] > rank; at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = rank;
    }
}

uint32_t tb_stage_cast(struct tb_builder *b, const struct tb_stage *s, uint16_t place, struct tb_slice data)
{
    const struct tb_contract contract = {TB_COMPOSITE_BCAST, TB_DRIVER_MULTICAST, 1, 1};
    const struct tb_slice nothing = tb_slice_nothing();
    bool root = s->mine == s->root;
    uint32_t *ranks = malloc(s->count * sizeof *ranks);
    if (ranks == NULL) {
        tb_builder_fail(b, tb_error(TB_ERR_MEMORY, "no memory for a list of %u ranks", s->count));
        return TB_STEP_NONE;
    }
    members_sort(s, ranks);
    uint32_t step =
        tb_builder_composite(b, &contract, s->parts[s->root].rank, root ? data : nothing, root ? nothing : data);
    tb_builder_place(b, place);
    tb_builder_members(b, ranks, s->count);
    free(ranks);
    return step;
}

void tb_levels_cast(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k, uint16_t place,
                    uint32_t *come, struct tb_level_shares *shares, uint32_t before)
{
    const struct tb_stage *s = tb_levels_cast_stage(l, k);
    if (s == NULL)
        return;
    const struct tb_slice data = b->program.pieces > 0 ? tb_slice_whole(b, TB_SYMBOL_OUT, 0) : tb_slice_nothing();
    bool root = s->mine == s->root;
    uint32_t step = tb_stage_cast(b, s, place, data);
    if (step == TB_STEP_NONE)
        return;
    tb_builder_cut(b, 1);
    tb_after_pieces(b, before);
    /* Elsewhere, what was there must have left before it is written over. */
    for (uint32_t i = 0; i < shares->count; i++)
        if (come[i] != TB_STEP_NONE)
            tb_builder_after_lag(b, come[i], (int32_t)shares->low[i]);
    /* What goes far leaves first: it takes longest, and would have to share the port. */
    for (uint32_t i = 0; root && b->error == TB_OK && i < step; i++)
        if (b->program.steps[i].kind == TB_STEP_SEND && b->program.steps[i].slice.symbol == TB_SYMBOL_OUT)
            tb_builder_after_lag(b, i, (int32_t)b->program.steps[i].slice.first);
    if (root)
        return;
    *shares = tb_shares_alike(1, b->program.pieces);
    come[0] = step;
}

/* ---- down -------------------------------------------------------------------------------------------------------- */

uint32_t tb_levels_down(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k, uint32_t share,
                        uint16_t edge, struct tb_slice slice, uint32_t ready)
{
    struct tb_tree t;
    uint32_t stages = tb_levels_message_stages(l);
    for (uint32_t i = 0; slice.count > 0 && i < stages && &l->stages[i] != tb_levels_cast_stage(l, k); i++) {
        tb_levels_tree(b, &t, l, &l->stages[i], k, share);
        uint32_t first = b->program.step_count;
        tb_tree_broadcast(b, &t, edge, slice, ready);
        ready = t.root ? ready : first;
    }
    return ready;
}

void tb_levels_out(struct tb_builder *b, const struct tb_levels *l, uint16_t place, const uint32_t *come,
                   const struct tb_level_shares *shares, uint32_t before)
{
    if (!tb_levels_common(l))
        return;
    const struct tb_slice data = tb_slice_whole(b, TB_SYMBOL_OUT, 0), nothing = tb_slice_nothing();
    bool leads = tb_levels_leads(l);
    tb_levels_meet(b, l, TB_COMPOSITE_BCAST, place, leads ? data : nothing, leads ? nothing : data);
    tb_builder_cut(b, tb_argument_narrow(l->call->argument));
    tb_after_pieces(b, before);
    for (uint32_t i = 0; leads && i < shares->count; i++)
        if (come[i] != TB_STEP_NONE)
            tb_builder_after_lag(b, come[i], (int32_t)shares->low[i]);
}

/* ---- up ---------------------------------------------------------------------------------------------------------- */

struct tb_level_sum tb_levels_sum(struct tb_builder *b, const struct tb_levels *l, uint16_t place, bool out)
{
    const struct tb_slice own = tb_slice_whole(b, tb_source(l->call), 0);
    struct tb_level_sum sum = {.at = own, .ready = TB_STEP_NONE, .out = out, .ours = out && l->call->in_place};
    sum.room_free[0] = sum.room_free[1] = TB_STEP_NONE;
    sum.nothing = l->call->guest && l->call->rank == l->root;
    if (!tb_levels_common(l))
        return sum;
    if (tb_levels_leads(l)) {
        sum.at = tb_slice_whole(b, out ? TB_SYMBOL_OUT : TB_SYMBOL_WORK, 0);
        sum.ours = true;
        sum.turn = out ? 0 : 1;
    }
    sum.ready = tb_levels_meet(b, l, TB_COMPOSITE_REDUCE, place, own, tb_levels_leads(l) ? sum.at : tb_slice_nothing());
    tb_builder_cut(b, tb_argument_narrow(l->call->argument));
    return sum;
}

struct tb_level_sum tb_levels_share(const struct tb_level_sum *whole, const struct tb_level_shares *shares,
                                    uint32_t share)
{
    struct tb_level_sum sum = *whole;
    sum.at = tb_share_slice(whole->at, shares, share);
    sum.beside = shares->count > 1;
    sum.low = sum.at.first - whole->at.first;
    sum.lag = -(int32_t)sum.low;
    return sum;
}

static void after_sum(struct tb_builder *b, const struct tb_level_sum *sum)
{
    if (sum->ready != TB_STEP_NONE)
        tb_builder_after_lag(b, sum->ready, sum->lag);
}

/* What a child has comes to a copy of WORK, or, if nothing is there yet, to OUT. */
void tb_level_sum_add(struct tb_builder *b, struct tb_level_sum *sum, uint32_t child, uint16_t edge, uint32_t join)
{
    uint32_t copy = sum->turn, count = sum->at.count;
    bool to_out = sum->out && !sum->ours;
    struct tb_slice theirs = to_out ? tb_slice_many(TB_SYMBOL_OUT, sum->low, count)
                                    : tb_slice_many(TB_SYMBOL_WORK, copy * b->program.pieces + sum->low, count);
    uint32_t come = tb_builder_receive(b, child, edge, theirs);
    tb_builder_cut(b, join);
    if (!to_out)
        tb_after_pieces(b, sum->room_free[copy]);
    if (sum->nothing) {
        sum->at = theirs;
        sum->ours = true;
        sum->nothing = false;
        sum->ready = come;
        return;
    }
    bool stays = sum->ours;
    uint32_t done = tb_builder_reduce(b, stays ? theirs : sum->at, stays ? sum->at : theirs);
    tb_builder_cut(b, join);
    tb_builder_after_pieces(b, come);
    after_sum(b, sum);
    if (stays)
        sum->room_free[copy] = done;
    else
        sum->at = theirs;
    /* Where a copy of WORK is the sum only the other one is written. */
    if (!to_out && (!stays || sum->at.symbol != TB_SYMBOL_WORK))
        sum->turn = 1 - copy;
    sum->ours = true;
    sum->ready = done;
    sum->lag = 0;
}

void tb_level_sum_send(struct tb_builder *b, struct tb_level_sum *sum, uint32_t parent, uint16_t edge, uint32_t join)
{
    uint32_t sent = tb_builder_send(b, parent, edge, sum->at);
    tb_builder_cut(b, join);
    if (sum->beside)
        tb_builder_pipeline(b, BESIDE_WINDOW);
    after_sum(b, sum);
    sum->ready = sent;
    sum->lag = 0;
}

void tb_levels_up(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k, uint32_t share,
                  uint16_t edge, struct tb_level_sum *sum)
{
    struct tb_tree t;
    for (uint32_t i = tb_levels_message_stages(l); sum->at.count > 0 && i-- > 0;) {
        tb_levels_tree(b, &t, l, &l->stages[i], k, share);
        /* The last child has the fewest behind it to wait for. */
        for (uint32_t n = t.count; n-- > 0;)
            tb_level_sum_add(b, sum, t.children[n], edge, t.join);
        if (!t.root)
            tb_level_sum_send(b, sum, t.parent, edge, t.join);
    }
}

void tb_levels_result(struct tb_builder *b, struct tb_level_sum *sum)
{
    if (sum->at.symbol == TB_SYMBOL_OUT || sum->at.count == 0)
        return;
    const struct tb_slice out = tb_slice_many(TB_SYMBOL_OUT, sum->low, sum->at.count);
    uint32_t copied = tb_builder_copy(b, sum->at, out);
    after_sum(b, sum);
    sum->at = out;
    sum->ready = copied;
    sum->lag = 0;
}
