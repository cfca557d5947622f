/* What all ranks are going to do in an epoch of the stress test, drawn from a seed: everyone draws the same, and so
 * knows what all do. Every place of a window is used in one way in an epoch: it is put by one origin, got by several,
 * or operated on by several that accumulate. */
#ifndef TB_TESTS_MPI_RMA_PLAN_H
#define TB_TESTS_MPI_RMA_PLAN_H

#include "rma_history.h"
#include "test.h"

#define SLOTS       18 /* places of each rank; the last two are long */
#define LONG_SLOTS  2
#define SHORT_COUNT 40
#define SHORT_ROOM  1024
#define LONG_COUNT  12000
#define LONG_ROOM   (2 * 8 * LONG_COUNT)
#define SHIFT       32 /* bytes: a multiple of what any element is aligned to, and of any unit */
#define SHIFTS      4
#define WINDOW      ((SLOTS - LONG_SLOTS) * SHORT_ROOM + LONG_SLOTS * LONG_ROOM)
#define HOT_SLOTS   12 /* that all use at once, in every other epoch */
#define MAX_OPS     (16 * SLOTS * HISTORY_ORIGINS * HISTORY_EACH)
#define MAX_RESULTS (1 << 20) /* words of an epoch */

enum usage { UNUSED, PUTS, GETS, OPERATIONS };
enum synchronisation { FENCE, GROUPS, EXCLUSIVE, SHARED_LOCK, LOCK_ALL, SYNCHRONISATIONS };

static const char *const SYNC_NAMES[] = {"fence", "post and start", "exclusive lock", "shared lock", "lock_all"};

struct slot {
    enum usage usage;
    const struct element *element;
    enum element_op kind; /* of operations; some are MPI_NO_OP all the same */
    MPI_Aint at;          /* where the first element is, in the window */
    int count, stride;    /* elements; in elements, at the target */
    bool refreshed;       /* the owner stores known values first */
    int origins[HISTORY_ORIGINS], origin_count;
};

struct op {
    int origin, target, slot, step; /* which of its origin's at this slot */
    enum element_op kind;
    bool put, get, fetches, request, strided, flush; /* strided: the buffers of the origin have gaps */
    int64_t result;                                  /* where its results are, in words; -1: none */
    uint64_t operands;                               /* the seed of them */
    int compare;                                     /* of a swap: 0 the first value, else what another one brings */
};

struct combination {
    const struct element *element;
    enum element_op op;
};

struct plan {
    uint64_t seed, state;
    int epoch, size, all; /* ranks of the window, and of all windows but those of a host */
    bool hot;
    int hot_target;
    enum synchronisation sync_kind;
    struct slot *slots; /* [rank * SLOTS + slot] */
    struct op *ops;
    int op_count;
    int64_t result_words;
    bool *paired; /* [origin * size + target], of post and start */
    /* Which operation on which element: each comes once before any comes again. */
    struct combination combinations[ELEMENT_KINDS * ELEMENT_OPS];
    int combination_count, next;
};

static void *zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    test_need(memory != NULL, "there is no memory");
    return memory;
}

static uint64_t plan_draw(struct plan *p, uint64_t below)
{
    return test_word(p->seed, p->state++) % below;
}

static void plan_open(struct plan *p, uint64_t seed, int ranks)
{
    *p = (struct plan){.seed = seed, .state = UINT64_C(1) << 60, .all = ranks};
    p->slots = zeroed((size_t)ranks * SLOTS * sizeof *p->slots);
    p->ops = zeroed(MAX_OPS * sizeof *p->ops);
    p->paired = zeroed((size_t)(ranks * ranks));
    for (int i = 0; i < ELEMENT_KINDS * ELEMENT_OPS; i++) {
        const struct combination c = {&ELEMENTS[i / ELEMENT_OPS], (enum element_op)(i % ELEMENT_OPS)};
        if (c.op == ELEMENT_NO_OP || (ELEMENT_OP[c.op].groups & (int)c.element->group) == 0)
            continue;
        int at = (int)plan_draw(p, (uint64_t)p->combination_count + 1);
        p->combinations[p->combination_count++] = p->combinations[at];
        p->combinations[at] = c;
    }
}

static void plan_close(struct plan *p)
{
    free(p->slots);
    free(p->ops);
    free(p->paired);
}

/* ---- what is known of it ----------------------------------------------------------------------------------------- */

static bool slot_is_long(int slot)
{
    return slot >= SLOTS - LONG_SLOTS;
}

static MPI_Aint slot_place(int slot)
{
    int longs = slot - (SLOTS - LONG_SLOTS);
    return longs < 0 ? (MPI_Aint)slot * SHORT_ROOM
                     : (MPI_Aint)(SLOTS - LONG_SLOTS) * SHORT_ROOM + (MPI_Aint)longs * LONG_ROOM;
}

static MPI_Aint slot_room(int slot)
{
    return slot_is_long(slot) ? LONG_ROOM : SHORT_ROOM;
}

static struct slot *slot_of(const struct plan *p, int rank, int slot)
{
    return &p->slots[rank * SLOTS + slot];
}

/* Element `i` of the data called so, for a slot. */
static struct element_value value_of(const struct plan *p, const struct slot *s, uint64_t name, int i)
{
    return element_draw(s->element, s->kind, test_word(name ^ p->seed, (uint64_t)i));
}

/* What the owner of a slot stores in it. */
static uint64_t first_of(const struct plan *p, int rank, int slot)
{
    return ((uint64_t)p->epoch << 20) + (uint64_t)(rank * SLOTS + slot) * 2 + 1;
}

static struct element_value compare_of(const struct plan *p, const struct op *op)
{
    const struct slot *s = slot_of(p, op->target, op->slot);
    if (op->compare > 0 && op->compare <= p->op_count) {
        const struct op *other = &p->ops[op->compare - 1];
        if (other->target == op->target && other->slot == op->slot)
            return value_of(p, s, other->operands, 0);
    }
    return value_of(p, s, first_of(p, op->target, op->slot), 0);
}

/* ---- drawing it -------------------------------------------------------------------------------------------------- */

static void add_op(struct plan *p, int target, int slot, int origin, int step)
{
    const struct slot *s = slot_of(p, target, slot);
    struct op op = {.origin = origin, .target = target, .slot = slot, .step = step, .kind = s->kind, .result = -1};
    op.operands = ((uint64_t)p->epoch << 32) + (uint64_t)p->op_count * 2;
    op.get = s->usage == GETS || (s->usage == PUTS && step > 0);
    op.put = s->usage == PUTS && !op.get;
    op.fetches = s->usage == OPERATIONS && plan_draw(p, 3) > 0;
    if (s->usage == OPERATIONS && plan_draw(p, 4) == 0) {
        op.kind = ELEMENT_NO_OP;
        op.fetches = true;
    }
    op.fetches = op.fetches || (s->usage == OPERATIONS && op.kind == ELEMENT_SWAP);
    op.compare = plan_draw(p, 2) || p->op_count == 0 ? 0 : (int)plan_draw(p, (uint64_t)p->op_count + 1);
    op.request = p->sync_kind >= EXCLUSIVE && plan_draw(p, 3) == 0;
    op.strided = plan_draw(p, 3) == 0;
    op.flush = p->sync_kind >= EXCLUSIVE && plan_draw(p, 4) == 0;
    if (op.fetches || op.get) {
        int words = s->count * s->element->numbers;
        if (p->result_words + words > MAX_RESULTS)
            return;
        op.result = p->result_words;
        p->result_words += words;
    }
    p->ops[p->op_count++] = op;
}

static bool may_access(const struct plan *p, int origin, int target)
{
    return p->sync_kind != GROUPS || p->paired[origin * p->size + target];
}

static void plan_origins(struct plan *p, struct slot *s, int target, int slot)
{
    int wanted = s->usage == PUTS ? 1
                 : p->hot         ? HISTORY_ORIGINS
                                  : 1 + (int)plan_draw(p, slot_is_long(slot) ? 2 : HISTORY_ORIGINS);
    int first = (int)plan_draw(p, (uint64_t)p->size);
    for (int i = 0; i < p->size && s->origin_count < wanted; i++)
        if (may_access(p, (first + i) % p->size, target))
            s->origins[s->origin_count++] = (first + i) % p->size;
    if (s->origin_count == 0)
        s->usage = UNUSED;
}

/* What a slot is of, and where in its room that lies. */
static void plan_elements(struct plan *p, struct slot *s, int slot)
{
    struct combination c = {&ELEMENTS[plan_draw(p, ELEMENT_KINDS)], ELEMENT_REPLACE};
    if (s->usage == OPERATIONS)
        c = p->combinations[p->next++ % p->combination_count];
    s->element = c.element;
    s->kind = c.op;
    s->stride = plan_draw(p, 3) ? 1 : 2;
    /* What other elements have left is a number only of integers. */
    bool any = (s->element->group & (ELEMENT_INTEGER | ELEMENT_MULTI_LANGUAGE | ELEMENT_BYTE)) != 0;
    s->refreshed = plan_draw(p, 2) || s->kind == ELEMENT_SWAP || !any;
    s->at = slot_place(slot) + (MPI_Aint)plan_draw(p, SHIFTS) * SHIFT;
    int most = (int)(slot_room(slot) - (SHIFTS - 1) * SHIFT) / (2 * s->element->bytes);
    int wanted = slot_is_long(slot) ? LONG_COUNT : plan_draw(p, 2) ? 1 : SHORT_COUNT;
    s->count = 1 + (int)plan_draw(p, (uint64_t)(wanted < most ? wanted : most));
    if (s->kind == ELEMENT_SWAP)
        s->count = s->stride = 1;
}

static void plan_slot(struct plan *p, int target, int slot)
{
    struct slot *s = slot_of(p, target, slot);
    *s = (struct slot){.usage = (enum usage)plan_draw(p, 4)};
    if (p->hot)
        s->usage = target == p->hot_target && slot < HOT_SLOTS ? OPERATIONS : UNUSED;
    if (s->usage != UNUSED)
        plan_origins(p, s, target, slot);
    if (s->usage == UNUSED)
        return;
    plan_elements(p, s, slot);
    /* A put, and where a flush comes between them a get of the same. */
    bool reads_back = s->usage == PUTS && p->sync_kind >= EXCLUSIVE && plan_draw(p, 2);
    for (int i = 0; i < s->origin_count; i++) {
        int steps = reads_back               ? 2
                    : s->usage != OPERATIONS ? 1
                    : p->hot                 ? HISTORY_EACH
                                             : 1 + (int)plan_draw(p, slot_is_long(slot) ? 2 : HISTORY_EACH);
        for (int step = 0; step < steps; step++)
            add_op(p, target, slot, s->origins[i], step);
    }
}

static void plan_epoch(struct plan *p, int epoch, int size)
{
    p->epoch = epoch;
    p->size = size;
    p->op_count = 0;
    p->result_words = 0;
    p->state = (uint64_t)epoch << 24;
    p->sync_kind = (enum synchronisation)plan_draw(p, SYNCHRONISATIONS);
    p->hot = plan_draw(p, 2);
    p->hot_target = (int)plan_draw(p, (uint64_t)size);
    for (int i = 0; i < size * size; i++)
        p->paired[i] = plan_draw(p, 2) == 0;
    int next = p->next;
    for (int target = 0; target < size; target++)
        for (int slot = 0; slot < SLOTS; slot++)
            plan_slot(p, target, slot);
    if (size != p->all) /* every host draws for itself then, and afterwards all go on from the same */
        p->next = next;
}

#endif
