/* Composite steps between engines of one process over real shared memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "engine/engine_state.h"

#define RANKS     8
#define ROOM      (600u << 10)
#define IN_FLIGHT 40

enum { OP_SUM = 0x21, OP_BOR = 0x29 }; /* handles of the ABI */

/* A host of ranks, each with a channel on the first board. */
struct host {
    uint32_t ranks;
    size_t bytes;
    void *segment;
    uint32_t procs[RANKS];
    int bells[RANKS];
    struct tb_engine *engines[RANKS];
    struct tb_channel *channels[RANKS];
};

#define FIRST tb_context_make(0, 0, 1, TB_PLANE_POINT)

static bool is_local(void *context, struct tb_proc proc)
{
    return true;
}

static unsigned char in[RANKS][ROOM], out[RANKS][ROOM];

static void channel_make(struct host *h, uint32_t rank, uint64_t context, struct tb_channel **channel)
{
    struct tb_channel_config c = {.context = context, .size = h->ranks, .rank = rank, .common = true};
    assert_int_equal(tb_channel_open(h->engines[rank], &c, channel), TB_OK);
}

static void host_open(struct host *h, uint32_t ranks)
{
    assert_int_equal(tb_param_load(), TB_OK);
    *h = (struct host){.ranks = ranks, .bytes = tb_shm_segment_bytes(ranks)};
    h->segment = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(h->segment, MAP_FAILED);
    for (uint32_t i = 0; i < ranks; i++) {
        h->procs[i] = i;
        h->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        struct tb_engine_config config = {.transport = {.self = {7, i},
                                                        .segment = h->segment,
                                                        .segment_bytes = h->bytes,
                                                        .local_index = i,
                                                        .local_count = ranks,
                                                        .local_procs = h->procs,
                                                        .doorbells = h->bells},
                                          .processes = ranks,
                                          .use_shm = true,
                                          .is_local = is_local,
                                          .control = -1};
        assert_int_equal(tb_engine_open(&config, &h->engines[i]), TB_OK);
        tb_engine_claim(h->engines[i], FIRST, true);
        channel_make(h, i, FIRST, &h->channels[i]);
        assert_true(tb_channel_common(h->channels[i]));
    }
}

static void host_close(struct host *h)
{
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_channel_close(h->channels[i]);
    for (uint32_t i = 0; i < h->ranks; i++) {
        tb_engine_close(h->engines[i]);
        close(h->bells[i]);
    }
    munmap(h->segment, h->bytes);
}

static void host_settle(struct host *h)
{
    for (int quiet = 0; quiet < 70;) { /* whether another has passed by is not looked at each time */
        int n = 0;
        for (uint32_t i = 0; i < h->ranks; i++)
            n += tb_engine_progress(h->engines[i]);
        quiet = n == 0 ? quiet + 1 : 0;
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

#define KINDS 4 /* those about blocks, and scans, are tested in exchange_test.c */
static const enum tb_operation operations[KINDS] = {TB_OPERATION_BARRIER, TB_OPERATION_BCAST, TB_OPERATION_REDUCE,
                                                    TB_OPERATION_ALLREDUCE};

struct call {
    enum tb_composite what;
    uint32_t root;
    uint64_t count;
    const struct tb_type *type;
    const struct tb_op *op;
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
};

static void call_make(struct call *c, enum tb_composite what, uint32_t rank, uint32_t root, uint64_t count,
                      const struct tb_type *type, const struct tb_op *op)
{
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT}, data = {TB_SYMBOL_OUT, 0, 1, 1};
    const struct tb_slice mine = {TB_SYMBOL_IN, 0, 1, 1};
    const struct tb_contract contract = {.composite = (uint8_t)what, .driver = TB_DRIVER_COMMON};
    bool barrier = what == TB_COMPOSITE_BARRIER, bcast = what == TB_COMPOSITE_BCAST, is_root = rank == root;
    struct tb_builder b;
    *c = (struct call){.what = what, .root = root, .count = count, .type = type, .op = op};
    tb_builder_open(&b, barrier ? 0 : 1);
    tb_builder_composite(&b, &contract, root,
                         barrier ? nothing
                         : bcast ? (is_root ? data : nothing)
                                 : mine,
                         barrier                       ? nothing
                         : bcast                       ? (is_root ? nothing : data)
                         : what == TB_COMPOSITE_REDUCE ? (is_root ? data : nothing)
                                                       : data);
    assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
    c->binding = (struct tb_binding){.operation = (uint8_t)operations[what],
                                     .elements = barrier ? 0 : count,
                                     .element_bytes = type->size,
                                     .piece = count,
                                     .op = barrier || bcast ? NULL : op};
    c->binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){in[rank], count, type};
    c->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){out[rank], count, type};
}

static void call_post(struct host *h, struct call *c, uint32_t rank)
{
    tb_program_post(h->channels[rank], &c->request, c->program, &c->binding);
}

static void call_end(struct call *c, int error)
{
    assert_true(tb_request_done(&c->request));
    assert_int_equal(c->request.status.error, error);
    tb_program_free(c->program);
}

/* Everyone calls the same, in turn, the last ones first. */
static void calls_run(struct host *h, enum tb_composite what, uint32_t root, uint64_t count, const struct tb_type *type,
                      const struct tb_op *op)
{
    static struct call calls[RANKS];
    for (uint32_t rank = h->ranks; rank-- > 0;) {
        call_make(&calls[rank], what, rank, root, count, type, op);
        call_post(h, &calls[rank], rank);
        assert_true(rank == 0 || what != TB_COMPOSITE_BARRIER || !tb_request_done(&calls[rank].request));
    }
    host_settle(h);
    for (uint32_t rank = 0; rank < h->ranks; rank++)
        call_end(&calls[rank], TB_OK);
}

/* ---- an operation in which order matters ------------------------------------------------------------------------- */

/* Maps x -> ax + b of numbers modulo 2^32, one after the other. */
struct map {
    uint32_t a, b;
};

static struct map map_join(struct map first, struct map second)
{
    return (struct map){first.a * second.a, first.b * second.a + second.b};
}

static void maps_join(void *context, void *first, void *into, int count, uintptr_t type)
{
    const struct map *x = first;
    struct map *y = into;
    for (int i = 0; i < count; i++)
        y[i] = map_join(x[i], y[i]);
}

/* The same with gaps between the two numbers and behind them. */
struct wide {
    uint32_t a, gap[3], b, behind;
};

static void wides_join(void *context, void *first, void *into, int count, uintptr_t type)
{
    const struct wide *x = first;
    struct wide *y = into;
    for (int i = 0; i < count; i++) {
        struct map m = map_join((struct map){x[i].a, x[i].b}, (struct map){y[i].a, y[i].b});
        y[i].a = m.a;
        y[i].b = m.b;
    }
}

static struct map map_of(uint32_t rank, uint64_t i)
{
    return (struct map){(uint32_t)(i * 2654435761u) + 2 * rank + 1, (uint32_t)i * 97 + rank};
}

static struct map map_all(uint32_t ranks, uint64_t i)
{
    struct map m = map_of(0, i);
    for (uint32_t rank = 1; rank < ranks; rank++)
        m = map_join(m, map_of(rank, i));
    return m;
}

static void map_type_make(struct tb_type **type, bool wide)
{
    const int64_t lengths[] = {1, 1}, places[] = {0, 16}, close_by[] = {0, 4};
    const struct tb_type *types[] = {tb_type_match_size(TB_CLASS_INTEGER, 4), tb_type_match_size(TB_CLASS_INTEGER, 4)};
    struct tb_type *raw;
    assert_int_equal(types[0]->size, 4);
    assert_int_equal(tb_type_struct(2, (struct tb_numbers){lengths, true},
                                    (struct tb_numbers){wide ? places : close_by, true}, types, true, &raw),
                     TB_OK);
    assert_int_equal(tb_type_resized(raw, 0, wide ? sizeof(struct wide) : sizeof(struct map), true, type), TB_OK);
    tb_type_release(raw);
    tb_type_commit(*type);
}

static const uint64_t counts[] = {0, 1, 3, 252, 253, 600, 2048, 5000, 20000};

static void maps_fill(uint32_t ranks, uint64_t count, bool wide)
{
    memset(out, 0x5a, sizeof out);
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint64_t i = 0; i < count; i++) {
            struct map m = map_of(rank, i);
            if (wide)
                ((struct wide *)in[rank])[i] = (struct wide){.a = m.a, .b = m.b};
            else
                ((struct map *)in[rank])[i] = m;
        }
}

static void maps_check(uint32_t ranks, uint32_t rank, uint64_t count, bool wide)
{
    for (uint64_t i = 0; i < count; i++) {
        struct map want = map_all(ranks, i), is = ((struct map *)out[rank])[i];
        if (wide) {
            const struct wide *w = &((struct wide *)out[rank])[i];
            is = (struct map){w->a, w->b};
            assert_int_equal(w->gap[1], 0x5a5a5a5a);
            assert_int_equal(w->behind, 0x5a5a5a5a);
        }
        assert_true(want.a == is.a && want.b == is.b);
    }
}

static void untouched(uint32_t rank, uint64_t from)
{
    for (uint64_t i = from; i < from + 4096 && i < ROOM; i++)
        assert_int_equal(out[rank][i], 0x5a);
}

static void reduce_maps(bool wide)
{
    struct tb_type *type;
    const struct tb_op *op;
    map_type_make(&type, wide);
    assert_int_equal(tb_op_create(wide ? wides_join : maps_join, NULL, NULL, false, &op), TB_OK);
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += ranks == 3 ? 5 : 1) {
        struct host h;
        host_open(&h, ranks);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            uint32_t root = (uint32_t)i % ranks;
            maps_fill(ranks, counts[i], wide);
            calls_run(&h, TB_COMPOSITE_REDUCE, root, counts[i], type, op);
            for (uint32_t rank = 0; rank < ranks; rank++)
                if (rank == root)
                    maps_check(ranks, rank, counts[i], wide);
                else
                    untouched(rank, 0);
            maps_fill(ranks, counts[i], wide);
            calls_run(&h, TB_COMPOSITE_ALLREDUCE, 0, counts[i], type, op);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                maps_check(ranks, rank, counts[i], wide);
                untouched(rank, counts[i] * (wide ? sizeof(struct wide) : sizeof(struct map)));
            }
        }
        host_close(&h);
    }
    tb_op_drop(op);
    tb_type_release(type);
}

static void reductions_in_order(void **state)
{
    reduce_maps(false);
}

static void reductions_with_gaps(void **state)
{
    reduce_maps(true);
}

/* Sums of numbers that round differently in another order: all ranks have the same bits. */
static void sums_are_equal(void **state)
{
    const struct tb_type *type = tb_type_match_size(TB_CLASS_REAL, 8);
    const struct tb_op *sum = tb_op_predefined(OP_SUM);
    struct host h;
    host_open(&h, 5);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        for (uint32_t rank = 0; rank < 5; rank++)
            for (uint64_t i = 0; i < counts[k]; i++)
                ((double *)in[rank])[i] = 1.0 / (double)(3 * i + 7 * rank + 1);
        calls_run(&h, TB_COMPOSITE_ALLREDUCE, 0, counts[k], type, sum);
        for (uint64_t i = 0; i < counts[k]; i++) {
            double want = ((double *)in[4])[i];
            for (uint32_t rank = 4; rank-- > 0;)
                want = ((double *)in[rank])[i] + want;
            assert_memory_equal(&((double *)out[0])[i], &want, sizeof want);
        }
        for (uint32_t rank = 1; rank < 5; rank++)
            assert_memory_equal(out[rank], out[0], counts[k] * 8);
    }
    host_close(&h);
}

static void bcast_fill(uint32_t ranks, uint32_t root, uint64_t bytes, uint32_t seed)
{
    memset(out, 0x5a, sizeof out);
    for (uint64_t i = 0; i < bytes; i++)
        out[root][i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static void broadcasts(void **state)
{
    static const uint64_t sizes[] = {0, 1, 8, TB_BOARD_SHORT, TB_BOARD_SHORT + 1, 5000, 40000, 131072, 300001, ROOM};
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += 3) {
        struct host h;
        host_open(&h, ranks);
        for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
            uint32_t root = (uint32_t)i % ranks;
            uint64_t bytes = sizes[i / 2];
            bcast_fill(ranks, root, bytes, (uint32_t)i);
            calls_run(&h, TB_COMPOSITE_BCAST, root, bytes, &tb_type_byte, NULL);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                assert_memory_equal(out[rank], out[root], bytes);
                untouched(rank, bytes);
            }
            calls_run(&h, TB_COMPOSITE_BARRIER, 0, 0, &tb_type_byte, NULL);
        }
        host_close(&h);
    }
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

/* One rank starts everything before the others do, more than there are cells; they come one after the other. */
static void many_in_flight(void **state)
{
    static struct call calls[RANKS][IN_FLIGHT];
    static unsigned char data[RANKS][IN_FLIGHT][40000];
    struct host h;
    host_open(&h, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            struct call *c = &calls[rank][i];
            enum tb_composite what = i % 5 == 4 ? TB_COMPOSITE_BARRIER : TB_COMPOSITE_BCAST;
            call_make(c, what, rank, i % 3, i % 7 == 3 ? sizeof data[0][0] : i + 1, &tb_type_byte, NULL);
            memset(data[rank][i], rank == i % 3 ? (int)i : 0xff, sizeof data[rank][i]);
            c->binding.buffers[TB_SYMBOL_OUT].base = data[rank][i];
            call_post(&h, c, rank);
            if (rank == 1 && i % 3 == 0)
                host_settle(&h);
        }
        host_settle(&h);
    }
    for (uint32_t rank = 0; rank < 3; rank++)
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            const struct call *c = &calls[rank][i];
            for (uint64_t k = 0; k < c->count && c->what == TB_COMPOSITE_BCAST; k++)
                assert_int_equal(data[rank][i][k], i);
            call_end(&calls[rank][i], TB_OK);
        }
    host_close(&h);
}

/* As if so many collectives had been called; none of those that are left out may have renewed counters. */
static void host_age(struct host *h, uint64_t number)
{
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        struct tb_board *b = h->channels[rank]->board;
        b->started = b->least = number;
        atomic_store(&tb_board_member_of(b, rank)->done.value, number);
    }
}

/* Of each kind one, the data being short or not. */
static void kinds_run(struct host *h, bool is_long)
{
    const struct tb_type *type = tb_type_match_size(TB_CLASS_INTEGER, 8);
    const struct tb_op *op = tb_op_predefined(OP_BOR);
    uint64_t count = is_long ? ROOM / 8 : 1;
    for (int what = 0; what < 2 * KINDS; what++) {
        uint32_t root = (uint32_t)what / KINDS;
        memset(out, 0x5a, sizeof out);
        for (uint32_t rank = 0; rank < h->ranks; rank++)
            for (uint64_t i = 0; i < count; i++)
                ((uint64_t *)in[rank])[i] = (uint64_t)1 << (rank * 8 + i % 8);
        if (what % KINDS == TB_COMPOSITE_BCAST)
            bcast_fill(h->ranks, root, count * 8, (uint32_t)what);
        calls_run(h, (enum tb_composite)(what % KINDS), root, count, type, op);
        for (uint32_t rank = 0; rank < h->ranks; rank++) {
            if (what % KINDS == TB_COMPOSITE_BCAST)
                assert_memory_equal(out[rank], out[root], count * 8);
            if (what % KINDS != TB_COMPOSITE_ALLREDUCE && (what % KINDS != TB_COMPOSITE_REDUCE || rank != root))
                continue;
            for (uint64_t i = 0; i < count; i++)
                for (uint32_t k = 0; k < h->ranks; k++)
                    assert_int_equal(out[rank][i * 8 + k], 1 << i % 8);
        }
    }
}

/* Billions of collectives, nearly all of them short, so that counters of fragments are rarely used. */
static void numbers_grow(void **state)
{
    for (uint32_t ranks = 2; ranks <= 3; ranks++)
        for (uint64_t apart = 2; apart <= 4; apart++) {
            struct host h;
            host_open(&h, ranks);
            for (uint64_t age = 1; age <= 9; age++) {
                host_age(&h, age * TB_BOARD_AGE - 3);
                kinds_run(&h, age % apart == 0);
            }
            host_close(&h);
        }
}

/* ---- disagreement ------------------------------------------------------------------------------------------------ */

static void differ(struct host *h, const enum tb_composite *what, const uint64_t *bytes, uint32_t root,
                   const int *errors)
{
    struct call calls[3];
    for (uint32_t rank = 0; rank < 3; rank++) {
        call_make(&calls[rank], what[rank], rank, root, bytes[rank], &tb_type_byte, tb_op_predefined(OP_BOR));
        call_post(h, &calls[rank], rank);
    }
    host_settle(h);
    for (uint32_t rank = 0; rank < 3; rank++)
        call_end(&calls[rank], errors[rank]);
    /* What comes afterwards works. */
    bcast_fill(3, 1, 70000, 1);
    calls_run(h, TB_COMPOSITE_BCAST, 1, 70000, &tb_type_byte, NULL);
    assert_memory_equal(out[0], out[1], 70000);
    calls_run(h, TB_COMPOSITE_BARRIER, 0, 0, &tb_type_byte, NULL);
}

static void disagreement_ends(void **state)
{
    const enum tb_composite barrier = TB_COMPOSITE_BARRIER, bcast = TB_COMPOSITE_BCAST, reduce = TB_COMPOSITE_REDUCE,
                            all = TB_COMPOSITE_ALLREDUCE;
    const int mismatch = TB_ERR_MISMATCH, truncate = TB_ERR_TRUNCATE;
    struct host h;
    host_open(&h, 3);
    differ(&h, (enum tb_composite[]){bcast, bcast, bcast}, (uint64_t[]){100, 50, 200}, 0,
           (int[]){TB_OK, truncate, mismatch});
    differ(&h, (enum tb_composite[]){bcast, bcast, bcast}, (uint64_t[]){500000, 50, 500000}, 0,
           (int[]){TB_OK, truncate, TB_OK});
    differ(&h, (enum tb_composite[]){bcast, bcast, bcast}, (uint64_t[]){500000, 500001, 500000}, 0,
           (int[]){TB_OK, mismatch, TB_OK});
    differ(&h, (enum tb_composite[]){barrier, bcast, bcast}, (uint64_t[]){0, 8, 8}, 2, (int[]){mismatch, TB_OK, TB_OK});
    differ(&h, (enum tb_composite[]){bcast, barrier, barrier}, (uint64_t[]){8, 0, 0}, 0,
           (int[]){TB_OK, mismatch, mismatch});
    differ(&h, (enum tb_composite[]){reduce, reduce, reduce}, (uint64_t[]){8, 8, 9}, 0,
           (int[]){truncate, TB_OK, TB_OK});
    differ(&h, (enum tb_composite[]){all, all, all}, (uint64_t[]){300000, 300000, 200000}, 0,
           (int[]){mismatch, mismatch, truncate});
    host_close(&h);
}

/* A rank is lost: those who wait for it are told, now and later. */
static void losses_end(void **state)
{
    struct host h;
    struct call calls[2];
    host_open(&h, 3);
    for (int again = 0; again < 2; again++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            call_make(&calls[rank], TB_COMPOSITE_ALLREDUCE, rank, 0, again ? 100000 : 8, &tb_type_byte,
                      tb_op_predefined(OP_BOR));
            call_post(&h, &calls[rank], rank);
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(tb_request_done(&calls[rank].request), again);
            if (!again)
                tb_engine_lost(h.engines[rank], (struct tb_proc){7, 2}, tb_error(TB_ERR_PEER, "lost in this test"));
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 2; rank++)
            call_end(&calls[rank], TB_ERR_PEER);
    }
    host_close(&h);
}

/* ---- boards ------------------------------------------------------------------------------------------------------ */

/* They are claimed and come back; when there are no more, there is none for anybody. */
static void boards_come_back(void **state)
{
    enum { MOST = 300 };
    static struct tb_channel *channels[2][MOST];
    struct host h;
    uint32_t held[2] = {0, 0};
    host_open(&h, 2);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < MOST; i++) {
            uint64_t context = tb_context_make(0, i % 2, 10 + i, TB_PLANE_POINT);
            tb_engine_claim(h.engines[i % 2], context, false);
            for (uint32_t rank = 0; rank < 2; rank++)
                channel_make(&h, rank, context, &channels[rank][i]);
            assert_int_equal(tb_channel_common(channels[0][i]), tb_channel_common(channels[1][i]));
            held[round] += tb_channel_common(channels[0][i]);
        }
        for (uint32_t i = 0; i < MOST; i++)
            for (uint32_t rank = 0; rank < 2; rank++)
                tb_channel_close(channels[rank][i]);
    }
    assert_int_equal(held[0], held[1]);
    assert_true(held[0] >= 64 && held[0] < MOST);
    tb_engine_claim(h.engines[0], 999 << 3, false);
    tb_engine_unclaim(h.engines[0], 999 << 3);
    channel_make(&h, 0, 999 << 3, &channels[0][0]);
    assert_false(tb_channel_common(channels[0][0]));
    tb_channel_close(channels[0][0]);
    host_close(&h);
}

/* A board that was used before is as new. */
static void boards_are_cleared(void **state)
{
    struct host h;
    host_open(&h, 2);
    struct tb_channel *first[2] = {h.channels[0], h.channels[1]};
    for (uint32_t round = 0; round < 5; round++) {
        uint64_t context = tb_context_make(0, 0, 10 + round, TB_PLANE_POINT);
        tb_engine_claim(h.engines[0], context, false);
        for (uint32_t rank = 0; rank < 2; rank++)
            channel_make(&h, rank, context, &h.channels[rank]);
        for (uint32_t i = 0; i < 3 + 9 * round; i++) {
            bcast_fill(2, 0, 30000, round * 64 + i);
            calls_run(&h, TB_COMPOSITE_BCAST, 0, 30000, &tb_type_byte, NULL);
            assert_memory_equal(out[1], out[0], 30000);
        }
        tb_channel_close(h.channels[0]);
        tb_channel_close(h.channels[1]);
    }
    h.channels[0] = first[0];
    h.channels[1] = first[1];
    host_close(&h);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

struct thread {
    struct host *host;
    uint32_t rank;
    pthread_t id;
    int failures;
};

static void *thread_run(void *argument)
{
    struct thread *t = argument;
    struct tb_random random;
    const struct tb_type *type = tb_type_match_size(TB_CLASS_REAL, 8);
    tb_random_seed(&random, t->rank);
    for (uint32_t i = 0; i < 300; i++) {
        struct call c;
        static const uint64_t lengths[] = {1, 8, 300, 9000, 20000};
        uint64_t count = lengths[i % 5];
        enum tb_composite what = (enum tb_composite)(i % KINDS);
        uint32_t root = i % t->host->ranks;
        call_make(&c, what, t->rank, root, count, type, tb_op_predefined(OP_SUM));
        for (uint64_t k = 0; k < count; k++) {
            ((double *)in[t->rank])[k] = (double)(k + t->rank + i);
            ((double *)out[t->rank])[k] = what == TB_COMPOSITE_BCAST && t->rank == root ? (double)(k + i) : 0;
        }
        if (tb_random_below(&random, 40) == 0)
            usleep(3000);
        if (t->rank == 0 && i == 150)
            usleep(300000); /* where the machine is busy, shorter pauses are over before anybody sleeps */
        if (tb_program_run(t->host->channels[t->rank], c.program, &c.binding) != TB_OK)
            t->failures++;
        uint32_t p = t->host->ranks;
        bool reduced = what == TB_COMPOSITE_ALLREDUCE || (what == TB_COMPOSITE_REDUCE && t->rank == root);
        for (uint64_t k = 0; k < count && (reduced || what == TB_COMPOSITE_BCAST); k++) {
            double want = reduced ? (double)p * (double)(k + i) + (double)p * (p - 1) / 2 : (double)(k + i);
            t->failures += ((double *)out[t->rank])[k] != want;
        }
        tb_program_free(c.program);
    }
    return NULL;
}

/* Blocking calls, with ranks that come late, so that the others sleep. */
static void sleepers_are_woken(void **state)
{
    struct host h;
    struct thread threads[4];
    uint64_t sleeps = 0;
    host_open(&h, 4);
    for (uint32_t i = 0; i < 4; i++) {
        threads[i] = (struct thread){.host = &h, .rank = i};
        assert_int_equal(pthread_create(&threads[i].id, NULL, thread_run, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct tb_counters counters;
        pthread_join(threads[i].id, NULL);
        assert_int_equal(threads[i].failures, 0);
        tb_engine_count(h.engines[i], &counters);
        sleeps += counters.sleeps;
    }
    assert_true(sleeps > 0);
    host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broadcasts),           cmocka_unit_test(reductions_in_order),
                                       cmocka_unit_test(reductions_with_gaps), cmocka_unit_test(sums_are_equal),
                                       cmocka_unit_test(many_in_flight),       cmocka_unit_test(disagreement_ends),
                                       cmocka_unit_test(losses_end),           cmocka_unit_test(boards_come_back),
                                       cmocka_unit_test(boards_are_cleared),   cmocka_unit_test(sleepers_are_woken),
                                       cmocka_unit_test(numbers_grow)};
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
