/* A stress test of one-sided communication with an oracle: windows, epochs and accesses are drawn from a seed, the same
 * on all ranks, so that everyone knows what all do. Every place of a window is used in one way in an epoch: it is put
 * by one origin, got by several, or operated on by several that accumulate. After each epoch the owner of a place looks
 * whether what all have seen of it, and what is there, has an explanation (rma_history.h), and whether nothing else was
 * touched.
 *
 *     rma_oracle [EPOCHS [SECONDS [SEED]]]
 *
 * The seed is of the clock unless it is given, and is told when something fails. */
#include "rma.h"
#include "rma_history.h"

#define SLOTS       18 /* places of each rank; the last two are long */
#define LONG_SLOTS  2
#define SHORT_ROOM  1024
#define LONG_COUNT  12000
#define LONG_ROOM   (2 * 8 * LONG_COUNT)
#define WINDOW      ((SLOTS - LONG_SLOTS) * SHORT_ROOM + LONG_SLOTS * LONG_ROOM)
#define PER_WINDOW  6   /* epochs */
#define HOT_SLOTS   4   /* that all use at once, in every other epoch */
#define TICKETS     300 /* that each rank draws in a race */
#define MAX_OPS     (16 * SLOTS * HISTORY_ORIGINS * HISTORY_EACH)
#define MAX_RESULTS (1 << 20) /* words of an epoch */

enum usage { UNUSED, PUTS, GETS, OPERATIONS };
enum synchronisation { FENCE, GROUPS, EXCLUSIVE, SHARED_LOCK, LOCK_ALL, SYNCHRONISATIONS };

static const char *const SYNC_NAMES[] = {"fence", "post and start", "exclusive lock", "shared lock", "lock_all"};

struct slot {
    enum usage usage;
    int count, width, stride; /* elements; bytes of one; in elements, at the target */
    bool refreshed;           /* the owner stores known values first */
    enum history_kind kind;
    int origins[HISTORY_ORIGINS], origin_count;
};

struct op {
    int origin, target, slot, step; /* which of its origin's at this slot */
    enum history_kind kind;
    bool put, get, fetches, request, strided, flush; /* strided: the buffers of the origin have gaps */
    int64_t result;                                  /* where its results are, in words; -1: none */
    uint64_t operands;                               /* the seed of them */
    int compare;                                     /* of a swap: 0 the first value, else what another one brings */
};

static uint64_t seed, state;
static int epoch;
static bool hot;
static int hot_target;
static enum synchronisation sync_kind;
static struct rma_window w;
static struct slot *slots; /* [rank * SLOTS + slot] */
static struct op *ops;
static int op_count;
static int64_t *results, result_words;
static unsigned char *shadow;
static bool *paired; /* [origin * size + target], of post and start */

static void *zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    test_need(memory != NULL, "there is no memory");
    return memory;
}

static uint64_t draw(uint64_t below)
{
    return test_word(seed, state++) % below;
}

static MPI_Aint place(int slot)
{
    int longs = slot - (SLOTS - LONG_SLOTS);
    return longs < 0 ? (MPI_Aint)slot * SHORT_ROOM
                     : (MPI_Aint)(SLOTS - LONG_SLOTS) * SHORT_ROOM + (MPI_Aint)longs * LONG_ROOM;
}

/* Element `i` of the data called so, as an element of the width is. */
static int64_t element(uint64_t name, int i, int width)
{
    uint64_t word = test_word(name ^ seed, (uint64_t)i);
    return width == 4 ? (int64_t)(int32_t)word : (int64_t)word;
}

static uint64_t first_of(int rank, int slot)
{
    return ((uint64_t)epoch << 20) + (uint64_t)(rank * SLOTS + slot) * 2 + 1;
}

static int64_t load(const void *at, int width)
{
    int32_t four;
    int64_t eight;
    memcpy(width == 4 ? (void *)&four : (void *)&eight, at, (size_t)width);
    return width == 4 ? four : eight;
}

static void store(void *at, int width, int64_t value)
{
    int32_t four = (int32_t)value;
    memcpy(at, width == 4 ? (void *)&four : (void *)&value, (size_t)width);
}

/* ---- the plan of an epoch ---------------------------------------------------------------------------------------- */

static void add_op(int target, int slot, int origin, int step)
{
    const struct slot *s = &slots[target * SLOTS + slot];
    struct op op = {.origin = origin, .target = target, .slot = slot, .step = step, .kind = s->kind, .result = -1};
    op.operands = ((uint64_t)epoch << 32) + (uint64_t)op_count * 2;
    op.put = s->usage == PUTS;
    op.get = s->usage == GETS || (op.put && step > 0);
    if (op.get)
        op.put = false;
    op.fetches = s->usage == OPERATIONS && draw(3) > 0;
    if (s->usage == OPERATIONS && draw(4) == 0) {
        op.kind = HISTORY_NONE;
        op.fetches = true;
    }
    op.fetches = op.fetches || (s->usage == OPERATIONS && op.kind == HISTORY_SWAP);
    op.compare = draw(2) || op_count == 0 ? 0 : (int)draw((uint64_t)op_count + 1);
    op.request = sync_kind >= EXCLUSIVE && draw(3) == 0;
    op.strided = draw(3) == 0;
    op.flush = sync_kind >= EXCLUSIVE && draw(4) == 0;
    if (op.fetches || op.get) {
        if (result_words + s->count > MAX_RESULTS)
            return;
        op.result = result_words;
        result_words += s->count;
    }
    ops[op_count++] = op;
}

static bool may_access(int origin, int target)
{
    return sync_kind != GROUPS || paired[origin * w.size + target];
}

static void plan_slot(int target, int slot)
{
    struct slot *s = &slots[target * SLOTS + slot];
    bool is_long = slot >= SLOTS - LONG_SLOTS;
    static const enum history_kind KINDS[] = {HISTORY_SUM, HISTORY_SUM,     HISTORY_XOR,
                                              HISTORY_MAX, HISTORY_REPLACE, HISTORY_SWAP};
    *s = (struct slot){.usage = (enum usage)draw(4), .width = draw(2) ? 8 : 4, .stride = draw(3) ? 1 : 2};
    if (hot)
        s->usage = target == hot_target && slot < HOT_SLOTS ? OPERATIONS : UNUSED;
    s->kind = KINDS[draw(6)];
    s->refreshed = draw(2) || s->kind == HISTORY_SWAP;
    s->count = is_long ? 1 + (int)draw(LONG_COUNT) : 1 + (int)draw(draw(2) ? 1 : 40);
    if (s->usage == OPERATIONS && s->kind == HISTORY_SWAP)
        s->count = s->stride = 1;
    int wanted = s->usage == PUTS ? 1 : hot ? HISTORY_ORIGINS : 1 + (int)draw(is_long ? 2 : HISTORY_ORIGINS);
    int first = (int)draw((uint64_t)w.size);
    for (int i = 0; i < w.size && s->origin_count < wanted; i++)
        if (may_access((first + i) % w.size, target))
            s->origins[s->origin_count++] = (first + i) % w.size;
    if (s->origin_count == 0)
        s->usage = UNUSED;
    /* A put, and where a flush comes between them a get of the same. */
    bool reads_back = s->usage == PUTS && sync_kind >= EXCLUSIVE && draw(2);
    for (int i = 0; s->usage != UNUSED && i < s->origin_count; i++) {
        int steps = reads_back               ? 2
                    : s->usage != OPERATIONS ? 1
                    : hot                    ? HISTORY_EACH
                                             : 1 + (int)draw(is_long ? 2 : HISTORY_EACH);
        for (int step = 0; step < steps; step++)
            add_op(target, slot, s->origins[i], step);
    }
}

static void plan(void)
{
    op_count = 0;
    result_words = 0;
    state = (uint64_t)epoch << 24;
    sync_kind = (enum synchronisation)draw(SYNCHRONISATIONS);
    hot = draw(2);
    hot_target = (int)draw((uint64_t)w.size);
    for (int i = 0; i < w.size * w.size; i++)
        paired[i] = draw(2) == 0;
    for (int target = 0; target < w.size; target++)
        for (int slot = 0; slot < SLOTS; slot++)
            plan_slot(target, slot);
}

/* ---- carrying it out --------------------------------------------------------------------------------------------- */

static int64_t compare_of(const struct op *op)
{
    const struct slot *s = &slots[op->target * SLOTS + op->slot];
    if (op->compare > 0 && op->compare <= op_count) {
        const struct op *other = &ops[op->compare - 1];
        if (other->target == op->target && other->slot == op->slot)
            return element(other->operands, 0, s->width);
    }
    return element(first_of(op->target, op->slot), 0, s->width);
}

/* Buffers live until the end of the epoch. */
struct buffers {
    unsigned char *out, *in;
    int64_t compare;
    MPI_Request request;
};

static MPI_Op op_of(enum history_kind kind)
{
    const MPI_Op all[] = {MPI_SUM, MPI_BXOR, MPI_MAX, MPI_REPLACE, MPI_NO_OP};
    return all[kind];
}

static void call_plain(const struct op *op, struct buffers *b, int count, MPI_Datatype near_type, MPI_Datatype far_type)
{
    MPI_Aint at = rma_at(&w, op->target, place(op->slot));
    MPI_Op reduction = op_of(op->kind == HISTORY_SWAP ? HISTORY_NONE : op->kind);
    if (op->put)
        MPI_Put(b->out, count, near_type, op->target, at, 1, far_type, w.win);
    else if (op->get)
        MPI_Get(b->in, count, near_type, op->target, at, 1, far_type, w.win);
    else if (op->fetches)
        MPI_Get_accumulate(b->out, count, near_type, b->in, count, near_type, op->target, at, 1, far_type, reduction,
                           w.win);
    else
        MPI_Accumulate(b->out, count, near_type, op->target, at, 1, far_type, reduction, w.win);
}

static void call_request(const struct op *op, struct buffers *b, int count, MPI_Datatype near_type,
                         MPI_Datatype far_type)
{
    MPI_Aint at = rma_at(&w, op->target, place(op->slot));
    MPI_Op reduction = op_of(op->kind == HISTORY_SWAP ? HISTORY_NONE : op->kind);
    if (op->put)
        MPI_Rput(b->out, count, near_type, op->target, at, 1, far_type, w.win, &b->request);
    else if (op->get)
        MPI_Rget(b->in, count, near_type, op->target, at, 1, far_type, w.win, &b->request);
    else if (op->fetches)
        MPI_Rget_accumulate(b->out, count, near_type, b->in, count, near_type, op->target, at, 1, far_type, reduction,
                            w.win, &b->request);
    else
        MPI_Raccumulate(b->out, count, near_type, op->target, at, 1, far_type, reduction, w.win, &b->request);
}

/* Makes the call of an operation; single elements by the calls for these. */
static void issue(const struct op *op, struct buffers *b)
{
    const struct slot *s = &slots[op->target * SLOTS + op->slot];
    MPI_Datatype basic = s->width == 4 ? MPI_INT32_T : MPI_INT64_T, near_type, far_type;
    int gap = op->strided ? 2 : 1;
    size_t bytes = (size_t)(s->count * s->width * gap);
    b->out = test_memory(bytes);
    b->in = test_memory(bytes);
    for (int i = 0; i < s->count; i++)
        store(b->out + i * gap * s->width, s->width, element(op->operands, i, s->width));
    MPI_Aint at = rma_at(&w, op->target, place(op->slot));
    if (op->kind == HISTORY_SWAP && !op->put && !op->get) {
        store(&b->compare, s->width, compare_of(op));
        MPI_Compare_and_swap(b->out, &b->compare, b->in, basic, op->target, at, w.win);
    } else if (s->count == 1 && op->fetches && !op->request) {
        MPI_Fetch_and_op(b->out, b->in, basic, op->target, at, op_of(op->kind), w.win);
    } else {
        MPI_Type_create_resized(basic, 0, gap * s->width, &near_type);
        MPI_Type_vector(s->count, 1, s->stride, basic, &far_type);
        MPI_Type_commit(&near_type);
        MPI_Type_commit(&far_type);
        (op->request ? call_request : call_plain)(op, b, s->count, near_type, far_type);
        MPI_Type_free(&near_type);
        MPI_Type_free(&far_type);
    }
}

/* All operations of this rank to one target, or to all (-1), in an order of the seed that keeps that of each slot. */
static void issue_all(struct buffers *buffers, int target)
{
    for (int i = 0; i < op_count; i++) {
        const struct op *op = &ops[i];
        if (op->origin != w.rank || (target >= 0 && op->target != target))
            continue;
        if (op->get && op->step > 0) /* of what was put before */
            MPI_Win_flush(op->target, w.win);
        issue(op, &buffers[i]);
        if (op->request && test_word(seed, (uint64_t)i) % 2)
            MPI_Wait(&buffers[i].request, MPI_STATUS_IGNORE);
        if (op->flush) {
            int how = (int)(test_word(seed, (uint64_t)i + 77) % 4);
            if (how < 2)
                (how ? MPI_Win_flush : MPI_Win_flush_local)(op->target, w.win);
            else
                (how == 2 ? MPI_Win_flush_all : MPI_Win_flush_local_all)(w.win);
        }
    }
    for (int i = 0; i < op_count; i++)
        if (buffers[i].request != MPI_REQUEST_NULL)
            MPI_Wait(&buffers[i].request, MPI_STATUS_IGNORE);
}

static MPI_Group partners(bool targets)
{
    MPI_Group all, some;
    int ranks[64], count = 0;
    for (int i = 0; i < w.size; i++)
        if (targets ? paired[w.rank * w.size + i] : paired[i * w.size + w.rank])
            ranks[count++] = i;
    MPI_Win_get_group(w.win, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

static void access_by_groups(struct buffers *buffers)
{
    MPI_Group to = partners(true), from = partners(false);
    int none_to, none_from;
    MPI_Group_size(to, &none_to);
    MPI_Group_size(from, &none_from);
    if (none_from)
        MPI_Win_post(from, 0, w.win);
    if (none_to) {
        MPI_Win_start(to, 0, w.win);
        issue_all(buffers, -1);
        MPI_Win_complete(w.win);
    }
    if (none_from)
        MPI_Win_wait(w.win);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

static void access_all(struct buffers *buffers)
{
    if (sync_kind == FENCE) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win);
        issue_all(buffers, -1);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
    } else if (sync_kind == GROUPS) {
        access_by_groups(buffers);
    } else if (sync_kind == LOCK_ALL) {
        MPI_Win_lock_all(0, w.win);
        issue_all(buffers, -1);
        MPI_Win_unlock_all(w.win);
    } else {
        for (int i = 0; i < w.size; i++) {
            int target = (w.rank * 3 + i) % w.size;
            MPI_Win_lock(sync_kind == EXCLUSIVE ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w.win);
            issue_all(buffers, target);
            MPI_Win_unlock(target, w.win);
        }
    }
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static void tell(int slot, int i, const struct history *h)
{
    const struct slot *s = &slots[w.rank * SLOTS + slot];
    char text[1200];
    int used =
        snprintf(text, sizeof text, "seed %llu, epoch %d, %s, flavor %d, slot %d, element %d of %d, was %llx is %llx:",
                 (unsigned long long)seed, epoch, SYNC_NAMES[sync_kind], (int)w.flavor, slot, i, s->count,
                 (unsigned long long)h->before, (unsigned long long)h->after);
    for (int origin = 0; origin < s->origin_count; origin++)
        for (int k = 0; k < h->count[origin] && used < 1000; k++) {
            const struct history_step *step = &h->steps[origin][k];
            used += snprintf(text + used, sizeof text - (size_t)used, " %d:%s(%llx)", s->origins[origin],
                             (const char *[]){"sum", "xor", "max", "replace", "none", "swap"}[step->kind],
                             (unsigned long long)step->operand);
            if (step->fetches)
                used += snprintf(text + used, sizeof text - (size_t)used, "=%llx", (unsigned long long)step->seen);
        }
    if (test_failures++ < TEST_STORIES)
        fprintf(stderr, "rank %d of %d: no order explains this: %s\n", test_rank, test_size, text);
}

/* What happened to one element here, of a slot that is not put. */
static struct history history_of(int slot, int i, const int *mine, int count)
{
    const struct slot *s = &slots[w.rank * SLOTS + slot];
    MPI_Aint at = place(slot) + (MPI_Aint)i * s->stride * s->width;
    struct history h = {.width = s->width, .whole = sync_kind == EXCLUSIVE};
    h.before = load(shadow + at, s->width);
    h.after = load(w.base + at, s->width);
    for (int k = 0; k < count; k++) {
        const struct op *op = &ops[mine[k]];
        int origin = 0;
        while (s->origins[origin] != op->origin)
            origin++;
        struct history_step step = {.kind = op->get ? HISTORY_NONE : op->put ? HISTORY_REPLACE : op->kind};
        step.fetches = op->result >= 0;
        step.operand = element(op->operands, i, s->width);
        step.compare = op->kind == HISTORY_SWAP ? compare_of(op) : 0;
        step.seen = step.fetches ? history_cut(&h, results[op->result + i]) : 0;
        h.steps[origin][h.count[origin]++] = step;
    }
    return h;
}

static void judge_slot(int slot)
{
    const struct slot *s = &slots[w.rank * SLOTS + slot];
    int mine[HISTORY_ORIGINS * HISTORY_EACH], count = 0;
    for (int i = 0; i < op_count; i++)
        if (ops[i].target == w.rank && ops[i].slot == slot)
            mine[count++] = i;
    for (int i = 0; s->usage != UNUSED && i < s->count; i++) {
        struct history h = history_of(slot, i, mine, count);
        if (!history_explained(&h)) {
            tell(slot, i, &h);
            break;
        }
    }
    /* What lies between and behind the elements is as it was. */
    MPI_Aint room = slot < SLOTS - LONG_SLOTS ? SHORT_ROOM : LONG_ROOM;
    for (MPI_Aint byte = 0; byte < room; byte++) {
        MPI_Aint at = place(slot) + byte, number = byte / s->width;
        bool used = s->usage != UNUSED && number % s->stride == 0 && number / s->stride < s->count;
        if (!used && w.base[at] != shadow[at]) {
            CHECK(false, "seed %llu, epoch %d, %s, flavor %d, slot %d: byte %td changed, of which nobody had anything",
                  (unsigned long long)seed, epoch, SYNC_NAMES[sync_kind], (int)w.flavor, slot, byte);
            break;
        }
    }
}

/* Everyone's results become known to all; each had its own words. */
static void collect(struct buffers *buffers)
{
    memset(results, 0, (size_t)result_words * 8);
    for (int i = 0; i < op_count; i++) {
        const struct slot *s = &slots[ops[i].target * SLOTS + ops[i].slot];
        int gap = ops[i].strided ? 2 : 1;
        size_t bytes = (size_t)(s->count * s->width * gap);
        if (!buffers[i].in)
            continue;
        for (int k = 0; ops[i].result >= 0 && k < s->count; k++)
            results[ops[i].result + k] = load(buffers[i].in + k * gap * s->width, s->width);
        bool clean = test_untouched(buffers[i].in + bytes, TEST_GUARD);
        for (int k = 0; ops[i].strided && k < s->count; k++)
            clean = clean && test_untouched(buffers[i].in + (2 * k + 1) * s->width, (size_t)s->width);
        CHECK(clean, "seed %llu, epoch %d: bytes beside a result were written", (unsigned long long)seed, epoch);
        free(buffers[i].in);
        free(buffers[i].out);
    }
    MPI_Allreduce(MPI_IN_PLACE, results, (int)result_words, MPI_INT64_T, MPI_BOR, w.comm);
}

static void one_epoch(void)
{
    plan();
    struct buffers *buffers = calloc((size_t)op_count + 1, sizeof *buffers);
    test_need(buffers != NULL, "there is no memory");
    for (int i = 0; i < op_count; i++)
        buffers[i].request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, w.win);
    for (int slot = 0; slot < SLOTS; slot++) {
        const struct slot *s = &slots[w.rank * SLOTS + slot];
        for (int i = 0; s->refreshed && i < s->count; i++)
            store(w.base + place(slot) + (MPI_Aint)i * s->stride * s->width, s->width,
                  element(first_of(w.rank, slot), i, s->width));
    }
    MPI_Win_unlock(w.rank, w.win);
    memcpy(shadow, w.base, WINDOW);
    MPI_Barrier(w.comm);
    access_all(buffers);
    MPI_Barrier(w.comm);
    collect(buffers);
    MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win);
    for (int slot = 0; slot < SLOTS; slot++)
        judge_slot(slot);
    MPI_Win_unlock(w.rank, w.win);
    MPI_Barrier(w.comm);
    free(buffers);
}

/* ---- a race ------------------------------------------------------------------------------------------------------ */

/* Everybody adds one to three cells of a rank, again and again, and sees what was there. Of each cell nobody may see
 * the same twice, nor anybody something smaller than before: many more operations than could be looked through above.
 */
static void race(void)
{
    int target = (int)(test_word(seed, (uint64_t)epoch + 5) % (uint64_t)w.size), all = w.size * TICKETS;
    int64_t ones[3] = {1, 1, 1}, (*seen)[3] = zeroed(TICKETS * sizeof *seen);
    unsigned char *drawn = zeroed((size_t)all * 3);
    MPI_Datatype every_other;
    MPI_Type_vector(3, 1, 2, MPI_INT64_T, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, w.win);
    memset(w.base, 0, 3 * 16);
    MPI_Win_unlock(w.rank, w.win);
    MPI_Barrier(w.comm);
    MPI_Win_lock_all(0, w.win);
    for (int i = 0; i < TICKETS; i++) {
        if (i % 3 == w.rank % 3)
            for (int k = 0; k < 3; k++)
                MPI_Fetch_and_op(ones, &seen[i][k], MPI_INT64_T, target, rma_at(&w, target, 16 * k), MPI_SUM, w.win);
        else
            MPI_Get_accumulate(ones, 3, MPI_INT64_T, seen[i], 3, MPI_INT64_T, target, rma_at(&w, target, 0), 1,
                               every_other, MPI_SUM, w.win);
        if (i % 8 == 7)
            MPI_Win_flush_local(target, w.win);
    }
    MPI_Win_unlock_all(w.win);
    for (int i = 0; i < TICKETS; i++)
        for (int k = 0; k < 3; k++) {
            CHECK(seen[i][k] >= 0 && seen[i][k] < all && (i == 0 || seen[i][k] > seen[i - 1][k]),
                  "seed %llu, epoch %d, flavor %d: %lld came after %lld in a race", (unsigned long long)seed, epoch,
                  (int)w.flavor, (long long)seen[i][k], i ? (long long)seen[i - 1][k] : -1);
            if (seen[i][k] >= 0 && seen[i][k] < all)
                drawn[3 * seen[i][k] + k]++;
        }
    MPI_Allreduce(MPI_IN_PLACE, drawn, 3 * all, MPI_UNSIGNED_CHAR, MPI_SUM, w.comm);
    for (int i = 0; i < 3 * all && w.rank == target; i++)
        if (drawn[i] != 1) {
            CHECK(false, "seed %llu, epoch %d, flavor %d: %d ranks saw %d in cell %d of a race",
                  (unsigned long long)seed, epoch, (int)w.flavor, drawn[i], i / 3, i % 3);
            break;
        }
    MPI_Type_free(&every_other);
    free(seen);
    free(drawn);
    MPI_Barrier(w.comm);
}

/* ---- the oracle itself ------------------------------------------------------------------------------------------- */

/* It explains what happened, and nothing else. */
static void try_oracle(void)
{
    struct history h = {.width = 8, .before = 10, .after = 15, .count = {1, 2}};
    h.steps[0][0] = (struct history_step){HISTORY_SUM, true, 2, 0, 11};
    h.steps[1][0] = (struct history_step){HISTORY_SUM, true, 1, 0, 10};
    h.steps[1][1] = (struct history_step){HISTORY_SUM, false, 2, 0, 0};
    CHECK(history_explained(&h), "a history that happened has no explanation");
    h.whole = true;
    CHECK(!history_explained(&h), "one came between two that were together");
    h.whole = false;
    h.steps[0][0].seen = 10;
    CHECK(!history_explained(&h), "two saw the same sum");
    h.steps[0][0].seen = 11;
    h.after = 13;
    CHECK(!history_explained(&h), "a sum was lost");
    struct history order = {.width = 4, .before = 0, .after = 5, .count = {2}};
    order.steps[0][0] = (struct history_step){HISTORY_REPLACE, false, 5, 0, 0};
    order.steps[0][1] = (struct history_step){HISTORY_REPLACE, false, 7, 0, 0};
    CHECK(!history_explained(&order), "two of one origin changed places");
    order.after = 7;
    CHECK(history_explained(&order), "two of one origin in their order have no explanation");
    struct history swap = {.width = 8, .before = 0, .after = 1, .count = {1, 1}};
    swap.steps[0][0] = (struct history_step){HISTORY_SWAP, true, 1, 0, 0};
    swap.steps[1][0] = (struct history_step){HISTORY_SWAP, true, 2, 0, 1};
    CHECK(history_explained(&swap), "of two swaps one was late");
    swap.steps[1][0].seen = 0;
    CHECK(!history_explained(&swap), "both of two swaps met");
}

int main(int argc, char **argv)
{
    static const int UNITS[] = {8, 1, 4, 2};
    test_begin(&argc, &argv);
    int epochs = argc > 1 ? atoi(argv[1]) : 30;
    double end = test_now() + (argc > 2 ? atof(argv[2]) : 20);
    seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)(test_now() * 1e6);
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    try_oracle();
    slots = zeroed((size_t)test_size * SLOTS * sizeof *slots);
    ops = zeroed(MAX_OPS * sizeof *ops);
    paired = zeroed((size_t)(test_size * test_size));
    results = zeroed(MAX_RESULTS * 8);
    shadow = zeroed(WINDOW);
    int more = 1;
    for (epoch = 0; epoch < epochs && more; epoch++) {
        if (epoch % PER_WINDOW == 0)
            rma_open(&w, (enum rma_flavor)(test_word(seed, (uint64_t)epoch) % RMA_FLAVORS), WINDOW,
                     UNITS[epoch / PER_WINDOW % 4]);
        one_epoch();
        if (epoch % PER_WINDOW == 1)
            race();
        bool last = epoch % PER_WINDOW == PER_WINDOW - 1 || epoch == epochs - 1;
        more = test_now() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (last || !more)
            rma_close(&w);
    }
    free(slots);
    free(ops);
    free(paired);
    free(results);
    free(shadow);
    return test_end();
}
