/* What the ranks of a part have for the ranks outside of it is combined before it leaves the part: these blocks are
 * spread over the ranks of the part, in the order of who gets them; everyone gives each of the others its share of
 * them, combines what it is given itself, and sends each block to its rank. Within the part the same is done at the
 * next level. So each block crosses from each part once, by way of all of its ranks, and whatever the order of ranks
 * is; the rank whose it is combines what comes from the other parts of all places around it. For P parts of n ranks
 * and blocks of m bytes a part sends and gets (P - 1)n m bytes, where pairwise messages would be n times as much. One
 * latency of each level. Operands are not in order, so for commutative operations only. */
#include "collectives/levels_ranks.h"
#include "collectives/levels_steps.h"

#define RANKS_MOST 4096u /* so that there are edges enough, and programs are made quickly */
#define ROOMS      3u    /* copies of WORK for what comes while something else is combined; another one has the sums */

struct spread {
    struct tb_builder *b;
    const struct tb_collective *c;
    struct tb_stage_ranks r; /* of the stage at hand */
    struct tb_slice sum;     /* where this rank's own block is made, */
    bool begun;              /* and whether something has come there */
    uint32_t turn;           /* room to be used next */
};

/* The next of the blocks of a share that lie side by side, from `*at` on; a message of it has an edge of its own. */
static struct tb_slice run_next(const struct spread *p, uint32_t position, uint32_t *at, uint16_t *edge)
{
    const uint32_t *others = p->r.others;
    uint32_t end = tb_stage_share(&p->r, position + 1), low = tb_stage_share(&p->r, position) + *at, high = low;
    while (high < end && others[high] - others[low] == high - low)
        high++;
    *at += high - low;
    uint32_t first = low < high ? others[low] : 0;
    *edge = (uint16_t)(TB_LEVELS_STAGES + first);
    return tb_slice_many(TB_SYMBOL_IN, first, high - low);
}

static struct tb_slice work_copy(const struct spread *p, struct tb_slice blocks, uint32_t copy)
{
    return tb_slice_many(TB_SYMBOL_WORK, copy * p->c->size + blocks.first, blocks.count);
}

static uint32_t room_next(struct spread *p)
{
    return 1 + p->turn++ % ROOMS;
}

/* Gives the others of this part their shares, */
static void shares_give(struct spread *p)
{
    const struct tb_stage_ranks *r = &p->r;
    uint32_t size = tb_stage_size(r, r->mine);
    uint16_t edge;
    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = (r->position + i) % size, at = 0;
        for (struct tb_slice run = run_next(p, to, &at, &edge); run.count > 0; run = run_next(p, to, &at, &edge)) {
            tb_builder_send(p->b, tb_stage_part(r, r->mine)[to], edge, run);
            tb_builder_join(p->b);
        }
    }
}

/* and combines its own with what they have of it. */
static void share_combine(struct spread *p)
{
    const struct tb_stage_ranks *r = &p->r;
    uint32_t size = tb_stage_size(r, r->mine);
    uint16_t edge;
    for (uint32_t i = 1; i < size; i++) {
        uint32_t from = tb_stage_part(r, r->mine)[(r->position + size - i) % size], at = 0;
        uint32_t copy = i == 1 ? 0 : room_next(p);
        for (struct tb_slice run = run_next(p, r->position, &at, &edge); run.count > 0;
             run = run_next(p, r->position, &at, &edge)) {
            struct tb_slice theirs = work_copy(p, run, copy);
            tb_builder_receive(p->b, from, edge, theirs);
            tb_builder_join(p->b);
            tb_builder_reduce(p->b, i == 1 ? run : theirs, work_copy(p, run, 0));
        }
    }
}

/* Sends the blocks of its share to the ranks whose they are, beginning with the next one, so that not all begin with
 * the same. */
static void share_send(struct spread *p, uint16_t edge)
{
    const struct tb_stage_ranks *r = &p->r;
    enum tb_symbol sums = tb_stage_size(r, r->mine) > 1 ? TB_SYMBOL_WORK : TB_SYMBOL_IN;
    uint32_t low = tb_stage_share(r, r->position), count = tb_stage_share(r, r->position + 1) - low, first = 0;
    while (first < count && r->others[low + first] < p->c->rank)
        first++;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = r->others[low + (first + i) % count];
        tb_builder_send(p->b, to, edge, tb_slice_one(sums, to));
    }
}

/* Combines what comes from the other parts with what there is of my block. */
static void block_combine(struct spread *p, uint16_t edge)
{
    const struct tb_stage_ranks *r = &p->r;
    const struct tb_slice own = tb_slice_one(TB_SYMBOL_IN, p->c->rank);
    for (uint32_t i = 1; i < r->count; i++) {
        struct tb_slice theirs = p->sum;
        if (p->begun)
            theirs = tb_slice_one(TB_SYMBOL_WORK, room_next(p) * p->c->size + p->c->rank);
        uint32_t part = (r->mine + r->count - i) % r->count;
        tb_builder_receive(p->b, tb_stage_sharer(r, part, p->c->rank), edge, theirs);
        tb_builder_reduce(p->b, p->begun ? theirs : own, p->sum);
        p->begun = true;
    }
}

static int stages_make(struct spread *p, const struct tb_levels *l, bool last)
{
    int error = TB_OK;
    for (uint32_t i = 0; i < l->stage_count && error == TB_OK; i++) {
        uint32_t stage = last ? l->stage_count - 1 - i : i;
        error = tb_stage_ranks_open(&p->r, p->c, &l->stages[stage]);
        if (error == TB_OK && last)
            block_combine(p, (uint16_t)stage);
        if (error == TB_OK && !last) {
            shares_give(p);
            share_combine(p);
            share_send(p, (uint16_t)stage);
        }
        tb_stage_ranks_close(&p->r);
    }
    return error;
}

static bool fits(const struct tb_collective *c)
{
    return c->commutative && tb_fits_levels(c) && c->size <= RANKS_MOST;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open_all(&l, c);
    if (error == TB_OK) {
        const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
        struct spread p = {.b = &b, .c = c, .sum = c->in_place ? tb_slice_one(TB_SYMBOL_WORK, c->rank) : out};
        tb_builder_open(&b, c->size);
        tb_builder_order(&b);
        tb_builder_whole(&b);
        error = stages_make(&p, &l, false);
        error = error == TB_OK ? stages_make(&p, &l, true) : error;
        if (c->in_place) {
            tb_builder_copy(&b, p.sum, out);
            tb_after_input(&b);
        }
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        tb_builder_fail(&b, error);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

const struct tb_algorithm tb_reduce_scatter_levels = {
    TB_OPERATION_REDUCE_SCATTER, "levels-spread", fits, make, NULL, NULL};
const struct tb_algorithm tb_reduce_scatter_block_levels = {
    TB_OPERATION_REDUCE_SCATTER_BLOCK, "levels-spread", fits, make, NULL, NULL};
