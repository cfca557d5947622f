#include "search/own_cut.h"

#include "search/packing.h"
#include "search/quick.h"

#define USUAL_PIECES  32u  /* that are tried first on trees that are not made for a length of them, */
#define PACKED_PIECES 256u /* and that trees are packed for, at most */
#define PACKINGS      10u  /* that are rated: those that should take least, */
#define PACKINGS_LIKE 2u   /* at most so many for the same pieces */
#define HOPELESS      8u /* longer pieces are not tried from where trees take one part in so many more than the best */
#define LARGE_PIECES  (1u << 22) /* of all nodes together: simulations of large grids take longer with each */
#define TREE_COSTS    1000u      /* one part of the time for each tree, so that of alike ones the fewest are taken */

struct cutting {
    struct tb_own_walk *walk;
    uint64_t most;  /* pieces */
    uint64_t piece; /* the best so far */
    uint64_t time;  /* of the best with pieces */
};

/* Packings, those that should take least first. */
struct packings {
    uint32_t count;
    uint64_t times[PACKINGS];
    struct tb_search_forest forests[PACKINGS];
};

static bool piece_possible(const struct cutting *c, uint64_t piece)
{
    const struct tb_problem *problem = c->walk->run->problem;
    return piece >= TB_OWN_PIECE && piece < problem->bytes && problem->bytes / piece <= c->most;
}

/* Rates walk->next with pieces of this length. */
static int piece_rate(struct cutting *c, uint64_t piece, uint64_t *time)
{
    c->walk->next.piece = piece;
    int error = tb_own_walk_rate(c->walk, time);
    if (error == TB_OK && *time < c->time) {
        c->time = *time;
        c->piece = piece;
    }
    return error;
}

/* The same with longer and longer pieces, or shorter and shorter ones, as long as that helps. *helped: it did. */
static int piece_climb(struct cutting *c, uint64_t first, uint64_t best, bool longer, bool *helped)
{
    *helped = false;
    for (uint64_t piece = longer ? 2 * first : first / 2; piece_possible(c, piece);
         piece = longer ? 2 * piece : piece / 2) {
        uint64_t time;
        if (tb_own_walk_over(c->walk))
            return TB_OK;
        int error = piece_rate(c, piece, &time);
        if (error != TB_OK || time >= best)
            return error;
        best = time;
        *helped = true;
    }
    return TB_OK;
}

/* Rates the trees of walk->next with a length of pieces, and with others if that helps. */
static int pieces_try(struct cutting *c, uint64_t first)
{
    uint64_t time;
    bool helped;
    if (tb_own_walk_over(c->walk))
        return TB_OK;
    int error = piece_rate(c, first, &time);
    if (error == TB_OK)
        error = piece_climb(c, first, time, true, &helped);
    if (error == TB_OK && !helped)
        error = piece_climb(c, first, time, false, &helped);
    return error;
}

/* ---- packings ---------------------------------------------------------------------------------------------------- */

/* Makes room for one that should take so long, if it is one of the best; where. */
static bool packing_place(struct packings *p, uint64_t time, uint32_t *at)
{
    for (*at = p->count; *at > 0 && p->times[*at - 1] > time;)
        --*at;
    if (*at == PACKINGS)
        return false;
    struct tb_search_forest room = p->forests[p->count < PACKINGS ? p->count : PACKINGS - 1];
    for (uint32_t i = p->count < PACKINGS ? p->count++ : PACKINGS - 1; i > *at; i--) {
        p->times[i] = p->times[i - 1];
        p->forests[i] = p->forests[i - 1];
    }
    p->times[*at] = time;
    p->forests[*at] = room;
    return true;
}

static void packing_note(struct packings *p, const struct tb_packing *packing)
{
    uint64_t time = tb_packing_time(packing);
    uint32_t at;
    time += time / TREE_COSTS * tb_packing_trees(packing);
    if (packing_place(p, time, &at))
        tb_packing_give(packing, &p->forests[at]);
}

/* For every length of pieces the trees that suit it, and fewer and fewer of them; of each length the best ones. */
static int packings_find(struct tb_own_walk *walk, struct packings *all, struct packings *like, bool turns)
{
    const struct tb_problem *problem = walk->run->problem;
    uint64_t piece = TB_OWN_PIECE;
    int error = TB_OK;
    while (problem->bytes / piece > PACKED_PIECES)
        piece *= 2;
    for (; error == TB_OK && 2 * piece < problem->bytes && !tb_own_walk_over(walk); piece *= 2) {
        struct tb_packing *packing;
        uint32_t at;
        like->count = 0;
        error = tb_packing_open(&packing, problem, piece, turns, walk->next.room);
        if (error == TB_OK)
            packing_note(like, packing);
        while (error == TB_OK && tb_packing_trees(packing) > 1) {
            tb_packing_reduce(packing);
            packing_note(like, packing);
        }
        tb_packing_close(packing);
        if (all->count > 0 && like->count > 0 && like->times[0] / HOPELESS > all->times[0] / (HOPELESS - 1))
            break;
        for (uint32_t i = 0; i < like->count && i < PACKINGS_LIKE; i++)
            if (packing_place(all, like->times[i], &at))
                tb_search_forest_copy(&all->forests[at], &like->forests[i]);
    }
    return error;
}

static int packings_open(struct packings *p, const struct tb_own_walk *walk)
{
    const struct tb_problem *problem = walk->run->problem;
    int error = TB_OK;
    *p = (struct packings){.count = 0};
    for (uint32_t i = 0; error == TB_OK && i < PACKINGS; i++)
        error = tb_search_forest_open(&p->forests[i], problem->nodes, problem->root, walk->next.room);
    return error;
}

static void packings_close(struct packings *p)
{
    for (uint32_t i = 0; i < PACKINGS; i++)
        tb_search_forest_close(&p->forests[i]);
}

/* Rates the best packings; the first of all.forests is then the best by that, and takes all.times[0]. */
static int packings_rate(struct cutting *c, struct packings *all)
{
    int error = TB_OK;
    for (uint32_t i = 0; error == TB_OK && i < all->count; i++) {
        if (i == 0 ? tb_search_run_over(c->walk->run) : tb_own_walk_over(c->walk)) { /* the best one in any case */
            all->count = i;
            break;
        }
        tb_search_forest_copy(&c->walk->next, &all->forests[i]);
        error = piece_rate(c, all->forests[i].piece, &all->times[i]);
        if (error != TB_OK || all->times[i] >= all->times[0])
            continue;
        struct tb_search_forest forest = all->forests[0];
        uint64_t time = all->times[0];
        all->forests[0] = all->forests[i];
        all->times[0] = all->times[i];
        all->forests[i] = forest;
        all->times[i] = time;
    }
    return error;
}

/* Packs trees in both ways, rates the best ones, and goes some steps from the best of each way. */
static int packings_try(struct cutting *c)
{
    struct packings all[2], like;
    int error = packings_open(&all[0], c->walk), more = packings_open(&all[1], c->walk);
    error = error == TB_OK ? more : error;
    more = packings_open(&like, c->walk);
    error = error == TB_OK ? more : error;
    for (uint32_t i = 0; i < 2 && error == TB_OK; i++) {
        error = packings_find(c->walk, &all[i], &like, i == 0);
        if (error == TB_OK)
            error = packings_rate(c, &all[i]);
    }
    c->walk->moves.cuts = true;
    for (uint32_t i = 0; i < 2 && error == TB_OK; i++)
        if (all[i].count > 0)
            error = tb_own_walk_round(c->walk, &all[i].forests[0], all[i].times[0]);
    packings_close(&all[0]);
    packings_close(&all[1]);
    packings_close(&like);
    return error;
}

/* ---- other trees ------------------------------------------------------------------------------------------------- */

/* One tree. */
static int tree_try(struct cutting *c, const struct tb_search_tree *tree)
{
    tb_search_tree_copy(&c->walk->next.tree[0], tree);
    c->walk->next.trees = 1;
    c->walk->next.shares[0] = 1;
    return pieces_try(c, c->piece);
}

static int line_try(struct cutting *c, uint32_t fan_out)
{
    struct tb_search_tree *tree = &c->walk->next.tree[0];
    c->walk->next.trees = 1;
    c->walk->next.shares[0] = 1;
    tb_search_tree_clear(tree);
    int error = tb_quick_line(c->walk->run->problem, tree, fan_out);
    return error == TB_OK ? pieces_try(c, c->piece) : error;
}

/* A second tree in which whoever leads to many leads to few: nodes of each cluster change places, the first with the
 * last. */
static int mirrored_try(struct cutting *c, const struct tb_search_tree *tree)
{
    const struct tb_own_moves *moves = &c->walk->moves;
    const struct tb_problem *problem = c->walk->run->problem;
    struct tb_search_forest *next = &c->walk->next;
    tb_search_tree_copy(&next->tree[0], tree);
    tb_search_tree_copy(&next->tree[1], tree);
    for (uint32_t i = 0; i < problem->cluster_count; i++)
        for (uint32_t k = moves->first[i], n = moves->first[i + 1]; k + 1 < n; k++) {
            uint32_t a = moves->members[k], b = moves->members[--n];
            if (a != problem->root && b != problem->root)
                tb_search_tree_swap(&next->tree[1], a, b);
        }
    next->trees = 2;
    next->shares[0] = next->shares[1] = 1;
    return pieces_try(c, c->piece);
}

/* Pieces that are tried first; no more than `most` of them. */
static struct cutting cutting_begin(struct tb_own_walk *walk, uint64_t most)
{
    struct cutting c = {.walk = walk, .most = most, .piece = TB_OWN_PIECE, .time = UINT64_MAX};
    while (c.piece < walk->run->problem->bytes / (most < USUAL_PIECES ? most : USUAL_PIECES))
        c.piece *= 2;
    return c;
}

int tb_own_cut_large(struct tb_own_walk *walk)
{
    const uint64_t most = LARGE_PIECES / walk->run->problem->nodes;
    struct cutting c = cutting_begin(walk, most > 1 ? most : 1);
    return piece_possible(&c, c.piece) ? tree_try(&c, &walk->run->best) : TB_OK;
}

int tb_own_cut(struct tb_own_walk *walk)
{
    const struct tb_problem *problem = walk->run->problem;
    struct cutting c = cutting_begin(walk, TB_OWN_PIECES);
    int error = TB_OK;
    if (problem->wires != NULL && problem->nodes <= TB_PACKING_NODES)
        error = packings_try(&c);
    if (error == TB_OK)
        error = tree_try(&c, &walk->run->best);
    if (error == TB_OK)
        error = line_try(&c, 1);
    if (error == TB_OK)
        error = line_try(&c, 2);
    if (error == TB_OK && walk->best.trees == 1) {
        tb_search_forest_copy(&walk->now, &walk->best);
        error = mirrored_try(&c, &walk->now.tree[0]);
    }
    return error;
}
