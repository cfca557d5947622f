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
enum tb_operation { TB_OPERATION_BARRIER, TB_OPERATION_BCAST, TB_OPERATION_COUNT };

/* "MPI_Bcast"; for stories about operations that came over the wire, so any number is allowed. */
const char *tb_operation_name(unsigned operation);

enum tb_step_kind {
    TB_STEP_SEND,
    TB_STEP_RECEIVE,
    TB_STEP_COPY,     /* from `slice` to `other` */
    TB_STEP_REDUCE,   /* combines `slice` into `other` */
    TB_STEP_COMPOSITE /* a protocol of its own with a contract; carried out by a driver of the engine */
};

/* Symbolic buffers, bound at each start. */
enum tb_symbol { TB_SYMBOL_IN, TB_SYMBOL_OUT, TB_SYMBOL_WORK, TB_SYMBOL_COUNT };

struct tb_slice {
    enum tb_symbol symbol;
    uint32_t first;  /* piece */
    uint32_t stride; /* pieces from one to the next */
    uint32_t count;  /* how many; 0 sends or receives one empty message */
};

struct tb_step {
    enum tb_step_kind kind;
    bool piecewise;  /* dependencies hold piece by piece */
    uint16_t edge;   /* tells messages between the same two ranks in one collective apart; both ends use the same */
    uint32_t peer;   /* rank in the communicator, of SEND and RECEIVE */
    uint32_t window; /* pieces in flight; 0: all */
    struct tb_slice slice, other;
    uint32_t after;       /* index of the first dependency in program->after */
    uint32_t after_count; /* steps that must be done before; they come earlier in the program */
};

struct tb_program {
    uint32_t step_count;
    uint32_t pieces;      /* that IN and OUT are cut into; the last one may be shorter; 0: no data */
    uint32_t work_pieces; /* size of WORK */
    struct tb_step *steps;
    uint32_t *after;
};

#define TB_PROGRAM_STEPS_LIMIT (1u << 20)

/* Makes a program step by step. After an error every further call does nothing; finish returns it. */
struct tb_builder {
    struct tb_program program;
    uint32_t step_room, after_room, after_total;
    int error;
};

void tb_builder_open(struct tb_builder *b, uint32_t pieces);
/* Adds a step and returns its index. */
uint32_t tb_builder_send(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice);
uint32_t tb_builder_receive(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice);
uint32_t tb_builder_copy(struct tb_builder *b, struct tb_slice from, struct tb_slice to);
/* The last added step depends on `step`. */
void tb_builder_after(struct tb_builder *b, uint32_t step);
/* The last added step: piece by piece dependencies, and how many pieces may be in flight. */
void tb_builder_pipeline(struct tb_builder *b, uint32_t window);
int tb_builder_finish(struct tb_builder *b, struct tb_program **program); /* allocated in one piece */
void tb_program_free(struct tb_program *program);

/* Given the programs of all ranks: every receive has its send with the same edge, order and sizes, no cycle, and every
 * rank ends with the bytes that `expect` asks for. `initial` and `expect` describe contents symbolically:
 * contents[rank] [symbol][piece] is a number that says which data it is; 0 is undefined. The story names rank and step.
 */
struct tb_validation {
    uint32_t ranks;
    struct tb_program *const *programs;
    uint64_t *(*initial)(void *context, uint32_t rank, enum tb_symbol symbol); /* array of pieces, or NULL */
    const uint64_t *(*expect)(void *context, uint32_t rank, enum tb_symbol symbol);
    void *context;
};
int tb_schedule_validate(const struct tb_validation *validation);

#endif
