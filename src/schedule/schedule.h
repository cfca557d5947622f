/* schedule: programs. A program is what one rank does in one collective: a short list of steps on symbolic buffers. The
 * union of all ranks' programs is a schedule. An algorithm makes programs (collectives), the executor runs one
 * (engine), the simulator and the validator are given all of them.
 *
 * Messages are counted in basic elements and cut into pieces between elements. A step covers a range of pieces (first,
 * stride, count) with at most `window` of them in flight; it depends on other steps as a whole, or piece by piece (its
 * k-th piece after their k-th piece), so that a pipelined chain is two steps for any size.
 *
 * A program is immutable after tb_program_finish; it holds no addresses and can be kept and used many times at once. */
#ifndef TB_SCHEDULE_SCHEDULE_H
#define TB_SCHEDULE_SCHEDULE_H

#include "base/base.h"

/* What a program is for. Travels with every message of it. */
enum tb_operation {
    TB_OPERATION_BARRIER,
    TB_OPERATION_BCAST,
    TB_OPERATION_GATHER,
    TB_OPERATION_GATHERV,
    TB_OPERATION_SCATTER,
    TB_OPERATION_SCATTERV,
    TB_OPERATION_ALLGATHER,
    TB_OPERATION_ALLGATHERV,
    TB_OPERATION_ALLTOALL,
    TB_OPERATION_ALLTOALLV,
    TB_OPERATION_ALLTOALLW,
    TB_OPERATION_REDUCE,
    TB_OPERATION_ALLREDUCE,
    TB_OPERATION_REDUCE_SCATTER,
    TB_OPERATION_REDUCE_SCATTER_BLOCK,
    TB_OPERATION_SCAN,
    TB_OPERATION_EXSCAN,
    TB_OPERATION_COUNT
};

/* "MPI_Bcast"; for stories about operations that came over the wire, so any number is allowed. */
const char *tb_operation_name(unsigned operation);

enum tb_step_kind {
    TB_STEP_SEND,
    TB_STEP_RECEIVE,
    TB_STEP_COPY,     /* from `slice` to `other` */
    TB_STEP_REDUCE,   /* other = slice op other: `slice` holds what comes first in the order of ranks */
    TB_STEP_COMPOSITE /* a protocol of its own with a contract; carried out by a driver of the engine */
};

/* Symbolic buffers, bound at each start. */
enum tb_symbol { TB_SYMBOL_IN, TB_SYMBOL_OUT, TB_SYMBOL_WORK, TB_SYMBOL_COUNT };

struct tb_slice {
    enum tb_symbol symbol;
    uint32_t first; /* piece */
    int32_t stride; /* pieces from one to the next */
    uint32_t count; /* how many; 0 sends or receives one empty message */
};

struct tb_step {
    enum tb_step_kind kind;
    bool piecewise;  /* all dependencies hold piece by piece */
    bool joined;     /* all pieces are one: they lie side by side and go as one message */
    uint8_t group;   /* that the peer is in; 0: of the channel, which of an intercommunicator is the remote group;
                      * 1: the local group of an intercommunicator */
    uint16_t edge;   /* tells messages between the same two ranks in one collective apart; both ends use the same */
    uint32_t peer;   /* rank in its group, of SEND and RECEIVE */
    uint32_t window; /* pieces in flight; 0: all */
    /* Of SEND and RECEIVE `other` may say how long the pieces are: those of `slice` in WORK then only have room. */
    struct tb_slice slice, other;
    uint32_t after;       /* index of the first dependency in program->after */
    uint32_t after_count; /* steps that must be done before; they come earlier in the program */
};

/* In program->after: this dependency holds piece by piece; or shifted, piece k after piece k - 1, so that a ring's
 * first piece waits for nothing. */
#define TB_AFTER_PIECEWISE (1u << 31)
#define TB_AFTER_SHIFTED   (1u << 30)
#define TB_AFTER_STEP(a)   ((a) & ~(TB_AFTER_PIECEWISE | TB_AFTER_SHIFTED))

struct tb_program {
    uint32_t step_count;
    uint32_t pieces;      /* that IN and OUT are cut into; the last one may be shorter; 0: no data */
    uint32_t work_pieces; /* size of WORK */
    struct tb_step *steps;
    uint32_t *after;
};

#define TB_PROGRAM_STEPS_LIMIT (1u << 20)

/* How many parts of a step are started and finished by themselves: messages, or copies. */
static inline uint32_t tb_step_items(const struct tb_step *s)
{
    return s->joined || s->slice.count == 0 ? 1 : s->slice.count;
}

/* How many items of the step `before` must be done before item `item` of `s` may start, because of a dependency. */
static inline uint32_t tb_step_needs(const struct tb_step *s, uint32_t after, uint32_t before_items, uint32_t item)
{
    if (s->joined || !(s->piecewise || (after & (TB_AFTER_PIECEWISE | TB_AFTER_SHIFTED)) != 0))
        return before_items;
    uint32_t needed = (after & TB_AFTER_SHIFTED) != 0 ? item : item + 1;
    return needed < before_items ? needed : before_items;
}

static inline uint32_t tb_slice_piece(const struct tb_slice *s, uint32_t i)
{
    return s->first + (uint32_t)s->stride * i;
}

/* Makes a program step by step. After an error every further call does nothing; finish returns it. */
struct tb_builder {
    struct tb_program program;
    uint32_t step_room, after_room, after_total;
    bool ordered;
    uint8_t *reached; /* of an ordered program: room for a mark for each step */
    uint32_t reached_room;
    int error;
};

void tb_builder_open(struct tb_builder *b, uint32_t pieces);
/* Every step from now on comes after all earlier ones with which it shares a piece that one of the two writes. */
void tb_builder_order(struct tb_builder *b);
/* Adds a step and returns its index. */
uint32_t tb_builder_send(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice);
uint32_t tb_builder_receive(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice);
uint32_t tb_builder_copy(struct tb_builder *b, struct tb_slice from, struct tb_slice to);
uint32_t tb_builder_reduce(struct tb_builder *b, struct tb_slice first, struct tb_slice into);
/* The last added step depends on `step`: wholly, piece by piece, or shifted. */
void tb_builder_after(struct tb_builder *b, uint32_t step);
void tb_builder_after_pieces(struct tb_builder *b, uint32_t step);
void tb_builder_after_shifted(struct tb_builder *b, uint32_t step);
/* The last added step: piece by piece dependencies, and how many pieces may be in flight. */
void tb_builder_pipeline(struct tb_builder *b, uint32_t window);
/* The last added step: all pieces are one; its peer is in the local group; its pieces are as long as these. */
void tb_builder_join(struct tb_builder *b);
void tb_builder_local(struct tb_builder *b);
void tb_builder_like(struct tb_builder *b, struct tb_slice shape);
int tb_builder_finish(struct tb_builder *b, struct tb_program **program); /* allocated in one piece */
void tb_program_free(struct tb_program *program);

/* Given the programs of all ranks: every receive has its send with the same edge, order and sizes, no cycle, and every
 * rank ends with the data that `expect` asks for. `initial` and `expect` describe contents symbolically:
 * contents[rank] [symbol][piece] is a number that says which data it is; 0 is undefined. `combine` says what the
 * reduction of two contents is, 0 if they must not meet so (not in order, or one operand twice); it may be NULL. The
 * story names rank and step. */
struct tb_validation {
    uint32_t ranks;
    struct tb_program *const *programs;
    uint64_t *(*initial)(void *context, uint32_t rank, enum tb_symbol symbol); /* array of pieces, or NULL */
    const uint64_t *(*expect)(void *context, uint32_t rank, enum tb_symbol symbol);
    void *context;
    uint64_t (*combine)(void *context, uint64_t first, uint64_t second);
    uint32_t split; /* intercommunicator: so many ranks are its first group, the others its second; 0: there is none */
};
int tb_schedule_validate(const struct tb_validation *validation);

#endif
