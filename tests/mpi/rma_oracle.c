/* A stress test of one-sided communication with an oracle: windows, epochs and accesses to all kinds of elements are
 * drawn from a seed (rma_plan.h). After each epoch the owner of a place looks whether what all have seen of it, and
 * what is there, has an explanation (rma_history.h), and whether nothing else was touched.
 *
 *     rma_oracle [EPOCHS [SECONDS [SEED]]]
 *
 * The seed is of the clock unless it is given, and is told when something fails. */
#include "rma.h"
#include "rma_plan.h"

#define PER_WINDOW   6    /* epochs */
#define TICKETS      300  /* that each rank draws in a race, of each cell, at least */
#define MOST_TICKETS 4000 /* that it draws if it is quick enough */
#define RACE_S       0.02
#define CELLS        3
#define APART        (2 * SHIFT) /* bytes from one cell to the next */

static struct plan p;
static struct rma_window w;
static int64_t *results;
static unsigned char *shadow;

/* ---- carrying it out --------------------------------------------------------------------------------------------- */

/* Buffers live until the end of the epoch. */
struct buffers {
    unsigned char *out, *in, compare[ELEMENT_MOST];
    MPI_Request request;
};

static void call_plain(const struct op *op, struct buffers *b, int count, MPI_Datatype near_type, MPI_Datatype far_type)
{
    MPI_Aint at = rma_at(&w, op->target, slot_of(&p, op->target, op->slot)->at);
    MPI_Op reduction = ELEMENT_OP[op->kind].op;
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
    MPI_Aint at = rma_at(&w, op->target, slot_of(&p, op->target, op->slot)->at);
    MPI_Op reduction = ELEMENT_OP[op->kind].op;
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
    const struct slot *s = slot_of(&p, op->target, op->slot);
    const struct element *e = s->element;
    MPI_Datatype near_type, far_type;
    int gap = op->strided ? 2 : 1;
    size_t bytes = (size_t)(s->count * e->bytes * gap);
    b->out = test_memory(bytes);
    b->in = test_memory(bytes);
    for (int i = 0; i < s->count; i++)
        element_store(e, b->out + i * gap * e->bytes, value_of(&p, s, op->operands, i));
    MPI_Aint at = rma_at(&w, op->target, s->at);
    if (op->kind == ELEMENT_SWAP) {
        element_store(e, b->compare, compare_of(&p, op));
        MPI_Compare_and_swap(b->out, b->compare, b->in, e->type, op->target, at, w.win);
    } else if (s->count == 1 && op->fetches && !op->request) {
        MPI_Fetch_and_op(b->out, b->in, e->type, op->target, at, ELEMENT_OP[op->kind].op, w.win);
    } else {
        MPI_Type_create_resized(e->type, 0, gap * e->bytes, &near_type);
        MPI_Type_vector(s->count, 1, s->stride, e->type, &far_type);
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
    for (int i = 0; i < p.op_count; i++) {
        const struct op *op = &p.ops[i];
        if (op->origin != w.rank || (target >= 0 && op->target != target))
            continue;
        if (op->get && op->step > 0) /* of what was put before */
            MPI_Win_flush(op->target, w.win);
        issue(op, &buffers[i]);
        if (op->request && test_word(p.seed, (uint64_t)i) % 2)
            MPI_Wait(&buffers[i].request, MPI_STATUS_IGNORE);
        if (op->flush) {
            int how = (int)(test_word(p.seed, (uint64_t)i + 77) % 4);
            if (how < 2)
                (how ? MPI_Win_flush : MPI_Win_flush_local)(op->target, w.win);
            else
                (how == 2 ? MPI_Win_flush_all : MPI_Win_flush_local_all)(w.win);
        }
    }
    for (int i = 0; i < p.op_count; i++)
        if (buffers[i].request != MPI_REQUEST_NULL)
            MPI_Wait(&buffers[i].request, MPI_STATUS_IGNORE);
}

static MPI_Group partners(bool targets)
{
    MPI_Group all, some;
    int ranks[64], count = 0;
    for (int i = 0; i < w.size; i++)
        if (targets ? p.paired[w.rank * w.size + i] : p.paired[i * w.size + w.rank])
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
    if (p.sync_kind == FENCE) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win);
        issue_all(buffers, -1);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
    } else if (p.sync_kind == GROUPS) {
        access_by_groups(buffers);
    } else if (p.sync_kind == LOCK_ALL) {
        MPI_Win_lock_all(0, w.win);
        issue_all(buffers, -1);
        MPI_Win_unlock_all(w.win);
    } else {
        for (int i = 0; i < w.size; i++) {
            int target = (w.rank * 3 + i) % w.size;
            MPI_Win_lock(p.sync_kind == EXCLUSIVE ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w.win);
            issue_all(buffers, target);
            MPI_Win_unlock(target, w.win);
        }
    }
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

/* Where something happened, for stories. */
static const char *where(int slot)
{
    static char text[200];
    const struct slot *s = slot_of(&p, w.rank, slot);
    snprintf(text, sizeof text, "seed %llu, epoch %d, %s, flavor %d, slot %d of %d %s", (unsigned long long)p.seed,
             p.epoch, SYNC_NAMES[p.sync_kind], (int)w.flavor, slot, s->count,
             s->element ? s->element->name : "nothing");
    return text;
}

static int tell_value(char *text, size_t room, const char *before, struct element_value value)
{
    return snprintf(text, room, value.second ? "%s%llx:%llx" : "%s%llx", before, (unsigned long long)value.first,
                    (unsigned long long)value.second);
}

static void tell(int slot, int i, const struct history *h)
{
    const struct slot *s = slot_of(&p, w.rank, slot);
    char text[2000];
    const size_t most = sizeof text;
    size_t used = (size_t)snprintf(text, most, "%s, element %d,", where(slot), i);
    used += (size_t)tell_value(text + used, most - used, " was ", h->before);
    used += (size_t)tell_value(text + used, most - used, " is ", h->after);
    for (int origin = 0; origin < s->origin_count; origin++)
        for (int k = 0; k < h->count[origin] && used < most - 200; k++) {
            const struct history_step *step = &h->steps[origin][k];
            used +=
                (size_t)snprintf(text + used, most - used, "; %d: %s", s->origins[origin], ELEMENT_OP[step->op].name);
            used += (size_t)tell_value(text + used, most - used, " ", step->operand);
            if (step->op == ELEMENT_SWAP)
                used += (size_t)tell_value(text + used, most - used, " if ", step->compare);
            if (step->fetches)
                used += (size_t)tell_value(text + used, most - used, " saw ", step->seen);
        }
    if (test_failures++ < TEST_STORIES)
        fprintf(stderr, "rank %d of %d: no order explains this: %s\n", test_rank, test_size, text);
}

/* What happened to one element here. */
static struct history history_of(int slot, int i, const int *mine, int count)
{
    const struct slot *s = slot_of(&p, w.rank, slot);
    const struct element *e = s->element;
    MPI_Aint at = s->at + (MPI_Aint)i * s->stride * e->bytes;
    struct history h = {.element = e, .whole = p.sync_kind == EXCLUSIVE};
    h.before = element_load(e, shadow + at);
    h.after = element_load(e, w.base + at);
    for (int k = 0; k < count; k++) {
        const struct op *op = &p.ops[mine[k]];
        int origin = 0;
        while (s->origins[origin] != op->origin)
            origin++;
        struct history_step step = {.op = op->get ? ELEMENT_NO_OP : op->kind, .fetches = op->result >= 0};
        step.operand = value_of(&p, s, op->operands, i);
        if (op->kind == ELEMENT_SWAP)
            step.compare = compare_of(&p, op);
        const int64_t *seen = results + op->result + (int64_t)i * e->numbers;
        if (step.fetches)
            step.seen = (struct element_value){seen[0], e->numbers == 2 ? seen[1] : 0};
        h.steps[origin][h.count[origin]++] = step;
    }
    return h;
}

static void judge_slot(int slot)
{
    const struct slot *s = slot_of(&p, w.rank, slot);
    int mine[HISTORY_ORIGINS * HISTORY_EACH], count = 0;
    for (int i = 0; i < p.op_count; i++)
        if (p.ops[i].target == w.rank && p.ops[i].slot == slot)
            mine[count++] = i;
    for (int i = 0; i < s->count; i++) {
        struct history h = history_of(slot, i, mine, count);
        if (!history_explained(&h)) {
            tell(slot, i, &h);
            break;
        }
    }
    /* What lies before, between and behind the elements is as it was. */
    for (int i = 0; i < s->count; i++) {
        MPI_Aint at = s->at + (MPI_Aint)i * s->stride * s->element->bytes;
        element_copy(s->element, shadow + at, w.base + at);
    }
    if (memcmp(w.base + slot_place(slot), shadow + slot_place(slot), (size_t)slot_room(slot)) == 0)
        return;
    MPI_Aint at = slot_place(slot);
    while (w.base[at] == shadow[at])
        at++;
    CHECK(false, "%s: byte %td changed, of which nobody had anything", where(slot), at - slot_place(slot));
}

/* What an operation has got becomes known, and nothing beside it was written. */
static void collect_one(const struct op *op, unsigned char *in)
{
    const struct slot *s = slot_of(&p, op->target, op->slot);
    const struct element *e = s->element;
    unsigned char untouched[ELEMENT_MOST];
    int gap = op->strided ? 2 : 1;
    memset(untouched, TEST_UNTOUCHED, sizeof untouched);
    for (int k = 0; op->result >= 0 && k < s->count; k++) {
        unsigned char *at = in + k * gap * e->bytes;
        struct element_value value = element_load(e, at);
        int64_t *to = results + op->result + (int64_t)k * e->numbers;
        to[0] = value.first;
        if (e->numbers == 2)
            to[1] = value.second;
        element_copy(e, at, untouched);
    }
    CHECK(test_untouched(in, (size_t)(s->count * gap * e->bytes) + TEST_GUARD),
          "seed %llu, epoch %d: bytes beside a result of %s were written", (unsigned long long)p.seed, p.epoch,
          e->name);
}

/* Everyone's results become known to all; each had its own words. */
static void collect(struct buffers *buffers)
{
    memset(results, 0, (size_t)p.result_words * 8);
    for (int i = 0; i < p.op_count; i++) {
        if (buffers[i].in)
            collect_one(&p.ops[i], buffers[i].in);
        free(buffers[i].in);
        free(buffers[i].out);
    }
    MPI_Allreduce(MPI_IN_PLACE, results, (int)p.result_words, MPI_INT64_T, MPI_BOR, w.comm);
}

/* The owner of places stores known values in some. */
static void refresh(void)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, w.win);
    for (int slot = 0; slot < SLOTS; slot++) {
        const struct slot *s = slot_of(&p, w.rank, slot);
        for (int i = 0; s->refreshed && i < s->count; i++)
            element_store(s->element, w.base + s->at + (MPI_Aint)i * s->stride * s->element->bytes,
                          value_of(&p, s, first_of(&p, w.rank, slot), i));
    }
    MPI_Win_unlock(w.rank, w.win);
    memcpy(shadow, w.base, WINDOW);
}

static void one_epoch(int epoch)
{
    plan_epoch(&p, epoch, w.size);
    struct buffers *buffers = zeroed(((size_t)p.op_count + 1) * sizeof *buffers);
    for (int i = 0; i < p.op_count; i++)
        buffers[i].request = MPI_REQUEST_NULL;
    refresh();
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

/* An element of the seed that can count to `most`. */
static const struct element *counter(int64_t most)
{
    uint64_t first = test_word(p.seed, (uint64_t)p.epoch + 6);
    for (uint64_t i = 0;; i++) {
        const struct element *e = &ELEMENTS[(first + i) % ELEMENT_KINDS];
        const struct element_value last = element_cut(e, (struct element_value){most, 0});
        if ((ELEMENT_OP[ELEMENT_SUM].groups & (int)e->group) != 0 && last.first == most)
            return e;
    }
}

/* How many tickets this rank has drawn; `seen` has room for the elements. So many that ranks meet: where an operation
 * takes a microsecond, few would be done before the next rank begins. */
static int draw_tickets(const struct element *e, int target, unsigned char *seen)
{
    unsigned char ones[CELLS * ELEMENT_MOST];
    MPI_Datatype cells;
    double end = test_now() + RACE_S;
    int i = 0;
    for (int k = 0; k < CELLS; k++)
        element_store(e, ones + k * e->bytes, (struct element_value){1, 1});
    MPI_Type_create_hvector(CELLS, 1, APART, e->type, &cells);
    MPI_Type_commit(&cells);
    MPI_Win_lock_all(0, w.win);
    for (; i < TICKETS || (i < MOST_TICKETS && test_now() < end); i++, seen += CELLS * e->bytes) {
        if (i % 3 == w.rank % 3)
            for (int k = 0; k < CELLS; k++)
                MPI_Fetch_and_op(ones, seen + k * e->bytes, e->type, target, rma_at(&w, target, (MPI_Aint)APART * k),
                                 MPI_SUM, w.win);
        else
            MPI_Get_accumulate(ones, CELLS, e->type, seen, CELLS, e->type, target, rma_at(&w, target, 0), 1, cells,
                               MPI_SUM, w.win);
        if (i % 8 == 7)
            MPI_Win_flush_local(target, w.win);
    }
    MPI_Win_unlock_all(w.win);
    MPI_Type_free(&cells);
    return i;
}

/* Everybody adds one to some cells of a rank, again and again, and sees what was there. Of each cell nobody may see the
 * same twice, nor anybody something smaller than before: many more operations than could be looked through above. */
static void race(void)
{
    int target = (int)(test_word(p.seed, (uint64_t)p.epoch + 5) % (uint64_t)w.size), all;
    const struct element *e = counter((int64_t)w.size * MOST_TICKETS);
    unsigned char *seen = zeroed((size_t)(MOST_TICKETS * CELLS * e->bytes));
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, w.win);
    memset(w.base, 0, CELLS * APART);
    MPI_Win_unlock(w.rank, w.win);
    MPI_Barrier(w.comm);
    int mine = draw_tickets(e, target, seen);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, w.comm);
    unsigned char *drawn = zeroed((size_t)all * CELLS);
    int64_t before[CELLS] = {-1, -1, -1};
    for (int i = 0; i < mine * CELLS; i++) {
        struct element_value ticket = element_load(e, seen + i * e->bytes);
        bool known = ticket.first >= 0 && ticket.first < all && ticket.second == (e->numbers == 2 ? ticket.first : 0);
        CHECK(known && ticket.first > before[i % CELLS],
              "seed %llu, epoch %d, flavor %d: %lld of %s came after %lld in a race", (unsigned long long)p.seed,
              p.epoch, (int)w.flavor, (long long)ticket.first, e->name, (long long)before[i % CELLS]);
        before[i % CELLS] = ticket.first;
        if (known)
            drawn[CELLS * ticket.first + i % CELLS]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, drawn, CELLS * all, MPI_UNSIGNED_CHAR, MPI_SUM, w.comm);
    for (int i = 0; i < CELLS * all && w.rank == target; i++)
        if (drawn[i] != 1) {
            CHECK(false, "seed %llu, epoch %d, flavor %d: %d ranks saw %d in cell %d of a race, of %s",
                  (unsigned long long)p.seed, p.epoch, (int)w.flavor, drawn[i], i / CELLS, i % CELLS, e->name);
            break;
        }
    free(seen);
    free(drawn);
    MPI_Barrier(w.comm);
}

/* ---- the oracle itself ------------------------------------------------------------------------------------------- */

/* It explains what happened, and nothing else. */
static void try_oracle(void)
{
    struct history h = {.element = element_of(MPI_INT64_T), .before = {10, 0}, .after = {15, 0}, .count = {1, 2}};
    h.steps[0][0] = (struct history_step){ELEMENT_SUM, true, {2, 0}, {0, 0}, {11, 0}};
    h.steps[1][0] = (struct history_step){ELEMENT_SUM, true, {1, 0}, {0, 0}, {10, 0}};
    h.steps[1][1] = (struct history_step){ELEMENT_SUM, false, {2, 0}, {0, 0}, {0, 0}};
    CHECK(history_explained(&h), "a history that happened has no explanation");
    h.whole = true;
    CHECK(!history_explained(&h), "one came between two that were together");
    h.whole = false;
    h.steps[0][0].seen.first = 10;
    CHECK(!history_explained(&h), "two saw the same sum");
    h.steps[0][0].seen.first = 11;
    h.after.first = 13;
    CHECK(!history_explained(&h), "a sum was lost");
    struct history order = {.element = element_of(MPI_2INT), .before = {0, 0}, .after = {5, 1}, .count = {2}};
    order.steps[0][0] = (struct history_step){ELEMENT_REPLACE, false, {5, 1}, {0, 0}, {0, 0}};
    order.steps[0][1] = (struct history_step){ELEMENT_REPLACE, false, {5, 2}, {0, 0}, {0, 0}};
    CHECK(!history_explained(&order), "two of one origin changed places");
    order.after.second = 2;
    CHECK(history_explained(&order), "two of one origin in their order have no explanation");
    struct history swap = {.element = element_of(MPI_AINT), .before = {0, 0}, .after = {1, 0}, .count = {1, 1}};
    swap.steps[0][0] = (struct history_step){ELEMENT_SWAP, true, {1, 0}, {0, 0}, {0, 0}};
    swap.steps[1][0] = (struct history_step){ELEMENT_SWAP, true, {2, 0}, {0, 0}, {1, 0}};
    CHECK(history_explained(&swap), "of two swaps one was late");
    swap.steps[1][0].seen.first = 0;
    CHECK(!history_explained(&swap), "both of two swaps met");
}

/* What operations make of two values, where they could be taken for something else. */
static void try_operations(void)
{
    static const struct {
        MPI_Datatype type;
        enum element_op op;
        struct element_value operand, there, next;
    } KNOWN[] = {
        {MPI_INT8_T, ELEMENT_SUM, {100, 0}, {100, 0}, {-56, 0}},
        {MPI_UINT8_T, ELEMENT_SUM, {100, 0}, {200, 0}, {44, 0}},
        {MPI_INT16_T, ELEMENT_PROD, {300, 0}, {-300, 0}, {-24464, 0}},
        {MPI_INT8_T, ELEMENT_MAX, {-1, 0}, {1, 0}, {1, 0}},
        {MPI_UINT64_T, ELEMENT_MAX, {-1, 0}, {1, 0}, {-1, 0}},
        {MPI_UINT64_T, ELEMENT_MIN, {-1, 0}, {1, 0}, {1, 0}},
        {MPI_UINT16_T, ELEMENT_LAND, {256, 0}, {2, 0}, {1, 0}},
        {MPI_INT32_T, ELEMENT_LOR, {0, 0}, {-4, 0}, {1, 0}},
        {MPI_C_BOOL, ELEMENT_LXOR, {1, 0}, {1, 0}, {0, 0}},
        {MPI_BYTE, ELEMENT_BXOR, {0xF0, 0}, {0xFF, 0}, {0x0F, 0}},
        {MPI_COUNT, ELEMENT_BAND, {-2, 0}, {7, 0}, {6, 0}},
        {MPI_OFFSET, ELEMENT_BOR, {8, 0}, {-16, 0}, {-8, 0}},
        {MPI_FLOAT, ELEMENT_PROD, {-2, 0}, {3, 0}, {-6, 0}},
        {MPI_C_DOUBLE_COMPLEX, ELEMENT_SUM, {1, 2}, {3, -1}, {4, 1}},
        {MPI_C_DOUBLE_COMPLEX, ELEMENT_PROD, {1, 2}, {3, -1}, {5, 5}},
        {MPI_SHORT_INT, ELEMENT_MINLOC, {-3, 9}, {2, 1}, {-3, 9}},
        {MPI_LONG_INT, ELEMENT_MAXLOC, {-3, 9}, {2, 1}, {2, 1}},
        {MPI_LONG_DOUBLE_INT, ELEMENT_MINLOC, {2, 9}, {2, 1}, {2, 1}},
        {MPI_LONG_DOUBLE_INT, ELEMENT_MAXLOC, {2, -9}, {2, 1}, {2, -9}},
        {MPI_DOUBLE_INT, ELEMENT_NO_OP, {2, 1}, {3, 4}, {3, 4}},
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        const struct element *e = element_of(KNOWN[i].type);
        const struct element_value next =
            element_next(e, KNOWN[i].op, KNOWN[i].operand, (struct element_value){0, 0}, KNOWN[i].there);
        CHECK(element_equal(next, KNOWN[i].next), "%lld and %lld of %s by %s", (long long)next.first,
              (long long)next.second, e->name, ELEMENT_OP[KNOWN[i].op].name);
    }
    double half = 0.5;
    CHECK_EQUAL(element_load(element_of(MPI_DOUBLE), &half).first, NUMBER_NONE);
}

int main(int argc, char **argv)
{
    static const int UNITS[] = {8, 1, 4, 2};
    test_begin(&argc, &argv);
    int epochs = argc > 1 ? atoi(argv[1]) : 30;
    double end = test_now() + (argc > 2 ? atof(argv[2]) : 20);
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)(test_now() * 1e6);
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    try_oracle();
    try_operations();
    plan_open(&p, seed, test_size);
    results = zeroed(MAX_RESULTS * 8);
    shadow = zeroed(WINDOW);
    int more = 1;
    for (int epoch = 0; epoch < epochs && more; epoch++) {
        if (epoch % PER_WINDOW == 0)
            rma_open(&w, (enum rma_flavor)(test_word(seed, (uint64_t)epoch) % RMA_FLAVORS), WINDOW,
                     UNITS[epoch / PER_WINDOW % 4]);
        one_epoch(epoch);
        if (epoch % PER_WINDOW == 1)
            race();
        bool last = epoch % PER_WINDOW == PER_WINDOW - 1 || epoch == epochs - 1;
        more = test_now() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (last || !more)
            rma_close(&w);
    }
    plan_close(&p);
    free(results);
    free(shadow);
    return test_end();
}
